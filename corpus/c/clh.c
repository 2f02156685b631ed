// CLH queue lock: every thread waits at its predecessor's node, and takes that node over when it leaves.
// Source: T. Craig, TR 93-02-02, University of Washington, 1993;
// P. Magnusson, A. Landin, E. Hagersten, IPPS 1994.
// BROKEN_1: the exchange that enters the queue is split into a load and a store.
// BROKEN_2: the node is marked as busy only after it is in the queue.
// BROKEN_3: the store that gives the lock back is relaxed.
// BROKEN_4: a thread uses its own node again instead of its predecessor's; it can wait forever.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 2
#endif
#define ROUNDS 2

#ifdef BROKEN_3
#define UNLOCK memory_order_relaxed
#else
#define UNLOCK memory_order_release
#endif

struct node {
    atomic_int busy;
};

static struct node nodes[THREADS + 1];
static _Atomic(struct node *) tail = &nodes[THREADS];
static volatile int counter;

static struct node *lock(struct node *mine)
{
#ifndef BROKEN_2
    atomic_store_explicit(&mine->busy, 1, memory_order_relaxed);
#endif
#ifdef BROKEN_1
    struct node *before = atomic_load_explicit(&tail, memory_order_acquire);
    atomic_store_explicit(&tail, mine, memory_order_release);
#else
    struct node *before = atomic_exchange_explicit(&tail, mine, memory_order_acq_rel);
#endif
#ifdef BROKEN_2
    atomic_store_explicit(&mine->busy, 1, memory_order_relaxed);
#endif
    while (atomic_load_explicit(&before->busy, memory_order_acquire)) {
    }
    return before;
}

static void *work(void *argument)
{
    struct node *mine = &nodes[(long)argument];
    for (int i = 0; i < ROUNDS; i++) {
        struct node *before = lock(mine);
        counter++;
        atomic_store_explicit(&mine->busy, 0, UNLOCK);
#ifdef BROKEN_4
        (void)before;
#else
        mine = before;
#endif
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
