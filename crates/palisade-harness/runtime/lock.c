/* Mutexes, reader-writer locks and spin locks. Their state is stored where the C library stores its own, so
 * that static initialisers work.
 *
 * On x86, locks are taken and released by locked instructions, except that the C library releases a spin lock
 * by a plain store.
 *
 * Constructors run before the first step, on the first thread. What they lock stays locked. */

#include "palisade.h"
#include <errno.h>

enum { KIND_BITS = 3 };

static void check_mutex(const struct mutex *mutex, uint64_t place)
{
    if (unlikely(mutex->kind == MUTEX_DESTROYED)) {
        pal_misused_lock(M_DESTROYED, mutex, 0, mutex->destroyed_at, place);
    }
}

/* A lock is about to be destroyed: a step that conflicts with everything that is done to it, like `free`. */
static void about_to_destroy(const void *lock, size_t size, uint64_t place)
{
    uint64_t address = (uint64_t)lock & ADDRESS_BITS, first = address | HEAD(K_FREE, O_PLAIN, 0), second = pal_at(place) | F_CHOSEN;
    if (!pal_is_alone()) {
        pal_add_range(address, size, K_FREE);
        pal_decide(first, second);
        pal_log(first, second);
    }
    pal_also(address, HEAD(K_FREE, O_PLAIN, 0), size);
}

static int is_free(struct thread *self)
{
    return !((const struct mutex *)self->object)->locked || self->timed_out;
}

static void log_chosen(const void *object, uint64_t head, uint64_t place)
{
    uint64_t first = ((uint64_t)object & ADDRESS_BITS) | head, second = pal_at(place) | F_CHOSEN;
    pal_check_access(first, second);
    pal_log(first, second);
}

/* Whether the program has not begun. Nobody else can hold a lock then. */
static int is_early(void)
{
    return !pal.self || !(pal.steps || pal.is_forked || pal.in_handler || pal.shared->exited);
}

enum { FIRST_THREAD = 1 };

static int lock_early(struct mutex *mutex)
{
    if (is_early()) {
        mutex->count += mutex->locked && (mutex->kind & KIND_BITS) == PTHREAD_MUTEX_RECURSIVE;
        mutex->locked = 1;
        mutex->owner = FIRST_THREAD;
    }
    return 0;
}

static int unlock_early(struct mutex *mutex)
{
    if (is_early() && mutex->count) {
        mutex->count--;
    } else if (is_early()) {
        mutex->locked = 0;
        mutex->owner = 0;
    }
    return 0;
}

int pal_lock(pthread_mutex_t *handle, uint64_t deadline, uint64_t place)
{
    struct mutex *mutex = (struct mutex *)handle;
    struct thread *self = pal.self;
    if (pal.quiet) {
        return lock_early(mutex);
    }
    int kind = mutex->kind & KIND_BITS;
    if (mutex->locked && mutex->owner == self->number + 1) {
        if (kind == PTHREAD_MUTEX_RECURSIVE) {
            mutex->count++;
            return 0;
        }
        if (kind == PTHREAD_MUTEX_ERRORCHECK) {
            return EDEADLK;
        }
    }
    self->deadline = deadline;
    self->timed_out = 0;
    uint64_t head = HEAD(K_LOCKED, O_ACQUIRE, 4);
    pal_await(mutex, is_free, ((uint64_t)mutex & ADDRESS_BITS) | head, place);
    if (mutex->locked) {
        log_chosen(mutex, HEAD(K_LOCKED_LOAD, O_RELAXED, 4), place);
        return ETIMEDOUT;
    }
    log_chosen(mutex, head, place);
    check_mutex(mutex, place);
    int error = pal_takes(mutex);
    pal_changed(mutex);
    return error;
}

int pal_try_lock(pthread_mutex_t *handle, uint64_t place)
{
    struct mutex *mutex = (struct mutex *)handle;
    struct thread *self = pal.self;
    if (pal.quiet) {
        int fails = is_early() && mutex->locked && (mutex->kind & KIND_BITS) != PTHREAD_MUTEX_RECURSIVE;
        return fails ? EBUSY : lock_early(mutex);
    }
    if (mutex->locked && mutex->owner == self->number + 1 && (mutex->kind & KIND_BITS) == PTHREAD_MUTEX_RECURSIVE) {
        mutex->count++;
        return 0;
    }
    uint64_t head = HEAD(K_LOCKED, O_ACQUIRE, 4);
    pal_writes_if(0, sizeof mutex->locked);
    pal_decide(((uint64_t)mutex & ADDRESS_BITS) | head, pal_at(place) | F_CHOSEN);
    if (mutex->locked) {
        log_chosen(mutex, HEAD(K_LOCKED_LOAD, O_RELAXED, 4), place);
        return EBUSY;
    }
    log_chosen(mutex, head, place);
    check_mutex(mutex, place);
    int error = pal_takes(mutex);
    pal_changed(mutex);
    return error;
}

