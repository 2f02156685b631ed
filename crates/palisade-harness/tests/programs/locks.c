/* Locks that are used in the wrong way, and in the right way. The argument says how. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int flag;

static void *locks(void *nothing)
{
    pthread_mutex_lock(&mutex);
    flag = 1;
    pthread_mutex_unlock(&mutex);
    return nothing;
}

/* Only in some orders is the mutex held by another thread. */
static void *unlocks(void *nothing)
{
    if (flag) {
        pthread_mutex_unlock(&mutex); /* not held */
    }
    return nothing;
}

static void *unlocks_twice(void *nothing)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&mutex); /* twice */
    return nothing;
}

static void *destroys(void *nothing)
{
    pthread_mutex_destroy(&mutex); /* destroyed */
    return nothing;
}

static void *reads(void *nothing)
{
    pthread_rwlock_rdlock(&lock); /* read */
    pthread_rwlock_unlock(&lock);
    return nothing;
}

static void *destroys_other(void *nothing)
{
    pthread_rwlock_destroy(&lock); /* other destroyed */
    return nothing;
}

static void *unlocks_other(void *nothing)
{
    pthread_rwlock_unlock(&lock); /* other not held */
    return nothing;
}

static void *nothing_wrong(void *nothing)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t own;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&own, &checked);
        assert(pthread_mutex_unlock(&own) == EPERM);
        pthread_mutex_destroy(&own);
    }
    return nothing;
}

/* Locks that are taken before `main`. */
static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t early_read = PTHREAD_RWLOCK_INITIALIZER, early_written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t early_spins;

__attribute__((constructor)) static void locks_early(void)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&recursive);
        pthread_rwlock_rdlock(&early_read);
    }
    pthread_mutex_lock(&early);
    pthread_mutex_unlock(&early);
    assert(!pthread_mutex_trylock(&early) && pthread_mutex_trylock(&early) == EBUSY);
    pthread_rwlock_wrlock(&early_written);
    assert(pthread_rwlock_tryrdlock(&early_written) == EBUSY && pthread_rwlock_trywrlock(&early_read) == EBUSY);
    pthread_spin_init(&early_spins, 0);
    pthread_spin_lock(&early_spins);
}

static void *finds_locked(void *nothing)
{
    assert(pthread_mutex_trylock(&early) == EBUSY && pthread_mutex_trylock(&recursive) == EBUSY);
    assert(pthread_rwlock_tryrdlock(&early_written) == EBUSY && pthread_rwlock_trywrlock(&early_read) == EBUSY);
    assert(pthread_spin_trylock(&early_spins) == EBUSY);
    return nothing;
}

static void *finds_unlocked(void *nothing)
{
    assert(!pthread_mutex_trylock(&early) && !pthread_mutex_trylock(&recursive));
    assert(!pthread_rwlock_trywrlock(&early_written) && !pthread_rwlock_trywrlock(&early_read));
    assert(!pthread_spin_trylock(&early_spins));
    pthread_mutex_unlock(&early);
    pthread_mutex_unlock(&recursive);
    return nothing;
}

static void locked_before_main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, finds_locked, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_unlock(&recursive);
        pthread_rwlock_unlock(&early_read);
    }
    pthread_mutex_unlock(&early);
    pthread_rwlock_unlock(&early_written);
    pthread_spin_unlock(&early_spins);
    pthread_create(&thread, NULL, finds_unlocked, NULL);
    pthread_join(thread, NULL);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    void *(*first)(void *) = nothing_wrong, *(*second)(void *) = nothing_wrong;
    if (!strcmp(how, "other-thread")) {
        first = locks;
        second = unlocks;
    } else if (!strcmp(how, "twice")) {
        first = unlocks_twice;
    } else if (!strcmp(how, "destroyed")) {
        first = locks;
        second = destroys;
    } else if (!strcmp(how, "destroyed-other")) {
        first = reads;
        second = destroys_other;
    } else if (!strcmp(how, "before-main")) {
        locked_before_main();
    } else if (!strcmp(how, "other-not-held")) {
        first = unlocks_other;
        second = locks;
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    pthread_mutex_t again = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&again);
    pthread_mutex_unlock(&again);
    pthread_mutex_destroy(&again);
    return 0;
}
