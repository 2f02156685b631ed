// Ticket lock: fetch-and-add hands out tickets, which are served in order.
// Source: D. Reed, R. Kanodia, "Synchronization with eventcounts and sequencers", CACM 1979;
// J. Mellor-Crummey, M. Scott, ACM TOCS 1991, section 2.2.
// BROKEN_1: the fetch-and-add is split into a load and a store.
// BROKEN_2: the store that serves the next ticket is relaxed.
// BROKEN_3: the next ticket is served before the critical section ends.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 3
#endif

#ifdef BROKEN_2
#define SERVE memory_order_relaxed
#else
#define SERVE memory_order_release
#endif

static atomic_uint next, serving;
static volatile int counter;

static void lock(void)
{
#ifdef BROKEN_1
    unsigned mine = atomic_load_explicit(&next, memory_order_relaxed);
    atomic_store_explicit(&next, mine + 1, memory_order_release);
#else
    unsigned mine = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
#endif
    while (atomic_load_explicit(&serving, memory_order_acquire) != mine) {
    }
}

static void unlock(void)
{
    unsigned now = atomic_load_explicit(&serving, memory_order_relaxed);
    atomic_store_explicit(&serving, now + 1, SERVE);
}

static void *work(void *unused)
{
    lock();
#ifdef BROKEN_3
    unlock();
    counter++;
#else
    counter++;
    unlock();
#endif
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
