/* What threads wait for: condition variables, semaphores, barriers, one-time initialisation, futexes. */

#include "palisade.h"
#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

static void log_chosen(const void *object, uint64_t head, uint64_t place)
{
    uint64_t first = ((uint64_t)object & ADDRESS_BITS) | head, second = pal_at(place) | F_CHOSEN;
    pal_check_access(first, second);
    pal_log(first, second);
}

/* Condition variables. A signal leaves a ticket that any thread waiting at that time may take. So the
 * scheduler decides which one wakes up, and a thread that comes later cannot take the ticket. */

struct ticket {
    const void *cond;
    uint64_t number;
};

static struct ticket tickets[MAX_THREADS];
static int ticket_count;

static int ticket_for(const struct thread *thread)
{
    for (int i = 0; i < ticket_count; i++) {
        if (tickets[i].cond == thread->waits_at && tickets[i].number > thread->sequence) {
            return i;
        }
    }
    return -1;
}

static int is_signalled(struct thread *self)
{
    return self->woken || self->timed_out || ticket_for(self) >= 0;
}

static void take_ticket(int index)
{
    for (int i = index; i + 1 < ticket_count; i++) {
        tickets[i] = tickets[i + 1];
    }
    ticket_count--;
}

static int waiters(const void *cond)
{
    int count = 0;
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        count += thread->waits_at == cond && !thread->woken && !thread->timed_out;
    }
    return count;
}

static int tickets_of(const void *cond)
{
    int count = 0;
    for (int i = 0; i < ticket_count; i++) {
        count += tickets[i].cond == cond;
    }
    return count;
}

int pal_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline, uint64_t place)
{
    struct thread *self = pal.self;
    if (pal.quiet) {
        return 0;
    }
    place = pal_outside(place);
    /* It can be woken from the first step on, so no signal is lost before the mutex is released. */
    uint64_t head = HEAD(K_LOCKED, O_RELAXED, 4);
    pal_event((uint64_t)cond, head, place);
    self->waits_at = cond;
    self->sequence = ++pal.tickets;
    self->woken = self->timed_out = 0;
    int error = pal_unlock(mutex, place);
    if (error) {
        self->waits_at = NULL;
        return error;
    }
    self->deadline = deadline;
    pal_await(cond, is_signalled, ((uint64_t)cond & ADDRESS_BITS) | head, place);
    int ticket = self->woken ? -1 : ticket_for(self);
    int late = !self->woken && ticket < 0;
    self->waits_at = NULL;
    if (ticket >= 0) {
        take_ticket(ticket);
    }
    log_chosen(cond, HEAD(K_LOCKED, O_RELAXED, 4), place);
    while (tickets_of(cond) > waiters(cond)) {
        for (int i = 0; i < ticket_count; i++) {
            if (tickets[i].cond == cond) {
                take_ticket(i);
                break;
            }
        }
    }
    pal_changed(cond);
    int died = pal_lock(mutex, 0, place);
    return died ? died : late ? ETIMEDOUT : 0;
}

int pal_cond_wake(pthread_cond_t *cond, int all, uint64_t place)
{
    if (pal.quiet) {
        return 0;
    }
    if (pal.buffers) {
        /* The C library looks first, and does nothing if no thread waits. Looking does not empty the buffer. */
        pal_event((uint64_t)cond, HEAD(K_LOAD, O_RELAXED, 4), place);
        if (!waiters(cond)) {
            return 0;
        }
    }
    pal_event((uint64_t)cond, HEAD(K_LOCKED, O_RELAXED, 4), place);
    if (all) {
        for (int i = 0; i < pal.thread_count; i++) {
            struct thread *thread = pal.threads[i];
            if (thread->waits_at == cond) {
                thread->woken = 1;
            }
        }
        for (int i = ticket_count - 1; i >= 0; i--) {
            if (tickets[i].cond == cond) {
                take_ticket(i);
            }
        }
    } else if (waiters(cond) > tickets_of(cond)) {
        tickets[ticket_count++] = (struct ticket){cond, ++pal.tickets};
    }
    pal_changed(cond);
    return 0;
}

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return pal_cond_wait(cond, mutex, 0, CALLER);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *time)
{
    /* The clock that was chosen at initialisation: a bit that the C library sets. */
    unsigned flags = ((const unsigned *)cond)[9];
    return pal_cond_wait(cond, mutex, pal_deadline(flags & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, time), CALLER);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
    return pal_cond_wait(cond, mutex, pal_deadline(clock, time), CALLER);
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    return pal_cond_wake(cond, 0, CALLER);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    return pal_cond_wake(cond, 1, CALLER);
}

EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
    pal_also((uint64_t)cond, HEAD(K_FREE, O_PLAIN, 0), sizeof *cond);
    return 0;
}

/* Semaphores. The value is stored where the C library stores it. */

static int can_take(struct thread *self)
{
    return *(const volatile unsigned *)self->object > 0 || self->timed_out;
}

static int sem_take(sem_t *handle, uint64_t deadline, int may_wait, uint64_t place)
{
    volatile unsigned *value = (unsigned *)handle;
    struct thread *self = pal.self;
    if (pal.quiet) {
        return 0;
    }
    uint64_t head = HEAD(K_LOCKED, O_ACQUIRE, 4), first = ((uint64_t)handle & ADDRESS_BITS) | head;
    self->timed_out = 0;
    if (pal.buffers && !may_wait) {
        /* The C library looks first. Looking does not empty the buffer. */
        pal_event((uint64_t)handle, HEAD(K_LOAD, O_RELAXED, 4), place);
        if (!*value) {
            errno = EAGAIN;
            return -1;
        }
    }
    if (may_wait) {
        self->deadline = deadline;
        pal_await(handle, can_take, first, place);
    } else {
        pal_writes_if(0, 0);
        pal_decide(first, pal_at(place) | F_CHOSEN);
    }
    if (!*value) {
        log_chosen(handle, HEAD(K_LOCKED_LOAD, O_RELAXED, 4), place);
        errno = may_wait ? ETIMEDOUT : EAGAIN;
        return -1;
    }
    log_chosen(handle, head, place);
    --*value;
    pal_changed(handle);
    return 0;
}

EXPORT int sem_wait(sem_t *sem)
{
    return sem_take(sem, 0, 1, CALLER);
}

EXPORT int sem_trywait(sem_t *sem)
{
    return sem_take(sem, 0, 0, CALLER);
}

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *time)
{
    return sem_take(sem, pal_deadline(CLOCK_REALTIME, time), 1, CALLER);
}

EXPORT int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *time)
{
    return sem_take(sem, pal_deadline(clock, time), 1, CALLER);
}

EXPORT int sem_post(sem_t *sem)
{
    volatile unsigned *value = (unsigned *)sem;
    pal_event((uint64_t)sem, HEAD(K_LOCKED, O_RELEASE, 4), CALLER);
    if (*value == SEM_VALUE_MAX) {
        errno = EOVERFLOW;
        return -1;
    }
    ++*value;
    pal_changed(sem);
    return 0;
}

EXPORT int sem_getvalue(sem_t *sem, int *value)
{
    pal_event((uint64_t)sem, HEAD(K_LOAD, O_RELAXED, 4), CALLER);
    *value = (int)*(volatile unsigned *)sem;
    return 0;
}

EXPORT int sem_destroy(sem_t *sem)
{
    pal_also((uint64_t)sem, HEAD(K_FREE, O_PLAIN, 0), sizeof *sem);
    return 0;
}

