/* Every kind of object that POSIX threads wait for, used correctly. */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t full, empty;
static int counter, shared, spun, made, destroyed, cleaned, item, ready, waiting;

static void make(void) { made++; }

static void destroy(void *value)
{
    pthread_mutex_lock(&mutex);
    destroyed++;
    pthread_mutex_unlock(&mutex);
    free(value);
}

static void clean(void *value) { *(int *)value += 1; }

static void *counts(void *argument)
{
    pthread_once(&once, make);
    assert(made == 1);
    pthread_setspecific(key, malloc(16));
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
    }
    int serial = pthread_barrier_wait(&barrier);
    assert(serial == 0 || serial == PTHREAD_BARRIER_SERIAL_THREAD);
    pthread_mutex_lock(&mutex);
    assert(counter >= 6);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *reads(void *argument)
{
    pthread_rwlock_rdlock(&rwlock);
    int seen = shared;
    assert(seen == shared);
    pthread_rwlock_unlock(&rwlock);
    return argument;
}

static void *writes(void *argument)
{
    pthread_rwlock_wrlock(&rwlock);
    shared++;
    shared++;
    pthread_rwlock_unlock(&rwlock);
    return argument;
}

static void *produces(void *argument)
{
    for (int i = 1; i <= 3; i++) {
        while (sem_wait(&empty)) {
        }
        item = i;
        sem_post(&full);
    }
    return argument;
}

static void *consumes(void *argument)
{
    for (int i = 1; i <= 3; i++) {
        sem_wait(&full);
        assert(item == i);
        sem_post(&empty);
    }
    return argument;
}

static void *waits(void *argument)
{
    pthread_mutex_lock(&mutex);
    waiting++;
    while (!ready) {
        pthread_cond_wait(&cond, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *leaves(void *argument)
{
    pthread_cleanup_push(clean, &cleaned);
    pthread_exit(argument);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *sleeps(void *argument)
{
    usleep(1000);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void together(int count, void *(*functions[])(void *))
{
    pthread_t threads[8];
    for (int i = 0; i < count; i++) {
        assert(!pthread_create(&threads[i], NULL, functions[i], &threads[i]));
    }
    for (int i = 0; i < count; i++) {
        void *result;
        assert(!pthread_join(threads[i], &result));
        assert(result == &threads[i]);
    }
}

static void *late(void *argument)
{
    sem_post(argument);
    return NULL;
}

int main(void)
{
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_key_create(&key, destroy);
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 1);

    together(2, (void *(*[])(void *)){counts, counts});
    assert(counter == 6 && spun == 6 && made == 1 && destroyed == 2);
    together(3, (void *(*[])(void *)){reads, writes, writes});
    assert(shared == 4);
    together(2, (void *(*[])(void *)){produces, consumes});
    together(4, (void *(*[])(void *)){waits, waits, sleeps, leaves});
    assert(waiting == 2 && cleaned == 1);

    /* Waits that time out. */
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 3600;
    pthread_mutex_lock(&mutex);
    assert(pthread_cond_timedwait(&cond, &mutex, &time) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    assert(sem_timedwait(&full, &time) == -1 && errno == ETIMEDOUT);
    assert(sem_trywait(&full) == -1 && errno == EAGAIN);

    /* Kinds of mutexes. */
    pthread_mutexattr_t attributes;
    pthread_mutex_t other;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&other, &attributes);
    assert(!pthread_mutex_lock(&other) && !pthread_mutex_lock(&other) && !pthread_mutex_trylock(&other));
    assert(!pthread_mutex_unlock(&other) && !pthread_mutex_unlock(&other) && !pthread_mutex_unlock(&other));
    assert(pthread_mutex_unlock(&other) == EPERM);
    pthread_mutex_destroy(&other);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&other, &attributes);
    assert(!pthread_mutex_lock(&other) && pthread_mutex_lock(&other) == EDEADLK && pthread_mutex_trylock(&other) == EBUSY);
    assert(!pthread_mutex_unlock(&other));

    /* A thread that is never joined. */
    pthread_t detached;
    pthread_create(&detached, NULL, late, &full);
    pthread_detach(detached);
    sem_wait(&full);

    /* Heap memory, allocated in all ways. */
    char *memory = calloc(3, 100);
    memory = realloc(memory, 5000);
    memory[4999] = 1;
    assert(memory[299] == 0);
    void *aligned;
    assert(!posix_memalign(&aligned, 4096, 10) && (size_t)aligned % 4096 == 0);
    memset(aligned, 7, 10);
    memcpy(memory, aligned, 10);
    memmove(memory + 1, memory, 10);
    assert(memory[10] == 7 && memcmp(memory, aligned, 10) == 0);
    free(memory);
    free(aligned);
    return 0;
}
