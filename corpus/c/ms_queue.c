// Michael and Scott's queue without freeing: every node is used once.
// Source: M. Michael, M. Scott, "Simple, fast, and practical non-blocking and blocking concurrent queue
// algorithms", PODC 1996.
// BROKEN_1: enqueue links the node by a store.
// BROKEN_2: dequeue moves the head by a store.
// BROKEN_3: enqueue fills the node after it has linked it.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef THREADS
#define THREADS 2
#endif

struct node {
    _Atomic(struct node *) next;
    atomic_int value;
};

static struct node dummy, nodes[THREADS];
static _Atomic(struct node *) head = &dummy, tail = &dummy;
static atomic_int taken[THREADS + 1];

static bool replace(_Atomic(struct node *) *where, struct node *old, struct node *new)
{
    return atomic_compare_exchange_strong_explicit(where, &old, new, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static struct node *get(_Atomic(struct node *) *where)
{
    return atomic_load_explicit(where, memory_order_acquire);
}

static void enqueue(struct node *node, int value)
{
#ifndef BROKEN_3
    atomic_store_explicit(&node->value, value, memory_order_relaxed);
#endif
    for (;;) {
        struct node *last = get(&tail), *after = get(&last->next);
        if (after) {
            replace(&tail, last, after);
            continue;
        }
#ifdef BROKEN_1
        atomic_store_explicit(&last->next, node, memory_order_release);
#else
        if (!replace(&last->next, 0, node)) {
            continue;
        }
#endif
#ifdef BROKEN_3
        atomic_store_explicit(&node->value, value, memory_order_relaxed);
#endif
        replace(&tail, last, node);
        return;
    }
}

static int dequeue(void)
{
    for (;;) {
        struct node *first = get(&head), *last = get(&tail), *after = get(&first->next);
        if (!after) {
            return 0;
        }
        if (first == last) {
            replace(&tail, last, after);
        }
        int value = atomic_load_explicit(&after->value, memory_order_relaxed);
#ifdef BROKEN_2
        atomic_store_explicit(&head, after, memory_order_release);
        return value;
#else
        if (replace(&head, first, after)) {
            return value;
        }
#endif
    }
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    enqueue(&nodes[me], me + 1);
    int value = dequeue();
    assert(value > 0);
    assert(!atomic_exchange(&taken[value], 1));
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
    assert(dequeue() == 0);
    return 0;
}
