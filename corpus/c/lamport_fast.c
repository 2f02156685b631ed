// Lamport's fast mutual exclusion: seven memory accesses if nobody else wants to enter.
// Source: L. Lamport, "A fast mutual exclusion algorithm", ACM TOCS 1987.
// BROKEN_1: the stores to x and y are release stores, without fences.
// BROKEN_2: the slow path does not check y again.
// BROKEN_3: the slow path does not wait for the others.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define THREADS 2
#ifndef ROUNDS
#define ROUNDS 2
#endif

#ifdef BROKEN_1
#define STORE memory_order_release
#else
#define STORE memory_order_seq_cst
#endif

static atomic_int wants[THREADS + 1];
static atomic_int x, y;
static volatile int counter;

static int get(atomic_int *variable)
{
    return atomic_load_explicit(variable, memory_order_seq_cst);
}

static void lock(int me)
{
    for (;;) {
        atomic_store_explicit(&wants[me], 1, memory_order_relaxed);
        atomic_store_explicit(&x, me, STORE);
        if (get(&y) != 0) {
            atomic_store_explicit(&wants[me], 0, memory_order_release);
            while (get(&y) != 0) {
            }
            continue;
        }
        atomic_store_explicit(&y, me, STORE);
        if (get(&x) == me) {
            return;
        }
        atomic_store_explicit(&wants[me], 0, memory_order_release);
#ifndef BROKEN_3
        for (int j = 1; j <= THREADS; j++) {
            while (get(&wants[j])) {
            }
        }
#endif
#ifdef BROKEN_2
        return;
#else
        if (get(&y) == me) {
            return;
        }
        while (get(&y) != 0) {
        }
#endif
    }
}

static void unlock(int me)
{
    atomic_store_explicit(&y, 0, memory_order_release);
    atomic_store_explicit(&wants[me], 0, memory_order_release);
}

static void *work(void *argument)
{
    int me = 1 + (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        lock(me);
        counter++;
        unlock(me);
    }
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
    assert(counter == THREADS * ROUNDS);
    return 0;
}
