// Waiting for readers before freeing: a reader announces itself; the updater replaces the pointer, waits
// until the reader has left, and frees the old version.
// Source: M. Desnoyers, P. McKenney, A. Stern, M. Dagenais, J. Walpole, "User-level implementations of
// read-copy update", IEEE TPDS 2012.
// BROKEN_1: the reader announces itself without a fence.
// BROKEN_2: the updater replaces the pointer without a fence.
// BROKEN_3: the updater does not wait.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef BROKEN_1
#define ENTER memory_order_release
#else
#define ENTER memory_order_seq_cst
#endif
#ifdef BROKEN_2
#define REPLACE memory_order_release
#else
#define REPLACE memory_order_seq_cst
#endif

struct item {
    int value;
};

static _Atomic(struct item *) current;
static atomic_int inside;

static void *reader(void *unused)
{
    atomic_store_explicit(&inside, 1, ENTER);
    struct item *now = atomic_load_explicit(&current, memory_order_seq_cst);
    assert(now->value > 0);
    atomic_store_explicit(&inside, 0, memory_order_release);
    return unused;
}

static void *updater(void *unused)
{
    struct item *old = atomic_load_explicit(&current, memory_order_relaxed);
    struct item *fresh = malloc(sizeof *fresh);
    fresh->value = 2;
    atomic_store_explicit(&current, fresh, REPLACE);
#ifndef BROKEN_3
    while (atomic_load_explicit(&inside, memory_order_seq_cst)) {
    }
#endif
    old->value = 0;
    free(old);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    struct item *first = malloc(sizeof *first);
    first->value = 1;
    atomic_store(&current, first);
    pthread_create(&threads[0], 0, reader, 0);
    pthread_create(&threads[1], 0, updater, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    free(atomic_load(&current));
    return 0;
}
