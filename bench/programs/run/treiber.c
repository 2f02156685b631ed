/* Treiber's stack ("Systems programming: coping with parallelism", IBM RJ 5118, 1986) with hazard pointers
 * (Michael, "Hazard pointers", IEEE TPDS 15(6), 2004): a node is not reused while a hazard pointer points to
 * it. A hazard pointer must reach memory before its thread checks again whether the node is still there. This
 * needs a fence even under TSO. */
#include "common.h"

struct node {
    atomic_int value;
    _Atomic(struct node *) next;
};

static struct node nodes[THREADS];
static _Atomic(struct node *) top;
static _Atomic(struct node *) hazard[THREADS];

static void push(struct node *node, int value) {
    struct node *first = LOAD(top);
    STORE(node->value, value);
    do {
        RELEASE(node->next, first);
    } while (!CAS(top, first, node));
}

/* The node that was pushed last, or NULL. The caller owns it once no hazard pointer points to it. */
static struct node *pop(int me) {
    for (;;) {
        struct node *first = LOAD(top);
        if (first == NULL) {
            return NULL;
        }
        RELEASE(hazard[me], first);
        FENCE();
        if (LOAD(top) != first) {
            continue;
        }
        struct node *next = LOAD(first->next);
        struct node *expected = first;
        if (CAS(top, expected, next)) {
            RELEASE(hazard[me], NULL);
            FENCE();
            return first;
        }
    }
}

static void wait_for_others(struct node *node, int me) {
    for (int i = 0; i < THREADS; i++) {
        while (i != me && LOAD(hazard[i]) == node) {
        }
    }
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    struct node *node = &nodes[me];
    for (int i = 0; i < OPS / 2; i++) {
        push(node, 1 + me);
        do {
            node = pop(me);
        } while (node == NULL);
        wait_for_others(node, me);
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    assert(LOAD(top) == NULL);
    return 0;
}
