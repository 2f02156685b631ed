/* Locks that are used in the wrong way, and in the right way. The argument says how. */
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
