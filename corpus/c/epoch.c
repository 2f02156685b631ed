// Epoch-based reclamation: memory is freed two epochs after it was unlinked.
// Source: K. Fraser, "Practical lock-freedom", UCAM-CL-TR-579, 2004, section 5.2.3.
// BROKEN_1: the reader announces its epoch without a fence.
// BROKEN_2: memory is freed after one epoch.
// BROKEN_3: the reader leaves its epoch before it reads.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define QUIET 0

#ifdef BROKEN_2
#define EPOCHS 1
#else
#define EPOCHS 2
#endif

struct item {
    int value;
};

static _Atomic(struct item *) current;
static atomic_int global = 1;
static atomic_int local = QUIET;

static void *reader(void *unused)
{
    int epoch = atomic_load_explicit(&global, memory_order_relaxed);
    atomic_store_explicit(&local, epoch, memory_order_relaxed);
#ifndef BROKEN_1
    atomic_thread_fence(memory_order_seq_cst);
#endif
    struct item *item = atomic_load_explicit(&current, memory_order_acquire);
#ifdef BROKEN_3
    atomic_store_explicit(&local, QUIET, memory_order_release);
    assert(item->value > 0);
#else
    assert(item->value > 0);
    atomic_store_explicit(&local, QUIET, memory_order_release);
#endif
    return unused;
}

static void advance(void)
{
    int epoch = atomic_load_explicit(&global, memory_order_relaxed);
    int seen;
    atomic_thread_fence(memory_order_seq_cst);
    do {
        seen = atomic_load_explicit(&local, memory_order_acquire);
    } while (seen != QUIET && seen != epoch);
    atomic_store_explicit(&global, epoch + 1, memory_order_release);
}

static void *updater(void *unused)
{
    struct item *fresh = malloc(sizeof *fresh);
    fresh->value = 2;
    struct item *old = atomic_exchange_explicit(&current, fresh, memory_order_acq_rel);
    for (int i = 0; i < EPOCHS; i++) {
        advance();
    }
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
