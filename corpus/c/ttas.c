// Test-and-test-and-set spinlock: threads read until the lock looks free, and only then try to take it.
// Source: L. Rudolph, Z. Segall, "Dynamic decentralized cache schemes for MIMD parallel processors",
// ISCA 1984.
// BROKEN_1: the result of the exchange is ignored.
// BROKEN_2: the lock is not taken around the second thread's critical section.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 3
#endif

static atomic_int locked;
static int owner;
static int counter;

static void lock(void)
{
#ifdef BROKEN_1
    while (atomic_load_explicit(&locked, memory_order_relaxed)) {
    }
    atomic_exchange_explicit(&locked, 1, memory_order_acquire);
#else
    do {
        while (atomic_load_explicit(&locked, memory_order_relaxed)) {
        }
    } while (atomic_exchange_explicit(&locked, 1, memory_order_acquire));
#endif
}

static void unlock(void)
{
    atomic_store_explicit(&locked, 0, memory_order_release);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
#ifdef BROKEN_2
    if (me != 1)
#endif
        lock();
    owner = me;
    counter++;
    assert(owner == me);
    unlock();
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], 0, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
    }
    assert(counter == THREADS);
    return 0;
}