/* Barriers.
 *
 * In a search, the order in which threads arrive does not matter if they ignore the result, which says who was last. If
 * no more threads use the barrier than it waits for, all of them take part in every round, and nobody arrives for the
 * next round before the last one is over. So:
 * - An arrival writes a byte of its own in the barrier. If its result is used, it also writes the start of the barrier,
 *   and otherwise reads it. So arrivals are ordered with those whose result is used, but not with each other.
 * - Every thread then waits in a step that reads all of these bytes, unless its result is used and it was last.
 * - The next round has other bytes: a thread may arrive for it while others have not yet noticed that the last one is
 *   over.
 *
 * If more threads use the barrier, the order decides who meets whom. As soon as this is seen, or a thread for which there
 * is no byte arrives, the search starts again, and all steps are ordered. Until then, the search misses nothing: before the first thread that is too many arrives, the
 * order of the others does not matter. */

struct barrier {
    unsigned arrived, round, count;
    unsigned users; /* a bit for each thread */
};

/* The bytes of threads in a round, by their numbers. */
enum { FIRST_BYTE = 4, OWN_BYTES = (sizeof(pthread_barrier_t) - FIRST_BYTE) / 2 };

static uint64_t own_bytes(const struct barrier *barrier, unsigned round)
{
    return (uint64_t)barrier + FIRST_BYTE + round % 2 * OWN_BYTES;
}

static int round_is_over(struct thread *self)
{
    return ((const struct barrier *)self->object)->round != (unsigned)self->value;
}

static int wait_at(struct barrier *barrier, int is_used, uint64_t place)
{
    struct thread *self = pal.self;
    uint64_t arrives = HEAD(K_LOCKED, O_ACQ_REL, 4), address = (uint64_t)barrier & ADDRESS_BITS;
    if (pal.quiet) {
        return 0;
    }
    int is_closed = pal.command.flags & EXPLORE && self->number < OWN_BYTES && !pal_is_known_shared(address);
    if (is_closed) {
        pal_add_range(own_bytes(barrier, barrier->round) + self->number, 1, K_LOCKED);
    }
    pal_decide(address | (is_closed && !is_used ? HEAD(K_LOCKED_LOAD, O_ACQ_REL, 4) : arrives), pal_at(place) | F_CHOSEN);
    log_chosen(barrier, arrives, place);
    self->value = barrier->round;
    barrier->users |= self->number < OWN_BYTES ? 1u << self->number : 0;
    int is_open = self->number >= OWN_BYTES || (unsigned)__builtin_popcount(barrier->users) > barrier->count;
    if (pal.command.flags & EXPLORE && is_open) {
        pal_note_shared(address);
    }
    int is_last = ++barrier->arrived == barrier->count;
    if (is_last) {
        barrier->arrived = 0;
        barrier->round++;
        pal_changed(barrier);
    }
    if (!is_last || (is_closed && !is_used)) {
        uint64_t waits = HEAD(K_LOCKED_LOAD, O_ACQUIRE, 4);
        uint64_t all = (own_bytes(barrier, (unsigned)self->value) & ADDRESS_BITS) | HEAD(K_LOCKED_LOAD, O_ACQUIRE, OWN_BYTES);
        pal_await(barrier, round_is_over, is_closed ? all : address | waits, place);
        log_chosen(barrier, waits, place);
    }
    return is_last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    return wait_at((struct barrier *)barrier, 1, CALLER);
}

/* Called in its place where the result is ignored: see src/audit/ignored.rs. */
EXPORT int palisade_barrier_wait(pthread_barrier_t *barrier);
int palisade_barrier_wait(pthread_barrier_t *barrier)
{
    return wait_at((struct barrier *)barrier, 0, CALLER);
}

EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    pal_also((uint64_t)barrier, HEAD(K_FREE, O_PLAIN, 0), sizeof *barrier);
    return 0;
}

/* One-time initialisation: 0 not begun, 1 in progress, 2 done. The C library's 2 means the same. */

enum { ONCE_NEW, ONCE_BUSY, ONCE_DONE };

static int once_is_settled(struct thread *self)
{
    return *(const volatile int *)self->object != ONCE_BUSY;
}

/* A call that a thread is in. */
struct once_call {
    volatile int *state;
    uint64_t place;
    const void *cancel_buffers; /* when it began */
    struct once_call *next;
};

