// Lamport's bakery: draw a number larger than all others, and wait for those with smaller numbers.
// Source: L. Lamport, "A new solution of Dijkstra's concurrent programming problem", CACM 1974.
// BROKEN_1: the number is stored without a fence after it.
// BROKEN_2: the announcement is stored without a fence after it.
// BROKEN_3: numbers are drawn without announcing it.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef THREADS
#define THREADS 2
#endif

#ifdef BROKEN_1
#define NUMBER memory_order_release
#else
#define NUMBER memory_order_seq_cst
#endif
#ifdef BROKEN_2
#define ANNOUNCE memory_order_release
#else
#define ANNOUNCE memory_order_seq_cst
#endif

static atomic_bool choosing[THREADS];
static atomic_int number[THREADS];
static volatile int counter;

static void lock(int me)
{
    int mine = 0;
#ifndef BROKEN_3
    atomic_store_explicit(&choosing[me], true, ANNOUNCE);
#endif
    for (int j = 0; j < THREADS; j++) {
        int other = atomic_load_explicit(&number[j], memory_order_seq_cst);
        mine = other > mine ? other : mine;
    }
    mine++;
    atomic_store_explicit(&number[me], mine, NUMBER);
    atomic_store_explicit(&choosing[me], false, memory_order_release);
    for (int j = 0; j < THREADS; j++) {
        int other;
        while (atomic_load_explicit(&choosing[j], memory_order_seq_cst)) {
        }
        do {
            other = atomic_load_explicit(&number[j], memory_order_seq_cst);
        } while (other != 0 && (other < mine || (other == mine && j < me)));
    }
}

static void unlock(int me)
{
    atomic_store_explicit(&number[me], 0, memory_order_release);
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
