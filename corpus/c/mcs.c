// MCS queue lock: every thread waits at a node of its own, and the holder wakes its successor.
// Source: J. Mellor-Crummey, M. Scott, "Algorithms for scalable synchronization on shared-memory
// multiprocessors", ACM TOCS 1991, section 2.4.
// BROKEN_1: the exchange that enters the queue is split into a load and a store.
// BROKEN_2: the node is linked before it is marked as waiting; the wake-up can be lost.
// BROKEN_3: the store that links the node is relaxed; PSO can lose the wake-up.
// BROKEN_4: the store that wakes the successor is relaxed.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 2
#endif

#ifdef BROKEN_3
#define LINK memory_order_relaxed
#else
#define LINK memory_order_release
#endif
#ifdef BROKEN_4
#define WAKE memory_order_relaxed
#else
#define WAKE memory_order_release
#endif

struct node {
    _Atomic(struct node *) next;
    atomic_int waiting;
};

static _Atomic(struct node *) tail;
static struct node nodes[THREADS];
static volatile int owner, counter;

static void lock(struct node *mine)
{
    atomic_store_explicit(&mine->next, 0, memory_order_relaxed);
#ifdef BROKEN_1
    struct node *before = atomic_load_explicit(&tail, memory_order_acquire);
    atomic_store_explicit(&tail, mine, memory_order_release);
#else
    struct node *before = atomic_exchange_explicit(&tail, mine, memory_order_acq_rel);
#endif
    if (before) {
#ifdef BROKEN_2
        atomic_store_explicit(&before->next, mine, LINK);
        atomic_store_explicit(&mine->waiting, 1, memory_order_relaxed);
#else
        atomic_store_explicit(&mine->waiting, 1, memory_order_relaxed);
        atomic_store_explicit(&before->next, mine, LINK);
#endif
        while (atomic_load_explicit(&mine->waiting, memory_order_acquire)) {
        }
    }
}

static void unlock(struct node *mine)
{
    struct node *after = atomic_load_explicit(&mine->next, memory_order_acquire);
    if (!after) {
        struct node *expected = mine;
        if (atomic_compare_exchange_strong_explicit(&tail, &expected, 0, memory_order_release,
                                                    memory_order_relaxed)) {
            return;
        }
        do {
            after = atomic_load_explicit(&mine->next, memory_order_acquire);
        } while (!after);
    }
    atomic_store_explicit(&after->waiting, 0, WAKE);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    struct node *mine = &nodes[me];
    lock(mine);
    owner = me;
    counter++;
    assert(owner == me);
    unlock(mine);
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
