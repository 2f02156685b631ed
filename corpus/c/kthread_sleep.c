// How a kernel thread sleeps: it declares itself asleep, checks its condition, and only then gives up the
// processor. The waker makes the condition true and wakes the thread if it is asleep.
// Source: Linux, Documentation/memory-barriers.txt, "Sleep and wake-up functions".
// BROKEN_1: the state is stored without a barrier (__set_current_state); the wake-up can be lost.
// BROKEN_2: the condition is checked before the state is stored.
// BROKEN_3: the waker has no barrier between condition and state.
// BOUNDED: instead of sleeping, the thread goes on; at the end it must have been woken.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { RUNNING, SLEEPING };

#ifdef BROKEN_1
#define SET_STATE memory_order_release
#else
#define SET_STATE memory_order_seq_cst
#endif
#ifdef BROKEN_3
#define SET_CONDITION memory_order_release
#else
#define SET_CONDITION memory_order_seq_cst
#endif

static atomic_int state;
static atomic_bool condition;
static bool slept;

static void *sleeper(void *unused)
{
#ifdef BROKEN_2
    bool sleep = !atomic_load_explicit(&condition, memory_order_seq_cst);
    atomic_store_explicit(&state, SLEEPING, SET_STATE);
#else
    atomic_store_explicit(&state, SLEEPING, SET_STATE);
    bool sleep = !atomic_load_explicit(&condition, memory_order_seq_cst);
#endif
    if (sleep) {
        slept = true;
#ifndef BOUNDED
        while (atomic_load_explicit(&state, memory_order_acquire) == SLEEPING) {
        }
        assert(atomic_load_explicit(&condition, memory_order_relaxed));
#endif
    }
    return unused;
}

static void *waker(void *unused)
{
    atomic_store_explicit(&condition, true, SET_CONDITION);
    if (atomic_load_explicit(&state, memory_order_seq_cst) == SLEEPING) {
        atomic_store_explicit(&state, RUNNING, memory_order_release);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, sleeper, 0);
    pthread_create(&threads[1], 0, waker, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(!slept || atomic_load(&state) == RUNNING);
    return 0;
}
