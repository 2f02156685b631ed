#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 3
#endif

atomic_int taken;
int counter;

static void lock(void)
{
    while (atomic_exchange_explicit(&taken, 1, memory_order_acquire)) {
        while (atomic_load_explicit(&taken, memory_order_relaxed)) {
        }
    }
}

static void unlock(void)
{
    atomic_store_explicit(&taken, 0, memory_order_release);
}

static void *count(void *argument)
{
    lock();
    counter++;
    unlock();
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    assert(counter == THREADS);
    return 0;
}
