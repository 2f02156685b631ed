// Burns' mutual exclusion with one bit per thread.
// Source: J. Burns, N. Lynch, "Mutual exclusion using indivisible reads and writes", Allerton 1980.
// BROKEN_1: the flag is raised without a fence.
// BROKEN_2: the threads before are not checked again after the flag is raised.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef THREADS
#define THREADS 3
#endif

#ifdef BROKEN_1
#define RAISE memory_order_release
#else
#define RAISE memory_order_seq_cst
#endif

static atomic_bool flag[THREADS];
static volatile int counter;

static bool somebody_before(int me)
{
    for (int j = 0; j < me; j++) {
        if (atomic_load_explicit(&flag[j], memory_order_seq_cst)) {
            return true;
        }
    }
    return false;
}

static void lock(int me)
{
    do {
        atomic_store_explicit(&flag[me], false, memory_order_relaxed);
        while (somebody_before(me)) {
        }
        atomic_store_explicit(&flag[me], true, RAISE);
#ifndef BROKEN_2
    } while (somebody_before(me));
#else
    } while (0);
#endif
    for (int j = me + 1; j < THREADS; j++) {
        while (atomic_load_explicit(&flag[j], memory_order_seq_cst)) {
        }
    }
}

static void unlock(int me)
{
    atomic_store_explicit(&flag[me], false, memory_order_release);
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
