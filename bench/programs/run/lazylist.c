/* The lazy list as a set: Heller, Herlihy, Luchangco, Moir, Scherer and Shavit, "A lazy concurrent list-based
 * set algorithm", OPODIS 2005. */
#include "common.h"
#include <stdbool.h>

struct node {
    atomic_int key;
    _Atomic(struct node *) next;
    atomic_int marked;
    spinlock lock;
};

static struct node nodes[2 + THREADS * OPS];
#define HEAD (&nodes[0])
#define TAIL (&nodes[1])

static void locate(int key, struct node **before, struct node **at) {
    struct node *left = HEAD, *right = LOAD(HEAD->next);
    while (right != TAIL && LOAD(right->key) < key) {
        left = right;
        right = LOAD(right->next);
    }
    *before = left;
    *at = right;
}

static bool valid(struct node *left, struct node *right) {
    return !LOAD(left->marked) && !LOAD(right->marked) && LOAD(left->next) == right;
}

static bool insert(struct node *node, int key) {
    for (;;) {
        struct node *left, *right;
        locate(key, &left, &right);
        acquire(&left->lock);
        acquire(&right->lock);
        bool ok = valid(left, right);
        bool absent = ok && (right == TAIL || LOAD(right->key) != key);
        if (absent) {
            STORE(node->key, key);
            STORE(node->marked, 0);
            STORE(node->next, right);
            RELEASE(left->next, node);
        }
        release(&right->lock);
        release(&left->lock);
        if (ok) {
            return absent;
        }
    }
}

static bool erase(int key) {
    for (;;) {
        struct node *left, *right;
        locate(key, &left, &right);
        acquire(&left->lock);
        acquire(&right->lock);
        bool ok = valid(left, right);
        bool present = ok && right != TAIL && LOAD(right->key) == key;
        if (present) {
            STORE(right->marked, 1);
            RELEASE(left->next, LOAD(right->next));
        }
        release(&right->lock);
        release(&left->lock);
        if (ok) {
            return present;
        }
    }
}

static bool contains(int key) {
    struct node *at = LOAD(HEAD->next);
    while (at != TAIL && LOAD(at->key) < key) {
        at = LOAD(at->next);
    }
    return at != TAIL && LOAD(at->key) == key && !LOAD(at->marked);
}

static atomic_int balance[3];

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        int key = 1 + i / 2 % 2;
        switch ((me + i) % 3) {
        case 0:
            if (insert(&nodes[2 + me * OPS + i], key)) {
                ADD(balance[key], 1);
            }
            break;
        case 1:
            if (erase(key)) {
                ADD(balance[key], -1);
            }
            break;
        default:
            contains(key);
        }
    }
    return NULL;
}

int main(void) {
    STORE(HEAD->next, TAIL);
    run_threads(body);
    for (int key = 1; key < 3; key++) {
        assert(LOAD(balance[key]) == contains(key));
    }
    return 0;
}
