// Szymanski's mutual exclusion with a waiting room, for two threads.
// Source: B. Szymanski, "A simple solution to Lamport's concurrent programming problem with linear wait",
// ICS 1988.
// BROKEN_1: the stores are release stores, without fences.
// BROKEN_2: a thread does not wait for those before it.
// BROKEN_3: a thread leaves the doorway without letting the others in; both can wait for each other.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_1
#define STORE memory_order_release
#else
#define STORE memory_order_seq_cst
#endif

enum { OUTSIDE, KNOCKING, WAITING, DOORWAY, INSIDE };

static atomic_int state[2];
static volatile int counter;

static int at(int who)
{
    return atomic_load_explicit(&state[who], memory_order_seq_cst);
}

static void lock(int me)
{
    int other = 1 - me;
    atomic_store_explicit(&state[me], KNOCKING, STORE);
    while (at(other) > WAITING) {
    }
    atomic_store_explicit(&state[me], DOORWAY, STORE);
    if (at(other) == KNOCKING) {
#ifndef BROKEN_3
        atomic_store_explicit(&state[me], WAITING, STORE);
#endif
        while (at(other) != INSIDE) {
        }
    }
    atomic_store_explicit(&state[me], INSIDE, STORE);
#ifndef BROKEN_2
    if (me == 1) {
        while (at(other) > KNOCKING) {
        }
    }
#endif
}

static void unlock(int me)
{
    if (me == 0) {
        int seen;
        do {
            seen = at(1);
        } while (seen == WAITING || seen == DOORWAY);
    }
    atomic_store_explicit(&state[me], OUTSIDE, memory_order_release);
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