/* The thread leaves the function by an exception or by `pthread_exit`, so it has not been done. */
static void once_left(struct once_call *left)
{
    if (!left->state) {
        return;
    }
    volatile int *state = left->state;
    pal.self->once_calls = left->next;
    left->state = NULL;
    pal_event((uint64_t)state, HEAD(K_LOCKED, O_RELEASE, 4), left->place);
    *state = ONCE_NEW;
    if (!pal.quiet) {
        pal_changed((const void *)state);
    }
}

/* A thread that ends jumps to a handler: out of all calls that it has begun since the handler was installed. */
void pal_leaves_once(const void *cancel_buffers)
{
    while (pal.self->once_calls && pal.self->once_calls->cancel_buffers == cancel_buffers) {
        once_left(pal.self->once_calls);
    }
}

static void call_once_only(volatile int *state, void (*call)(void), uint64_t place)
{
    struct thread *self = pal.self;
    struct once_call this __attribute__((cleanup(once_left))) = {state, place, self->cancel_buffers, self->once_calls};
    self->once_calls = &this;
    call();
    self->once_calls = this.next;
    this.state = NULL;
}

void pal_once(int *once, void (*call)(void), uint64_t place)
{
    volatile int *state = once;
    uint64_t address = (uint64_t)once & ADDRESS_BITS;
    if (pal.quiet) {
        if (*state == ONCE_NEW) {
            *state = ONCE_DONE;
            if (pal.self) {
                call_once_only(state, call, place);
            } else {
                call();
            }
        }
        return;
    }
    pal_event(address, HEAD(K_LOAD, O_ACQUIRE, 4), place);
    while (*state != ONCE_DONE) {
        uint64_t head = HEAD(K_LOCKED, O_ACQ_REL, 4);
        pal_await(once, once_is_settled, address | head, place);
        if (*state == ONCE_DONE) {
            log_chosen(once, HEAD(K_LOCKED_LOAD, O_ACQUIRE, 4), place);
            return;
        }
        log_chosen(once, head, place);
        *state = ONCE_BUSY;
        pal_changed(once);
        call_once_only(state, call, place);
        pal_event(address, HEAD(K_LOCKED, O_RELEASE, 4), place);
        *state = ONCE_DONE;
        pal_changed(once);
    }
}

EXPORT int pthread_once(pthread_once_t *once, void (*call)(void))
{
    pal_once(once, call, CALLER);
    return 0;
}

/* Static variables of C++ functions. The first byte is set when the initialisation is done, the second while
 * it is in progress. */

struct guard {
    unsigned char done, busy;
};

static int guard_is_settled(struct thread *self)
{
    return !((const volatile struct guard *)self->object)->busy;
}

EXPORT int __cxa_guard_acquire(struct guard *guard)
{
    uint64_t place = CALLER, head = HEAD(K_LOCKED, O_ACQ_REL, 1);
    if (guard->done) {
        return 0;
    }
    if (pal.quiet) {
        guard->busy = 1;
        return 1;
    }
    pal_await(guard, guard_is_settled, ((uint64_t)guard & ADDRESS_BITS) | head, place);
    if (guard->done) {
        log_chosen(guard, HEAD(K_LOCKED_LOAD, O_ACQUIRE, 1), place);
        return 0;
    }
    log_chosen(guard, head, place);
    guard->busy = 1;
    pal_changed(guard);
    return 1;
}

static void guard_end(struct guard *guard, int done, uint64_t place)
{
    pal_event((uint64_t)guard, HEAD(K_LOCKED, O_RELEASE, 1), place);
    guard->busy = 0;
    guard->done = (unsigned char)done;
    if (!pal.quiet) {
        pal_changed(guard);
    }
}

EXPORT void __cxa_guard_release(struct guard *guard)
{
    guard_end(guard, 1, CALLER);
}

EXPORT void __cxa_guard_abort(struct guard *guard)
{
    guard_end(guard, 0, CALLER);
}