int pal_unlock(pthread_mutex_t *handle, uint64_t place)
{
    struct mutex *mutex = (struct mutex *)handle;
    struct thread *self = pal.self;
    if (pal.quiet) {
        return unlock_early(mutex);
    }
    int is_robust = pal_is_robust(mutex);
    int is_checked = is_robust || (mutex->kind != MUTEX_DESTROYED && (mutex->kind & KIND_BITS) != PTHREAD_MUTEX_NORMAL);
    if (is_checked && mutex->owner != self->number + 1) {
        return EPERM;
    }
    if (mutex->count) {
        mutex->count--;
        return 0;
    }
    pal_event((uint64_t)mutex, HEAD(K_LOCKED, O_RELEASE, 4), place);
    check_mutex(mutex, place);
    if (unlikely(!mutex->locked || mutex->owner != self->number + 1)) {
        pal_misused_lock(M_NOT_HELD, mutex, mutex->locked ? mutex->owner : 0, 0, place);
    }
    if (is_robust) {
        pal_gives_up_robust(mutex);
    }
    mutex->locked = 0;
    mutex->owner = 0;
    pal_changed(mutex);
    return 0;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return pal_lock(mutex, 0, CALLER);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return pal_try_lock(mutex, CALLER);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time)
{
    return pal_lock(mutex, pal_deadline(CLOCK_REALTIME, time), CALLER);
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
    return pal_lock(mutex, pal_deadline(clock, time), CALLER);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    return pal_unlock(mutex, CALLER);
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *handle)
{
    struct mutex *mutex = (struct mutex *)handle;
    if (pal.quiet) {
        return 0;
    }
    uint64_t place = CALLER;
    about_to_destroy(mutex, sizeof *handle, place);
    check_mutex(mutex, place);
    if (mutex->locked) {
        pal_misused_lock(M_IN_USE, mutex, mutex->owner, 0, place);
    }
    mutex->kind = MUTEX_DESTROYED;
    mutex->destroyed_at = pal_at(place);
    return 0;
}

/* Reader-writer locks: any number of readers, or one writer.
 *
 * A lock of the kind PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP makes new readers wait while it has readers and a
 * writer waits. There, a writer comes to the lock by a step of its own. The other two kinds are the same in the C
 * library. */

struct rwlock {
    int readers;
    uint32_t writer; /* number of the thread, plus 1 */
    uint64_t destroyed_at; /* where, and by which thread; initialising it again clears this */
    uint32_t waiting; /* writers, if these are preferred */
    uint32_t unused[7];
    uint32_t kind; /* where the C library has it */
};
_Static_assert(offsetof(struct rwlock, kind) == offsetof(pthread_rwlock_t, __data.__flags), "the kind is where the C library has it");

static void check_rwlock(const struct rwlock *lock, uint64_t place)
{
    if (unlikely(lock->destroyed_at)) {
        pal_misused_lock(M_DESTROYED, lock, 0, lock->destroyed_at, place);
    }
}

