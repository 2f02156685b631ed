// One-time initialisation with one word: 0 not started, 1 in progress, 2 complete.
// Source: std::call_once and Linux' DO_ONCE in outline; folklore.
// BROKEN_1: completion is stored relaxed.
// BROKEN_2: starting is a load and a store.
// BROKEN_3: a thread that finds the initialisation in progress does not wait.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 3
#endif

#ifdef BROKEN_1
#define COMPLETE memory_order_relaxed
#else
#define COMPLETE memory_order_release
#endif

enum { NOT_STARTED, IN_PROGRESS, COMPLETED };

static atomic_int state;
static atomic_int made;
static volatile int resource;

static void initialise(void)
{
    int old = NOT_STARTED;
#ifdef BROKEN_2
    old = atomic_load_explicit(&state, memory_order_acquire);
    if (old == NOT_STARTED) {
        atomic_store_explicit(&state, IN_PROGRESS, memory_order_release);
#else
    if (atomic_compare_exchange_strong_explicit(&state, &old, IN_PROGRESS, memory_order_acquire,
                                                memory_order_acquire)) {
#endif
        atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
        resource = 7;
        atomic_store_explicit(&state, COMPLETED, COMPLETE);
        return;
    }
#ifndef BROKEN_3
    while (atomic_load_explicit(&state, memory_order_acquire) != COMPLETED) {
    }
#endif
}

static void *work(void *unused)
{
    initialise();
    assert(resource == 7);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], 0, work, 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
    }
    assert(atomic_load(&made) == 1);
    return 0;
}