/* Futexes, which C++ futures and Rust's standard library use for waiting. For the hardware, the kernel's part
 * in it is a fence. The scheduler treats it as a write. After a wait, the thread reads the word again. Rust's
 * standard library does so in code that was compiled without instrumentation, so the load is logged here.
 * Otherwise, happens-before would miss what was released. If the thread need not wait, that code may take the lock in the
 * same step, so looking at the word is then a write. */

static int is_woken(struct thread *self)
{
    return self->woken || self->timed_out;
}

static long futex_wait(const volatile uint32_t *word, uint32_t value, uint64_t deadline, uint64_t place)
{
    struct thread *self = pal.self;
    place = pal_outside(place);
    if (deadline) {
        pal_timed(place);
    }
    uint64_t head = HEAD(K_LOCKED, O_ACQUIRE, 4);
    pal_writes_if(0, 0);
    pal_decide(((uint64_t)word & ADDRESS_BITS) | head, pal_at(place) | F_CHOSEN);
    if (*word != value) {
        log_chosen((const void *)word, head, place);
        return -EAGAIN;
    }
    log_chosen((const void *)word, HEAD(K_LOCKED_LOAD, O_ACQUIRE, 4), place);
    self->sequence = ++pal.tickets;
    self->woken = self->timed_out = 0;
    self->deadline = deadline;
    uint64_t first = ((uint64_t)word & ADDRESS_BITS) | HEAD(K_FENCE, O_SEQ_CST, 4);
    pal_await((const void *)word, is_woken, first, place);
    pal_log(first, pal_at(place) | F_CHOSEN);
    pal_log(((uint64_t)word & ADDRESS_BITS) | HEAD(K_LOCKED_LOAD, O_ACQUIRE, 4), pal_at(place));
    return self->woken ? 0 : -ETIMEDOUT;
}

static long futex_wake(const volatile uint32_t *word, long most, uint64_t place)
{
    long count = 0;
    if (pal_is_once((uint64_t)word)) {
        pal_also((uint64_t)word, HEAD(K_LOCKED, O_ACQ_REL, 4), place);
    }
    pal_event((uint64_t)word, HEAD(K_FENCE, O_SEQ_CST, 4), place);
    while (count < most) {
        struct thread *oldest = NULL;
        for (int i = 0; i < pal.thread_count; i++) {
            struct thread *thread = pal.threads[i];
            if (thread->object == (const void *)word && thread->ready == is_woken && !thread->woken &&
                (!oldest || thread->sequence < oldest->sequence)) {
                oldest = thread;
            }
        }
        if (!oldest) {
            break;
        }
        oldest->woken = 1;
        count++;
    }
    pal_changed((const void *)word);
    return count;
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *time, uint64_t place)
{
    clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: {
        uint64_t nanoseconds = time ? (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec : 0;
        return futex_wait(word, value, time ? pal_now() + nanoseconds + 1 : 0, place);
    }
    case FUTEX_WAIT_BITSET:
        return futex_wait(word, value, time ? pal_deadline(clock, time) : 0, place);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        return futex_wake(word, (int)value, place);
    default:
        pal_stop(R_UNSUPPORTED, "the program uses a futex operation other than waiting and waking, which cannot be followed");
    }
}

EXPORT long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (int i = 0; i < 6; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    long result;
    if (number == SYS_futex && !pal.quiet) {
        result = futex((uint32_t *)arguments[0], (int)arguments[1], (uint32_t)arguments[2], (const struct timespec *)arguments[3], CALLER);
    } else if (number == SYS_getrandom) {
        pal_random_bytes((void *)arguments[0], (size_t)arguments[1]);
        result = arguments[1];
    } else if (number == SYS_gettid && pal.self) {
        pal_unrestorable();
        result = pal.self->kernel_id;
    } else if (!pal_limit_syscall(number, arguments, CALLER, &result)) {
        result = pal_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    }
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
