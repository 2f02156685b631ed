/* The non-blocking queue of Michael and Scott, "Simple, fast, and practical non-blocking and blocking
 * concurrent queue algorithms", PODC 1996, Figure 1. Nodes are never reused, so pointers need no counters. */
#include "common.h"

struct node {
    atomic_int value;
    _Atomic(struct node *) next;
};

static struct node nodes[1 + THREADS * OPS];
static _Atomic(struct node *) head = &nodes[0];
static _Atomic(struct node *) tail = &nodes[0];

static void enqueue(struct node *node, int value) {
    struct node *last, *next;
    STORE(node->value, value);
    RELEASE(node->next, NULL);
    for (;;) {
        last = LOAD(tail);
        next = LOAD(last->next);
        if (last != LOAD(tail)) {
            continue;
        }
        if (next == NULL) {
            if (CAS(last->next, next, node)) {
                break;
            }
        } else {
            struct node *expected = last;
            CAS(tail, expected, next);
        }
    }
    CAS(tail, last, node);
}

/* The oldest value, or 0. */
static int dequeue(void) {
    for (;;) {
        struct node *first = LOAD(head);
        struct node *last = LOAD(tail);
        struct node *next = LOAD(first->next);
        if (first != LOAD(head)) {
            continue;
        }
        if (first == last) {
            if (next == NULL) {
                return 0;
            }
            CAS(tail, last, next);
        } else {
            int value = LOAD(next->value);
            if (CAS(head, first, next)) {
                return value;
            }
        }
    }
}

static atomic_int taken[1 + THREADS * OPS];

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        if ((me + i) % 2 == 0) {
            int value = 1 + me * OPS + i;
            enqueue(&nodes[value], value);
        } else {
            int value = dequeue();
            assert(value == 0 || ADD(taken[value], 1) == 0);
        }
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    return 0;
}
