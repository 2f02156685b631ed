/* The two-lock queue of Michael and Scott, PODC 1996, Figure 2. */
#include "common.h"

struct node {
    atomic_int value;
    _Atomic(struct node *) next;
};

static struct node nodes[1 + THREADS * OPS];
static _Atomic(struct node *) head = &nodes[0];
static _Atomic(struct node *) tail = &nodes[0];
static spinlock head_lock, tail_lock;

static void enqueue(struct node *node, int value) {
    STORE(node->value, value);
    STORE(node->next, NULL);
    acquire(&tail_lock);
    struct node *last = LOAD(tail);
    /* A thread that dequeues does not take this lock, so the node must be complete before it can be seen. */
    RELEASE(last->next, node);
    STORE(tail, node);
    release(&tail_lock);
}

/* The oldest value, or 0. */
static int dequeue(void) {
    int value = 0;
    acquire(&head_lock);
    struct node *first = LOAD(head);
    struct node *next = LOAD(first->next);
    if (next != NULL) {
        value = LOAD(next->value);
        STORE(head, next);
    }
    release(&head_lock);
    return value;
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
