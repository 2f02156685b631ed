/* Threads: starting, ending and joining them, and what is destroyed together with a thread. */

#include "palisade.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

enum { MAX_KEYS = 1024, DESTRUCTOR_ROUNDS = 4 };

static void (*key_destructors[MAX_KEYS])(void *);
static unsigned key_end; /* one more than the last key with a destructor */

struct thread *pal_thread_of(pthread_t pthread)
{
    for (int i = pal.thread_count - 1; i >= 0; i--) {
        struct thread *thread = pal.threads[i];
        if (thread->pthread == pthread && !thread->joined) {
            return thread;
        }
    }
    return NULL;
}

/* The number of the next thread that a thread starts. It is the same in every execution of a search. */
static int number_of_child(struct thread *parent)
{
    struct shared *shared = pal.shared;
    uint32_t sibling = parent->children++;
    for (uint32_t i = 1; i < shared->names; i++) {
        if (shared->parents[i] == parent->number && shared->siblings[i] == sibling) {
            return (int)i;
        }
    }
    if (shared->names >= MAX_THREADS || pal.thread_count >= MAX_THREADS) {
        pal_stop(R_UNSUPPORTED, "the program starts more than 4095 threads");
    }
    shared->parents[shared->names] = parent->number;
    shared->siblings[shared->names] = sibling;
    return (int)shared->names++;
}

/* The step was taken, but no thread was started. */
static int not_started(int error, uint64_t second)
{
    if (!pal.quiet) {
        pal_log(HEAD(K_PAUSE, O_PLAIN, 0), second);
    }
    return error;
}

int pal_create(pthread_t *pthread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument, int is_c11,
               uint64_t place)
{
    pal_refuse_thread();
    place = pal_outside(place);
    while (pal.zombies) {
        struct thread *zombie = pal.zombies;
        pal.zombies = zombie->next;
        pal_release_kernel_thread(zombie);
    }
    struct thread *thread, *self = pal.self;
    uint64_t first = HEAD(K_START, O_SEQ_CST, 0), second = pal_at(place) | F_CHOSEN;
    if (!pal.quiet) {
        pal_decide(first, second);
    }
    size_t size = 0;
    void *given = NULL;
    if (attributes) {
        pthread_attr_getstack(attributes, &given, &size);
        /* If no stack was given, the C library returns one that ends at address 0. */
        given = (uint64_t)given + size ? given : NULL;
        if (!given) {
            pthread_attr_getstacksize(attributes, &size);
        }
    }
    /* Threads are numbered when they are started, not when their parents reach this function. So a schedule
     * can be repeated with these numbers. */
    uint32_t number = (uint32_t)number_of_child(self);
    int error = pal_make_thread(number, given ? 0 : pal_stack_size(size), &thread);
    if (error) {
        return not_started(error, second);
    }
    thread->given_stack = given;
    thread->start = start;
    thread->argument = argument;
    thread->is_c11 = is_c11;
    int state = PTHREAD_CREATE_JOINABLE;
    if (attributes) {
        pthread_attr_getdetachstate(attributes, &state);
    }
    thread->detached = state == PTHREAD_CREATE_DETACHED;
    thread->number = number;
    thread->tag = (uint64_t)thread->number << 48;
    thread->parent = self->number;
    thread->sibling = self->children - 1;
    error = pal_start_kernel_thread(thread, attributes);
    if (error) {
        pal_unmake_thread(thread);
        return not_started(error, second);
    }
    if (!pal.quiet) {
        pal_log(first | number, second);
    }
    *pthread = thread->pthread;
    thread->first = HEAD(K_PAUSE, O_PLAIN, 0);
    /* As if it had been called from its first instruction. */
    thread->second = (((uint64_t)start + 1) & ADDRESS_BITS) | thread->tag | F_CHOSEN;
    self->unjoined++;
    /* What was announced while it was the only thread was not awaited. */
    self->announced_count = 0;
    pal_add_thread(thread);
    return 0;
}

void pal_forget_stack(struct thread *thread)
{
    pthread_attr_t attributes;
    void *from;
    size_t size;
    if (thread->number && thread->stack_size) {
        pal_also((uint64_t)thread->stack_low, HEAD(K_FREE, O_PLAIN, 0), thread->stack_size);
    } else if (thread->number && !pthread_getattr_np(thread->pthread, &attributes)) {
        if (!pthread_attr_getstack(&attributes, &from, &size)) {
            pal_also((uint64_t)from, HEAD(K_FREE, O_PLAIN, 0), size);
        }
        pthread_attr_destroy(&attributes);
    }
}

/* Runs the destructors of the thread's thread-local storage. */
static void destroy_locals(struct thread *thread)
{
    while (thread->cleanups) {
        struct cleanup *cleanup = thread->cleanups;
        thread->cleanups = cleanup->next;
        cleanup->call(cleanup->argument);
        pal_release(cleanup);
    }
    for (int round = 0, again = 1; again && round < DESTRUCTOR_ROUNDS; round++) {
        again = 0;
        for (unsigned key = 0; key < key_end; key++) {
            void *value = key_destructors[key] ? pthread_getspecific(key) : NULL;
            if (value) {
                pthread_setspecific(key, NULL);
                key_destructors[key](value);
                again = 1;
            }
        }
    }
}

