// Countdown latch: the main thread waits until all workers have counted down.
// Source: folklore; java.util.concurrent.CountDownLatch (D. Lea, JSR 166, 2004).
// BROKEN_1: the decrement is split into a load and a store; the count may never be 0.
// BROKEN_2: a worker counts down before it stores its result.
// BROKEN_3: the main thread does not wait for the last worker.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 2
#endif

#ifdef BROKEN_3
#define LAST 1
#else
#define LAST 0
#endif

static atomic_int count = THREADS;
static int results[THREADS];

static void count_down(void)
{
#ifdef BROKEN_1
    int before = atomic_load_explicit(&count, memory_order_relaxed);
    atomic_store_explicit(&count, before - 1, memory_order_release);
#else
    atomic_fetch_sub_explicit(&count, 1, memory_order_release);
#endif
}

static void *worker(void *argument)
{
    int me = (int)(long)argument;
#ifdef BROKEN_2
    count_down();
    results[me] = me + 1;
#else
    results[me] = me + 1;
    count_down();
#endif
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], 0, worker, (void *)i);
    }
    while (atomic_load_explicit(&count, memory_order_acquire) > LAST) {
    }
    for (int i = 0; i < THREADS; i++) {
        assert(results[i] == i + 1);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
    }
    return 0;
}
