// Dekker's mutual exclusion for two threads, with sequentially consistent flags.
// Source: E. W. Dijkstra, "Cooperating sequential processes", EWD 123, 1965 (Dekker's solution).
// BROKEN_1: the flags are raised with release stores.
// BROKEN_2: the turn is not passed on; a thread can wait for it forever.
// BROKEN_3: the flag is lowered with a relaxed store.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_1
#define RAISE memory_order_release
#else
#define RAISE memory_order_seq_cst
#endif
#ifdef BROKEN_3
#define LOWER memory_order_relaxed
#else
#define LOWER memory_order_release
#endif

static atomic_int flag[2];
static atomic_int turn;
static volatile int counter;

static void lock(int me)
{
    atomic_store_explicit(&flag[me], 1, RAISE);
    while (atomic_load_explicit(&flag[1 - me], memory_order_seq_cst)) {
        if (atomic_load_explicit(&turn, memory_order_acquire) != me) {
            atomic_store_explicit(&flag[me], 0, memory_order_release);
            while (atomic_load_explicit(&turn, memory_order_acquire) != me) {
            }
            atomic_store_explicit(&flag[me], 1, RAISE);
        }
    }
}

static void unlock(int me)
{
#ifndef BROKEN_2
    atomic_store_explicit(&turn, 1 - me, memory_order_relaxed);
#endif
    atomic_store_explicit(&flag[me], 0, LOWER);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    lock(me);
    counter++;
    unlock(me);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, work, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    assert(counter == 2);
    return 0;
}
