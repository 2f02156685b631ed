/* Dekker's algorithm with relaxed atomics and no fences: correct under SC, broken by store buffers. */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef ROUNDS
#define ROUNDS 2
#endif

#ifdef FENCED
#define FENCE() atomic_thread_fence(memory_order_seq_cst)
#else
#define FENCE()
#endif

static atomic_int flag[2], turn;
static int inside;

static void lock(int me)
{
    atomic_store_explicit(&flag[me], 1, memory_order_relaxed);
    FENCE();
    while (atomic_load_explicit(&flag[1 - me], memory_order_relaxed)) {
        if (atomic_load_explicit(&turn, memory_order_relaxed) != me) {
            atomic_store_explicit(&flag[me], 0, memory_order_relaxed);
            FENCE();
            while (atomic_load_explicit(&turn, memory_order_relaxed) != me) {
            }
            atomic_store_explicit(&flag[me], 1, memory_order_relaxed);
            FENCE();
        }
    }
    atomic_thread_fence(memory_order_acquire);
}

static void unlock(int me)
{
    atomic_store_explicit(&turn, 1 - me, memory_order_release);
    atomic_store_explicit(&flag[me], 0, memory_order_release);
}

static void *run(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        lock(me);
        assert(inside == 0);
        inside = 1;
        inside = 0;
        unlock(me);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, run, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
