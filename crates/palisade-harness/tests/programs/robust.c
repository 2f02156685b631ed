/* Robust mutexes whose owners end, and semaphores at their maximum. The argument says which. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

static pthread_mutex_t lock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int data, deaths, repairs;

static void *dies(void *nothing)
{
    int error = pthread_mutex_lock(&lock);
    assert(!error || error == EOWNERDEAD);
    data++;
    deaths++;
    pthread_exit(nothing);
}

static void *repairs_it(void *nothing)
{
    int error = pthread_mutex_lock(&lock);
    assert(error == (deaths ? EOWNERDEAD : 0));
    data++;
    if (error) {
        assert(!pthread_mutex_consistent(&lock));
        repairs++;
    }
    assert(pthread_mutex_consistent(&lock) == EINVAL);
    assert(!pthread_mutex_unlock(&lock));
    assert(pthread_mutex_unlock(&lock) == EPERM);
    return nothing;
}

static void *wakes_and_dies(void *nothing)
{
    assert(!pthread_mutex_lock(&lock));
    pthread_cond_signal(&cond);
    return nothing;
}

static void run(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (strcmp(how, "ordinary")) {
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    }
    pthread_mutex_init(&lock, &attributes);
    if (!strcmp(how, "consistent") || !strcmp(how, "ordinary")) {
        run(dies, repairs_it);
        assert(data == 2 && repairs <= 1);
        assert(pthread_mutex_trylock(&lock) == (repairs ? 0 : EOWNERDEAD));
    } else if (!strcmp(how, "lost")) {
        pthread_t thread;
        pthread_create(&thread, NULL, dies, NULL);
        pthread_join(thread, NULL);
        assert(pthread_mutex_trylock(&lock) == EOWNERDEAD);
        assert(!pthread_mutex_unlock(&lock));
        assert(pthread_mutex_lock(&lock) == ENOTRECOVERABLE);
        assert(pthread_mutex_trylock(&lock) == ENOTRECOVERABLE);
        assert(!pthread_mutex_destroy(&lock));
    } else if (!strcmp(how, "waits")) {
        pthread_t thread;
        assert(!pthread_mutex_lock(&lock));
        pthread_create(&thread, NULL, wakes_and_dies, NULL);
        assert(pthread_cond_wait(&cond, &lock) == EOWNERDEAD);
        assert(!pthread_mutex_consistent(&lock) && !pthread_mutex_unlock(&lock));
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "semaphore")) {
        sem_t semaphore;
        assert(!sem_init(&semaphore, 0, SEM_VALUE_MAX));
        assert(sem_post(&semaphore) == -1 && errno == EOVERFLOW);
        assert(!sem_wait(&semaphore) && !sem_post(&semaphore));
    }
    return 0;
}
