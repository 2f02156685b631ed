/* Harris's sorted list as a set: "A pragmatic implementation of non-blocking linked-lists", DISC 2001. A node
 * whose next pointer is marked (odd) is deleted. Nodes are never reused. */
#include "common.h"
#include <stdbool.h>

struct node {
    atomic_int key;
    atomic_uintptr_t next;
};

static struct node nodes[2 + THREADS * OPS];
#define HEAD (&nodes[0])
#define TAIL (&nodes[1])

static struct node *unmarked(uintptr_t pointer) { return (struct node *)(pointer & ~(uintptr_t)1); }
static bool is_marked(uintptr_t pointer) { return pointer & 1; }

/* The first node with at least this key, and the node before it. Marked nodes between them are unlinked. */
static struct node *search(int key, struct node **before) {
    for (;;) {
        struct node *left = HEAD, *right;
        uintptr_t left_next = LOAD(HEAD->next);
        struct node *at = HEAD;
        uintptr_t next = left_next;
        do {
            if (!is_marked(next)) {
                left = at;
                left_next = next;
            }
            at = unmarked(next);
            if (at == TAIL) {
                break;
            }
            next = LOAD(at->next);
        } while (is_marked(next) || LOAD(at->key) < key);
        right = at;
        if (unmarked(left_next) == right && !is_marked(left_next)) {
            if (right != TAIL && is_marked(LOAD(right->next))) {
                continue;
            }
            *before = left;
            return right;
        }
        if (CAS(left->next, left_next, (uintptr_t)right)) {
            if (right != TAIL && is_marked(LOAD(right->next))) {
                continue;
            }
            *before = left;
            return right;
        }
    }
}

static bool insert(struct node *node, int key) {
    STORE(node->key, key);
    for (;;) {
        struct node *left, *right = search(key, &left);
        if (right != TAIL && LOAD(right->key) == key) {
            return false;
        }
        RELEASE(node->next, (uintptr_t)right);
        uintptr_t expected = (uintptr_t)right;
        if (CAS(left->next, expected, (uintptr_t)node)) {
            return true;
        }
    }
}

static bool erase(int key) {
    for (;;) {
        struct node *left, *right = search(key, &left);
        if (right == TAIL || LOAD(right->key) != key) {
            return false;
        }
        uintptr_t next = LOAD(right->next);
        if (is_marked(next)) {
            continue;
        }
        uintptr_t expected = next;
        if (CAS(right->next, expected, next | 1)) {
            expected = (uintptr_t)right;
            if (!CAS(left->next, expected, next)) {
                search(key, &left);
            }
            return true;
        }
    }
}

static bool contains(int key) {
    struct node *left, *right = search(key, &left);
    return right != TAIL && LOAD(right->key) == key;
}

static atomic_int balance[3];

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        int key = 1 + i / 2 % 2;
        if ((me + i) % 2 == 0) {
            if (insert(&nodes[2 + me * OPS + i], key)) {
                ADD(balance[key], 1);
            }
        } else if (erase(key)) {
            ADD(balance[key], -1);
        }
    }
    return NULL;
}

int main(void) {
    STORE(HEAD->next, (uintptr_t)TAIL);
    run_threads(body);
    for (int key = 1; key < 3; key++) {
        assert(LOAD(balance[key]) == contains(key));
    }
    return 0;
}
