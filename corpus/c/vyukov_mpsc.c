// Vyukov's intrusive queue for many producers and one consumer: a producer exchanges the head, then links.
// Source: D. Vyukov, "Intrusive MPSC node-based queue", 1024cores.net, 2010.
// BROKEN_1: the exchange is split into a load and a store; a node can be lost.
// BROKEN_2: the node's link is cleared after the exchange; the successor can be lost.
// BROKEN_3: the value is stored after the node is linked.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define PRODUCERS 2

struct node {
    _Atomic(struct node *) next;
    atomic_int value;
};

static struct node stub, nodes[PRODUCERS];
static _Atomic(struct node *) head = &stub;
static int seen[PRODUCERS + 1];

static void push(struct node *node, int value)
{
#ifndef BROKEN_3
    atomic_store_explicit(&node->value, value, memory_order_relaxed);
#endif
#ifndef BROKEN_2
    atomic_store_explicit(&node->next, 0, memory_order_relaxed);
#endif
#ifdef BROKEN_1
    struct node *before = atomic_load_explicit(&head, memory_order_acquire);
    atomic_store_explicit(&head, node, memory_order_release);
#else
    struct node *before = atomic_exchange_explicit(&head, node, memory_order_acq_rel);
#endif
#ifdef BROKEN_2
    atomic_store_explicit(&node->next, 0, memory_order_relaxed);
#endif
    atomic_store_explicit(&before->next, node, memory_order_release);
#ifdef BROKEN_3
    atomic_store_explicit(&node->value, value, memory_order_relaxed);
#endif
}

static void *producer(void *argument)
{
    int me = (int)(long)argument;
    push(&nodes[me], me + 1);
    return 0;
}

int main(void)
{
    pthread_t threads[PRODUCERS];
    struct node *tail = &stub;
    for (long i = 0; i < PRODUCERS; i++) {
        pthread_create(&threads[i], 0, producer, (void *)i);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        struct node *next;
        do {
            next = atomic_load_explicit(&tail->next, memory_order_acquire);
        } while (!next);
        int value = atomic_load_explicit(&next->value, memory_order_relaxed);
        assert(value > 0 && !seen[value]);
        seen[value] = 1;
        tail = next;
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], 0);
    }
    return 0;
}
