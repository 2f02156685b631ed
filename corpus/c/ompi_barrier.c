// A request and its completion, ordered by a memory barrier in inline assembly.
// Source: open-mpi/ompi issue 8532 (2021): opal_atomic_mb() was only a compiler barrier on x86-64.
// BROKEN_1: both barriers are only compiler barriers, as in Open MPI; the wake-up can be lost.
// BROKEN_2: only the barrier of the waiting thread is real.
// BROKEN_3: the waiting thread checks for completion before it announces that it waits.
// BOUNDED: instead of waiting, the thread remembers that it would; it must have been woken at the end.
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#define COMPILER_BARRIER() __asm__ __volatile__("" ::: "memory")
#define FULL_BARRIER() __asm__ __volatile__("mfence" ::: "memory")
#ifdef BROKEN_1
#define WAITER_MB COMPILER_BARRIER
#else
#define WAITER_MB FULL_BARRIER
#endif
#if defined(BROKEN_1) || defined(BROKEN_2)
#define COMPLETER_MB COMPILER_BARRIER
#else
#define COMPLETER_MB FULL_BARRIER
#endif

static volatile int complete, waiting, woken;
static bool slept;

static void *waiter(void *unused)
{
#ifdef BROKEN_3
    if (!complete) {
        waiting = 1;
        WAITER_MB();
#else
    waiting = 1;
    WAITER_MB();
    if (!complete) {
#endif
        slept = true;
#ifndef BOUNDED
        while (!woken) {
        }
#endif
    }
    return unused;
}

static void *completer(void *unused)
{
    complete = 1;
    COMPLETER_MB();
    if (waiting) {
        woken = 1;
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, waiter, 0);
    pthread_create(&threads[1], 0, completer, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(!slept || woken);
    return 0;
}
