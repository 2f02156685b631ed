/* The queue lock of Mellor-Crummey and Scott, TOCS 9(1), 1991, section 2.4. */
#include "common.h"

struct node {
    _Atomic(struct node *) next;
    atomic_int waits;
};

static struct node nodes[THREADS];
static _Atomic(struct node *) last;
static atomic_int counter;

static void lock(struct node *node) {
    STORE(node->next, NULL);
    STORE(node->waits, 1);
    struct node *before = EXCHANGE(last, node);
    if (before != NULL) {
        RELEASE(before->next, node);
        while (LOAD(node->waits)) {
        }
    }
}

static void unlock(struct node *node) {
    if (LOAD(node->next) == NULL) {
        struct node *expected = node;
        if (CAS(last, expected, NULL)) {
            return;
        }
        while (LOAD(node->next) == NULL) {
        }
    }
    struct node *next = LOAD(node->next);
    RELEASE(next->waits, 0);
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        lock(&nodes[me]);
        STORE(counter, LOAD(counter) + 1);
        unlock(&nodes[me]);
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    assert(LOAD(counter) == THREADS * OPS);
    return 0;
}
