// Treiber's stack on the heap: many may push, but only one thread may pop, so it can free what it pops.
// Source: R. K. Treiber, IBM RJ 5118, 1986; M. Michael, "Hazard pointers", IEEE TPDS 2004, section 1, on why
// several poppers must not free.
// BROKEN_1: two threads pop and free.
// BROKEN_2: the popper frees before it reads the value.
// BROKEN_3: push reads its own node after publishing it.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int value;
};

static _Atomic(struct node *) top;

static void push(int value)
{
    struct node *node = malloc(sizeof *node);
    node->value = value;
    node->next = atomic_load_explicit(&top, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&top, &node->next, node, memory_order_release,
                                                  memory_order_relaxed)) {
    }
#ifdef BROKEN_3
    assert(node->value == value);
#endif
}

static int pop(void)
{
    struct node *node = atomic_load_explicit(&top, memory_order_acquire);
    do {
        if (!node) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&top, &node, node->next, memory_order_acquire,
                                                    memory_order_acquire));
#ifdef BROKEN_2
    free(node);
    return node->value;
#else
    int value = node->value;
    free(node);
    return value;
#endif
}

static void *pusher(void *unused)
{
    push(1);
#ifdef BROKEN_1
    pop();
#endif
    return unused;
}

static void *popper(void *unused)
{
    push(2);
    assert(pop() > 0);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, pusher, 0);
    pthread_create(&threads[1], 0, popper, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    while (pop()) {
    }
    return 0;
}