static int prefers_writers(const struct rwlock *lock)
{
    return lock->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

static int is_closed(const struct rwlock *lock, int writes)
{
    if (writes) {
        return lock->writer || lock->readers;
    }
    return lock->writer || (lock->waiting && lock->readers);
}

static int can_read(struct thread *self)
{
    return !is_closed(self->object, 0) || self->timed_out;
}

static int can_write(struct thread *self)
{
    return !is_closed(self->object, 1) || self->timed_out;
}

/* Before the program begins. */
static int take_early(struct rwlock *lock, int writes, int may_wait)
{
    if (!is_early()) {
        return 0;
    }
    if (lock->writer || (writes && lock->readers)) {
        return may_wait ? EDEADLK : EBUSY;
    }
    lock->writer = writes ? FIRST_THREAD : 0;
    lock->readers += !writes;
    return 0;
}

static void release(struct rwlock *lock)
{
    if (lock->writer) {
        lock->writer = 0;
    } else {
        lock->readers--;
    }
}

static int rwlock_take(pthread_rwlock_t *handle, int writes, int may_wait, uint64_t deadline, uint64_t place)
{
    struct rwlock *lock = (struct rwlock *)handle;
    struct thread *self = pal.self;
    if (pal.quiet) {
        return take_early(lock, writes, may_wait);
    }
    if (may_wait && lock->writer == self->number + 1) {
        return EDEADLK;
    }
    uint64_t head = HEAD(K_LOCKED, O_ACQUIRE, 4), first = ((uint64_t)lock & ADDRESS_BITS) | head;
    int comes_first = writes && may_wait && prefers_writers(lock);
    if (comes_first) {
        pal_event((uint64_t)lock, head, place);
        check_rwlock(lock, place);
        lock->waiting++;
        pal_changed(lock);
    }
    self->timed_out = 0;
    if (may_wait) {
        self->deadline = deadline;
        pal_await(lock, writes ? can_write : can_read, first, place);
    } else {
        pal_writes_if(0, 0);
        pal_decide(first, pal_at(place) | F_CHOSEN);
    }
    int is_late = is_closed(lock, writes);
    log_chosen(lock, is_late && !comes_first ? HEAD(K_LOCKED_LOAD, O_RELAXED, 4) : head, place);
    lock->waiting -= (uint32_t)comes_first;
    if (is_late) {
        pal_changed(lock);
        return may_wait ? ETIMEDOUT : EBUSY;
    }
    check_rwlock(lock, place);
    if (writes) {
        lock->writer = self->number + 1;
    } else {
        lock->readers++;
    }
    pal_changed(lock);
    return 0;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    return rwlock_take(lock, 0, 1, 0, CALLER);
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    return rwlock_take(lock, 0, 0, 0, CALLER);
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *time)
{
    return rwlock_take(lock, 0, 1, pal_deadline(CLOCK_REALTIME, time), CALLER);
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time)
{
    return rwlock_take(lock, 0, 1, pal_deadline(clock, time), CALLER);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    return rwlock_take(lock, 1, 1, 0, CALLER);
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    return rwlock_take(lock, 1, 0, 0, CALLER);
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *time)
{
    return rwlock_take(lock, 1, 1, pal_deadline(CLOCK_REALTIME, time), CALLER);
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time)
{
    return rwlock_take(lock, 1, 1, pal_deadline(clock, time), CALLER);
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *handle)
{
    struct rwlock *lock = (struct rwlock *)handle;
    if (pal.quiet) {
        if (is_early() && (lock->writer || lock->readers)) {
            release(lock);
        }
        return 0;
    }
    uint64_t place = CALLER;
    pal_event((uint64_t)lock, HEAD(K_LOCKED, O_RELEASE, 4), place);
    check_rwlock(lock, place);
    if (unlikely(lock->writer ? lock->writer != pal.self->number + 1 : !lock->readers)) {
        pal_misused_lock(M_NOT_HELD, lock, lock->writer, 0, place);
    }
    release(lock);
    pal_changed(lock);
    return 0;
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *handle)
{
    struct rwlock *lock = (struct rwlock *)handle;
    if (pal.quiet) {
        return 0;
    }
    uint64_t place = CALLER;
    about_to_destroy(lock, sizeof *handle, place);
    check_rwlock(lock, place);
    if (lock->writer || lock->readers) {
        pal_misused_lock(M_IN_USE, lock, lock->writer, 0, place);
    }
    lock->destroyed_at = pal_at(place);
    return 0;
}

/* Spin locks: 1 is free, as in the C library. */

static int spin_is_free(struct thread *self)
{
    return *(const volatile int *)self->object == 1;
}

EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
    (void)shared;
    *lock = 1;
    return 0;
}

EXPORT int pthread_spin_destroy(pthread_spinlock_t *lock)
{
    (void)lock;
    return 0;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (pal.quiet) {
        *lock = is_early() ? 0 : *lock;
        return 0;
    }
    uint64_t place = CALLER, head = HEAD(K_LOCKED, O_ACQUIRE, 4);
    pal_await((const void *)lock, spin_is_free, ((uint64_t)lock & ADDRESS_BITS) | head, place);
    log_chosen((const void *)lock, head, place);
    *lock = 0;
    pal_changed((const void *)lock);
    return 0;
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    if (pal.quiet) {
        int fails = is_early() && *lock != 1;
        *lock = is_early() ? 0 : *lock;
        return fails ? EBUSY : 0;
    }
    uint64_t place = CALLER, head = HEAD(K_LOCKED, O_ACQUIRE, 4);
    pal_writes_if(1, sizeof *lock);
    pal_decide(((uint64_t)lock & ADDRESS_BITS) | head, pal_at(place) | F_CHOSEN);
    if (*lock != 1) {
        log_chosen((const void *)lock, HEAD(K_LOCKED_LOAD, O_RELAXED, 4), place);
        return EBUSY;
    }
    log_chosen((const void *)lock, head, place);
    *lock = 0;
    pal_changed((const void *)lock);
    return 0;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    pal_event((uint64_t)lock, HEAD(K_STORE, O_RELEASE, 4), CALLER);
    *lock = 1;
    if (pal.self->pending) {
        pal_wakes();
    } else {
        pal_changed((const void *)lock);
    }
    return 0;
}
