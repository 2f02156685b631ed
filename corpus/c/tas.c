// Test-and-set spinlock: an atomic exchange takes the lock, a release store gives it back.
// Source: M. Herlihy, N. Shavit, "The Art of Multiprocessor Programming", 2008, section 7.2.
// BROKEN_1: the exchange is split into a load and a store.
// BROKEN_2: the store that gives the lock back is relaxed.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 3
#endif

static atomic_int locked;
static volatile int counter;

static void lock(void)
{
#ifdef BROKEN_1
    while (atomic_load_explicit(&locked, memory_order_acquire)) {
    }
    atomic_store_explicit(&locked, 1, memory_order_release);
#else
    while (atomic_exchange_explicit(&locked, 1, memory_order_acquire)) {
    }
#endif
}

static void unlock(void)
{
#ifdef BROKEN_2
    atomic_store_explicit(&locked, 0, memory_order_relaxed);
#else
    atomic_store_explicit(&locked, 0, memory_order_release);
#endif
}

static void *work(void *unused)
{
    lock();
    counter++;
    unlock();
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], 0, work, 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
    }
    assert(counter == THREADS);
    return 0;
}
