/* What the programs in this folder share: atomics by short names, threads, and the number of operations.
 *
 * By default, the programs have no more fences than the published algorithms: stores are relaxed, and loads
 * and read-modify-writes are acquires. On x86 these are plain stores, plain loads and locked instructions.
 * With -DFENCED, stores that other threads wait for are releases, and there is a full fence wherever a load
 * must not overtake a store. */
#ifndef COMMON_H
#define COMMON_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef FENCED
#define PUBLISH memory_order_release
#define MODIFY memory_order_acq_rel
#define FENCE() atomic_thread_fence(memory_order_seq_cst)
#else
#define PUBLISH memory_order_relaxed
#define MODIFY memory_order_acquire
#define FENCE() ((void)0)
#endif

#define LOAD(x) atomic_load_explicit(&(x), memory_order_acquire)
#define STORE(x, v) atomic_store_explicit(&(x), (v), memory_order_relaxed)
#define RELEASE(x, v) atomic_store_explicit(&(x), (v), PUBLISH)
#define EXCHANGE(x, v) atomic_exchange_explicit(&(x), (v), MODIFY)
#define ADD(x, v) atomic_fetch_add_explicit(&(x), (v), MODIFY)
#define CAS(x, old, new) \
    atomic_compare_exchange_strong_explicit(&(x), &(old), (new), MODIFY, memory_order_acquire)

/* How many threads (at most 3), and how many operations each. */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef OPS
#define OPS 4
#endif

/* A lock that is acquired by an exchange and released by a plain store, as is usual on x86. */
typedef atomic_int spinlock;

static inline void acquire(spinlock *lock) {
    while (EXCHANGE(*lock, 1)) {
        while (LOAD(*lock)) {
        }
    }
}

static inline void release(spinlock *lock) { RELEASE(*lock, 0); }

/* Runs the threads of a program. */
static inline void run_threads(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, body, (void *)i)) {
            abort();
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

#endif
