// Spinlock with the old builtins of gcc and a volatile word, as found in much older code.
// Source: the manual of gcc, "Legacy __sync built-in functions for atomic memory access".
// BROKEN_1: the lock is given back by a plain volatile store.
// BROKEN_2: the lock is taken by a test and a store.
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 2
#endif

static volatile int locked;
static volatile int counter;

static void lock(void)
{
#ifdef BROKEN_2
    while (locked) {
    }
    locked = 1;
#else
    while (__sync_lock_test_and_set(&locked, 1)) {
        while (locked) {
        }
    }
#endif
}

static void unlock(void)
{
#ifdef BROKEN_1
    locked = 0;
#else
    __sync_lock_release(&locked);
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
