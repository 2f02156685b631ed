// Peterson's mutual exclusion for two threads.
// Source: G. Peterson, "Myths about the mutual exclusion problem", Information Processing Letters 1981.
// BROKEN_1: there is no fence between the stores and the loads.
// BROKEN_2: the store to turn is relaxed, so that PSO can make it visible before the flag.
// BROKEN_3: turn is stored before the flag.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef ROUNDS
#define ROUNDS 2
#endif

#ifdef BROKEN_2
#define TURN memory_order_relaxed
#else
#define TURN memory_order_release
#endif

static atomic_int flag[2];
static atomic_int turn;
static volatile int counter;

static void lock(int me)
{
    int other = 1 - me;
#ifdef BROKEN_3
    atomic_store_explicit(&turn, other, memory_order_relaxed);
    atomic_store_explicit(&flag[me], 1, memory_order_release);
#else
    atomic_store_explicit(&flag[me], 1, memory_order_relaxed);
    atomic_store_explicit(&turn, other, TURN);
#endif
#ifndef BROKEN_1
    atomic_thread_fence(memory_order_seq_cst);
#endif
    while (atomic_load_explicit(&flag[other], memory_order_acquire) &&
           atomic_load_explicit(&turn, memory_order_acquire) == other) {
    }
}

static void unlock(int me)
{
    atomic_store_explicit(&flag[me], 0, memory_order_release);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        lock(me);
        counter++;
        unlock(me);
    }
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
    assert(counter == 2 * ROUNDS);
    return 0;
}
