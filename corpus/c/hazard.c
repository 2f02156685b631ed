// Hazard pointers: a reader stores the pointer that it uses where the updater looks before it frees.
// Source: M. Michael, "Hazard pointers: safe memory reclamation for lock-free objects", IEEE TPDS 2004.
// BROKEN_1: the hazard pointer is stored without a fence.
// BROKEN_2: the reader does not check that the pointer is still current.
// BROKEN_3: the updater frees without looking.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef BROKEN_1
#define PROTECT memory_order_release
#else
#define PROTECT memory_order_seq_cst
#endif

struct item {
    int value;
};

static _Atomic(struct item *) current;
static _Atomic(struct item *) hazard;

static void *reader(void *unused)
{
    struct item *item = atomic_load_explicit(&current, memory_order_relaxed);
    for (;;) {
        atomic_store_explicit(&hazard, item, PROTECT);
#ifdef BROKEN_2
        break;
#else
        struct item *again = atomic_load_explicit(&current, memory_order_seq_cst);
        if (again == item) {
            break;
        }
        item = again;
#endif
    }
    assert(item->value > 0);
    atomic_store_explicit(&hazard, 0, memory_order_release);
    return unused;
}

static void *updater(void *unused)
{
    struct item *fresh = malloc(sizeof *fresh);
    fresh->value = 2;
    struct item *old = atomic_exchange_explicit(&current, fresh, memory_order_seq_cst);
#ifndef BROKEN_3
    while (atomic_load_explicit(&hazard, memory_order_seq_cst) == old) {
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
