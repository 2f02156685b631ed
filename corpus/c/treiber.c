// Treiber's stack without freeing: every node is used once.
// Source: R. K. Treiber, "Systems programming: coping with parallelism", IBM RJ 5118, 1986.
// BROKEN_1: push stores the top instead of exchanging it.
// BROKEN_2: pop stores the top instead of exchanging it.
// BROKEN_3: a node is linked after it has become the top.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef THREADS
#define THREADS 2
#endif

struct node {
    _Atomic(struct node *) next;
    atomic_bool taken;
};

static struct node nodes[THREADS];
static _Atomic(struct node *) top;

static bool replace(struct node *old, struct node *new)
{
    return atomic_compare_exchange_strong_explicit(&top, &old, new, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void push(struct node *node)
{
    struct node *old;
    do {
        old = atomic_load_explicit(&top, memory_order_relaxed);
#ifndef BROKEN_3
        atomic_store_explicit(&node->next, old, memory_order_relaxed);
#endif
#ifdef BROKEN_1
        atomic_store_explicit(&top, node, memory_order_release);
        return;
#endif
    } while (!replace(old, node));
#ifdef BROKEN_3
    atomic_store_explicit(&node->next, old, memory_order_relaxed);
#endif
}

static struct node *pop(void)
{
    struct node *old;
    do {
        old = atomic_load_explicit(&top, memory_order_acquire);
        if (!old) {
            return 0;
        }
#ifdef BROKEN_2
        struct node *after = atomic_load_explicit(&old->next, memory_order_relaxed);
        atomic_store_explicit(&top, after, memory_order_release);
        return old;
#endif
    } while (!replace(old, atomic_load_explicit(&old->next, memory_order_relaxed)));
    return old;
}

static void *work(void *argument)
{
    push(&nodes[(long)argument]);
    struct node *node = pop();
    assert(node);
    assert(!atomic_exchange(&node->taken, true));
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
    assert(!atomic_load(&top));
    return 0;
}
