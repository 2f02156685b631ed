/* Steps that write only under a condition, and only read otherwise. */

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

static atomic_int x, y;
static _Atomic long long wide;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static sem_t semaphore;

static void compare(int expected, int value)
{
    atomic_compare_exchange_strong(&y, &expected, value);
}

#ifdef ATTEMPTS
static void *writer(void *argument)
{
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    atomic_store_explicit(&y, 0, memory_order_relaxed);
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    return argument;
}

static void *second(void *argument)
{
    compare(2, 3);
    return argument;
}

static void *third(void *argument)
{
    compare(1, 2);
    return argument;
}

static void *reader(void *argument)
{
    if (atomic_load_explicit(&y, memory_order_relaxed) > 2) {
        atomic_store_explicit(&x, 2, memory_order_relaxed);
    }
    return argument;
}
#else
/* All of these fail: memory holds 0, and the locks are taken. */
static void *attempt(void *argument)
{
    long long expected = 1;
#if defined STRONG
    compare(1, 2);
    (void)expected;
#elif defined WEAK
    atomic_compare_exchange_weak(&wide, &expected, 2);
#elif defined MUTEX
    expected = pthread_mutex_trylock(&mutex);
#elif defined SPINLOCK
    expected = pthread_spin_trylock(&spinlock);
#elif defined READ
    expected = pthread_rwlock_tryrdlock(&rwlock);
#elif defined WRITE
    expected = pthread_rwlock_trywrlock(&rwlock);
#elif defined SEMAPHORE
    expected = sem_trywait(&semaphore);
#endif
    return argument;
}
#endif

int main(void)
{
#ifdef ATTEMPTS
    void *(*bodies[])(void *) = {writer, second, third, reader};
#else
    void *(*bodies[])(void *) = {attempt, attempt, attempt};
#endif
    enum { COUNT = sizeof bodies / sizeof *bodies };
    pthread_t threads[COUNT];
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    pthread_spin_init(&spinlock, 0);
    pthread_spin_lock(&spinlock);
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