static struct thread *child_of(const struct thread *parent, uint32_t sibling)
{
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->number && thread->parent == parent->number && thread->sibling == sibling) {
            return thread;
        }
    }
    return NULL;
}

static int has_ended(struct thread *self)
{
    return ((const struct thread *)self->object)->ended || self->timed_out;
}

/* The first thread has ended by itself, and the process would end with the last thread. Which one is last
 * depends on the schedule. So the first thread stays, waits for all others and ends the process. It waits for
 * them in an order that is always the same, whether they have ended already or not. */
static __attribute__((noreturn)) void end_first(uint64_t place)
{
    static struct thread *known[MAX_THREADS];
    struct thread *self = pal.self;
    int count = 0;
    self->ended = 1;
    self->timed_out = 0;
    pal_changed(self);
    known[count++] = self;
    for (int i = 0; i < count; i++) {
        for (uint32_t sibling = 0; sibling < known[i]->children; sibling++) {
            struct thread *child = child_of(known[i], sibling);
            if (child) {
                uint64_t first = HEAD(K_JOIN, O_ACQUIRE, 0) | child->number;
                pal_await(child, has_ended, first, place);
                pal_log(first, pal_at(place) | F_CHOSEN);
                known[count++] = child;
            }
        }
    }
    exit(0);
}

/* The last step of a thread. */
void pal_end_thread(void *result, uint64_t place)
{
    struct thread *self = pal.self;
    destroy_locals(self);
    pal_dies_holding(place);
    self->result = result;
    if (self->stack_size) {
        /* Its stack and its thread-local variables end with it. */
        pal_add_range((uint64_t)self->stack_low, self->stack_size, K_FREE);
    }
    pal_event(self->number, HEAD(K_ENDED, O_PLAIN, 0), place);
    if (!self->number) {
        end_first(place);
    }
    pal_leave();
    __builtin_unreachable();
}

void pal_thread_main(struct thread *thread)
{
    /* The thread has been chosen for the first time. */
    pal_log(thread->first, thread->second);
    thread->first = thread->second = 0;
    void *result = thread->start(thread->argument);
    pal_end_thread(result, 0);
}

EXPORT int pthread_create(pthread_t *pthread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    return pal_create(pthread, attributes, start, argument, 0, CALLER);
}

int pal_join(pthread_t pthread, void **result, uint64_t deadline, uint64_t place)
{
    struct thread *self = pal.self, *thread = pal_thread_of(pthread);
    place = pal_outside(place);
    if (!thread) {
        return ESRCH;
    }
    if (thread->detached) {
        return EINVAL;
    }
    if (thread == self) {
        return EDEADLK;
    }
    if (pal.quiet) {
        return 0;
    }
    self->deadline = deadline;
    self->timed_out = 0;
    uint64_t second = pal_at(place) | F_CHOSEN;
    pal_await(thread, has_ended, HEAD(K_JOIN, O_ACQUIRE, 0) | thread->number, place);
    if (!thread->ended) {
        pal_log(HEAD(K_PAUSE, O_PLAIN, 0), second);
        return ETIMEDOUT;
    }
    pal_log(HEAD(K_JOIN, O_ACQUIRE, 0) | thread->number, second);
    if (result) {
        *result = thread->result;
    }
    thread->joined = 1;
    if (thread->number && thread->parent == self->number) {
        self->unjoined += thread->unjoined - 1;
    }
    if (thread->number) {
        pal_release_kernel_thread(thread);
    }
    return 0;
}

EXPORT int pthread_join(pthread_t pthread, void **result)
{
    return pal_join(pthread, result, 0, CALLER);
}

EXPORT int pthread_tryjoin_np(pthread_t pthread, void **result)
{
    struct thread *thread = pal_thread_of(pthread);
    if (thread && !thread->ended && !pal.quiet) {
        uint64_t second = pal_at(CALLER) | F_CHOSEN;
        pal_decide(HEAD(K_JOIN, O_ACQUIRE, 0) | thread->number, second);
        pal_log(HEAD(K_PAUSE, O_PLAIN, 0), second);
        if (!thread->ended) {
            return EBUSY;
        }
    }
    return pal_join(pthread, result, 0, CALLER);
}

EXPORT int pthread_timedjoin_np(pthread_t pthread, void **result, const struct timespec *time)
{
    return pal_join(pthread, result, pal_deadline(CLOCK_REALTIME, time), CALLER);
}

EXPORT int pthread_clockjoin_np(pthread_t pthread, void **result, clockid_t clock, const struct timespec *time)
{
    return pal_join(pthread, result, pal_deadline(clock, time), CALLER);
}

