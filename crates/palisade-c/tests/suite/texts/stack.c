#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct node {
    int value;
    struct node *next;
};

static _Atomic(struct node *) top;

void push(void)
{
    struct node *n = malloc(sizeof *n);
    n->value = 1;
    n->next = atomic_load_explicit(&top, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&top, &n->next, n))
        ;
}

void pop(void)
{
    struct node *n = atomic_load(&top);
    while (n && !atomic_compare_exchange_weak(&top, &n, n->next))
        ;
    if (n) {
        assert(n->value == 1);
        free(n);
    }
}
