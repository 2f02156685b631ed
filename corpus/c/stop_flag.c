// A worker that runs until the main thread asks it to stop.
// Source: folklore.
// BROKEN_1: the main thread waits for the worker before it asks it to stop.
// BROKEN_2: the main thread takes its request back.
// BROKEN_3: the worker does not limit its steps.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static atomic_bool stop;
static int steps;

static void *worker(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
#ifndef BROKEN_3
        if (steps < 2)
#endif
            steps++;
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
#ifdef BROKEN_1
    pthread_join(thread, 0);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
#else
    atomic_store_explicit(&stop, true, memory_order_relaxed);
#ifdef BROKEN_2
    atomic_store_explicit(&stop, false, memory_order_relaxed);
#endif
    pthread_join(thread, 0);
#endif
    assert(steps <= 2);
    return 0;
}