EXPORT int pthread_detach(pthread_t pthread)
{
    static int (*detach)(pthread_t);
    struct thread *thread = pal_thread_of(pthread);
    if (!thread) {
        return ESRCH;
    }
    if (thread->detached) {
        return EINVAL;
    }
    if (!detach) {
        detach = pal_next("pthread_detach");
    }
    thread->detached = 1;
    if (thread->number && !thread->is_prepared) {
        detach(pthread);
        if (thread->finished && !pal.token_mode) {
            pal_release_kernel_thread(thread);
        }
    }
    return 0;
}

/* `pthread_exit`. In C, the handlers of pthread_cleanup_push are jump buffers. In C++, they are objects, and
 * unwinding destroys them like all others. */

struct exit_state {
    struct _Unwind_Exception exception;
    void *result;
    uint64_t place;
};

static _Unwind_Reason_Code unwind_step(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                       struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *state)
{
    (void)version, (void)class, (void)exception, (void)context;
    struct exit_state *exit_state = state;
    if (actions & _UA_END_OF_STACK) {
        pal_end_thread(exit_state->result, exit_state->place);
    }
    return _URC_NO_REASON;
}

typedef _Unwind_Reason_Code forced(struct _Unwind_Exception *, _Unwind_Stop_Fn, void *);
static forced *unwind;

/* The library that unwinds stacks is loaded before any code of the program runs. Otherwise, the thread that
 * needs it first would have memory that others do not have. */
void pal_begin_unwinding(void)
{
    unwind = pal_next("_Unwind_ForcedUnwind");
}

static __attribute__((noreturn)) void leave_thread(void *result, uint64_t place)
{
    struct thread *self = pal.self;
    __pthread_unwind_buf_t *buffer = self->cancel_buffers;
    if (buffer) {
        pal_leaves_once(buffer);
        self->cancel_buffers = buffer->__pad[0];
        self->result = result;
        _longjmp((struct __jmp_buf_tag *)(void *)buffer->__cancel_jmp_buf, 1);
    }
    /* The stack of the first thread ends in the C library, where nothing has to be destroyed. */
    static struct exit_state states[MAX_THREADS];
    struct exit_state *state = &states[self->number];
    state->result = result;
    state->place = place;
    if (unwind) {
        unwind(&state->exception, unwind_step, state);
    }
    pal_end_thread(result, place);
}

EXPORT void pthread_exit(void *result)
{
    pal_leaves_handler("the program ends a thread from a signal handler, which cannot be followed");
    leave_thread(result, CALLER);
}

EXPORT void __pthread_register_cancel(__pthread_unwind_buf_t *buffer)
{
    buffer->__pad[0] = pal.self->cancel_buffers;
    pal.self->cancel_buffers = buffer;
}

EXPORT void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer)
{
    pal.self->cancel_buffers = buffer->__pad[0];
}

EXPORT void __pthread_unwind_next(__pthread_unwind_buf_t *buffer)
{
    (void)buffer;
    leave_thread(pal.self->result, CALLER);
}

EXPORT int pthread_cancel(pthread_t pthread)
{
    (void)pthread;
    pal_stop(R_UNSUPPORTED, "the program cancels a thread (pthread_cancel), which cannot be followed");
}

/* Thread-local storage with destructors. */

EXPORT int __cxa_thread_atexit_impl(void (*call)(void *), void *argument, void *library)
{
    (void)library;
    struct cleanup *cleanup = pal_allocate(sizeof *cleanup, 0);
    if (!cleanup) {
        return -1;
    }
    cleanup->call = call;
    cleanup->argument = argument;
    cleanup->next = pal.self->cleanups;
    pal.self->cleanups = cleanup;
    return 0;
}

EXPORT int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    static int (*create)(pthread_key_t *, void (*)(void *));
    if (!create) {
        create = pal_next("pthread_key_create");
    }
    int error = create(key, NULL);
    if (!error && *key < MAX_KEYS) {
        key_destructors[*key] = destructor;
        key_end = destructor && *key >= key_end ? *key + 1 : key_end;
    }
    return error;
}

EXPORT int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    return pthread_key_create(key, destructor);
}

EXPORT int pthread_key_delete(pthread_key_t key)
{
    static int (*delete)(pthread_key_t);
    if (!delete) {
        delete = pal_next("pthread_key_delete");
    }
    if (key < MAX_KEYS) {
        key_destructors[key] = NULL;
    }
    return delete(key);
}

EXPORT int pthread_setspecific(pthread_key_t key, const void *value)
{
    static int (*set)(pthread_key_t, const void *);
    if (!set) {
        set = pal_next("pthread_setspecific");
    }
    pal_changes_outside();
    return set(key, value);
}

EXPORT pid_t gettid(void)
{
    pal_unrestorable();
    return pal.self ? pal.self->kernel_id : (pid_t)pal_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

EXPORT int sched_yield(void)
{
    if (!pal.quiet) {
        pal_yield();
        pal_event(0, HEAD(K_PAUSE, O_PLAIN, 0), CALLER);
    }
    return 0;
}
