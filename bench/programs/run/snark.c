/* The Snark deque: Detlefs, Flood, Garthwaite, Martin, Shavit and Steele, "Even better DCAS-based concurrent
 * deques", DISC 2000, Figures 3 and 4. It is known not to be linearisable in corner cases (Doherty et al.,
 * SPAA 2004). The assertion here holds nevertheless: nothing is popped that was not pushed.
 *
 * No machine has a compare-and-swap of two words that are far apart. It is implemented with a lock, which is
 * acquired by an exchange and released by a plain store. */
#include "common.h"
#include <stdbool.h>

struct node {
    _Atomic(struct node *) left, right;
    atomic_int value;
};

typedef _Atomic(struct node *) pointer;

static struct node nodes[1 + THREADS * OPS];
#define DUMMY (&nodes[0])
static pointer left_hat = &nodes[0];
static pointer right_hat = &nodes[0];
static spinlock dcas_lock;

static bool dcas(pointer *a, pointer *b, struct node *old_a, struct node *old_b, struct node *new_a, struct node *new_b) {
    acquire(&dcas_lock);
    bool equal = LOAD(*a) == old_a && LOAD(*b) == old_b;
    if (equal) {
        STORE(*a, new_a);
        RELEASE(*b, new_b);
    }
    release(&dcas_lock);
    return equal;
}

static void push_right(struct node *node, int value) {
    STORE(node->right, DUMMY);
    STORE(node->value, value);
    for (;;) {
        struct node *rh = LOAD(right_hat);
        struct node *rhr = LOAD(rh->right);
        if (rhr == rh) {
            STORE(node->left, DUMMY);
            struct node *lh = LOAD(left_hat);
            if (dcas(&right_hat, &left_hat, rh, lh, node, node)) {
                return;
            }
        } else {
            STORE(node->left, rh);
            if (dcas(&right_hat, &rh->right, rh, rhr, node, node)) {
                return;
            }
        }
    }
}

static void push_left(struct node *node, int value) {
    STORE(node->left, DUMMY);
    STORE(node->value, value);
    for (;;) {
        struct node *lh = LOAD(left_hat);
        struct node *lhl = LOAD(lh->left);
        if (lhl == lh) {
            STORE(node->right, DUMMY);
            struct node *rh = LOAD(right_hat);
            if (dcas(&left_hat, &right_hat, lh, rh, node, node)) {
                return;
            }
        } else {
            STORE(node->right, lh);
            if (dcas(&left_hat, &lh->left, lh, lhl, node, node)) {
                return;
            }
        }
    }
}

/* The value at the right end, or 0. */
static int pop_right(void) {
    for (;;) {
        struct node *rh = LOAD(right_hat);
        struct node *lh = LOAD(left_hat);
        if (LOAD(rh->right) == rh) {
            return 0;
        }
        if (rh == lh) {
            if (dcas(&right_hat, &left_hat, rh, lh, DUMMY, DUMMY)) {
                return LOAD(rh->value);
            }
        } else {
            struct node *rhl = LOAD(rh->left);
            if (dcas(&right_hat, &rh->left, rh, rhl, rhl, rh)) {
                int value = LOAD(rh->value);
                RELEASE(rh->right, DUMMY);
                return value;
            }
        }
    }
}

/* The value at the left end, or 0. */
static int pop_left(void) {
    for (;;) {
        struct node *lh = LOAD(left_hat);
        struct node *rh = LOAD(right_hat);
        if (LOAD(lh->left) == lh) {
            return 0;
        }
        if (lh == rh) {
            if (dcas(&left_hat, &right_hat, lh, rh, DUMMY, DUMMY)) {
                return LOAD(lh->value);
            }
        } else {
            struct node *lhr = LOAD(lh->right);
            if (dcas(&left_hat, &lh->right, lh, lhr, lhr, lh)) {
                int value = LOAD(lh->value);
                RELEASE(lh->left, DUMMY);
                return value;
            }
        }
    }
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        int value = 1 + me * OPS + i;
        int popped = 0;
        switch ((2 * me + i) % 4) {
        case 0: push_right(&nodes[value], value); break;
        case 1: popped = pop_left(); break;
        case 2: push_left(&nodes[value], value); break;
        default: popped = pop_right();
        }
        assert(popped >= 0 && popped <= THREADS * OPS);
    }
    return NULL;
}

int main(void) {
    STORE(DUMMY->left, DUMMY);
    STORE(DUMMY->right, DUMMY);
    run_threads(body);
    return 0;
}
