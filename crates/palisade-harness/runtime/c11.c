/* C11 threads: the same objects and operations under other names. */

#include "palisade.h"
#include <errno.h>
#include <threads.h>

static int result_of(int error)
{
    switch (error) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

struct call {
    thrd_start_t start;
    void *argument;
};

static void *start_c11(void *argument)
{
    struct call call = *(struct call *)argument;
    pal_release(argument);
    return (void *)(intptr_t)call.start(call.argument);
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    struct call *call = pal_allocate(sizeof *call, 0);
    if (!call) {
        return thrd_nomem;
    }
    *call = (struct call){start, argument};
    return result_of(pal_create(thread, NULL, start_c11, call, 1, CALLER));
}

EXPORT int thrd_join(thrd_t thread, int *result)
{
    void *value;
    int error = pal_join(thread, &value, 0, CALLER);
    if (!error && result) {
        *result = (int)(intptr_t)value;
    }
    return result_of(error);
}

EXPORT int thrd_detach(thrd_t thread)
{
    return result_of(pthread_detach(thread));
}

EXPORT void thrd_exit(int result)
{
    pthread_exit((void *)(intptr_t)result);
}

EXPORT void thrd_yield(void)
{
    extern int sched_yield(void);
    sched_yield();
}

EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
    if (left) {
        *left = (struct timespec){0, 0};
    }
    pal_sleep((uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec, CALLER);
    return 0;
}

EXPORT int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
    return result_of(pthread_mutex_init((pthread_mutex_t *)mutex, &attributes));
}

EXPORT int mtx_lock(mtx_t *mutex)
{
    return result_of(pal_lock((pthread_mutex_t *)mutex, 0, CALLER));
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time)
{
    return result_of(pal_lock((pthread_mutex_t *)mutex, pal_deadline(CLOCK_REALTIME, time), CALLER));
}

EXPORT int mtx_trylock(mtx_t *mutex)
{
    return result_of(pal_try_lock((pthread_mutex_t *)mutex, CALLER));
}

EXPORT int mtx_unlock(mtx_t *mutex)
{
    return result_of(pal_unlock((pthread_mutex_t *)mutex, CALLER));
}

EXPORT void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

EXPORT int cnd_init(cnd_t *cond)
{
    return result_of(pthread_cond_init((pthread_cond_t *)cond, NULL));
}

EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
    return result_of(pal_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, 0, CALLER));
}

EXPORT int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict time)
{
    return result_of(
        pal_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, pal_deadline(CLOCK_REALTIME, time), CALLER));
}

EXPORT int cnd_signal(cnd_t *cond)
{
    return result_of(pal_cond_wake((pthread_cond_t *)cond, 0, CALLER));
}

EXPORT int cnd_broadcast(cnd_t *cond)
{
    return result_of(pal_cond_wake((pthread_cond_t *)cond, 1, CALLER));
}

EXPORT void cnd_destroy(cnd_t *cond)
{
    pthread_cond_destroy((pthread_cond_t *)cond);
}

EXPORT void call_once(once_flag *flag, void (*call)(void))
{
    pal_once((int *)flag, call, CALLER);
}

EXPORT int tss_create(tss_t *key, tss_dtor_t destructor)
{
    return result_of(pthread_key_create(key, destructor));
}

EXPORT void tss_delete(tss_t key)
{
    pthread_key_delete(key);
}
