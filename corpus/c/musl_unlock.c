// The internal lock of musl up to 1.1.11: unlocking stores 0, then looks whether somebody waits. The store
// must be a full barrier. The kernel's part of the futex is modelled.
// Source: musl commit 3c43c076 (2015), "fix missing synchronization in atomic store on i386 and x86_64".
// BROKEN_1: the store is not a barrier, as in musl; the wake-up can be lost.
// BROKEN_2: unlocking wakes only if more than one thread waits.
// BOUNDED: instead of sleeping, a thread gives up; at the end nobody may be left asleep.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifdef BROKEN_1
#define A_STORE memory_order_release
#else
#define A_STORE memory_order_seq_cst
#endif
#ifdef BROKEN_2
#define WAKE_ABOVE 1
#else
#define WAKE_ABOVE 0
#endif

static atomic_int locked, waiters;
static atomic_int kernel, asleep;

static void kernel_lock(void)
{
    while (atomic_exchange_explicit(&kernel, 1, memory_order_acquire)) {
    }
}

static bool futex_wait(void)
{
    kernel_lock();
    bool sleeps = atomic_load_explicit(&locked, memory_order_seq_cst);
    if (sleeps) {
        atomic_store_explicit(&asleep, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&kernel, 0, memory_order_release);
#ifdef BOUNDED
    return !sleeps;
#else
    while (sleeps && atomic_load_explicit(&asleep, memory_order_acquire)) {
    }
    return true;
#endif
}

static void futex_wake(void)
{
    kernel_lock();
    atomic_store_explicit(&asleep, 0, memory_order_relaxed);
    atomic_store_explicit(&kernel, 0, memory_order_release);
}

static void *work(void *unused)
{
    while (atomic_exchange(&locked, 1)) {
        atomic_fetch_add(&waiters, 1);
        if (!futex_wait()) {
            return unused;
        }
        atomic_fetch_sub(&waiters, 1);
    }
    atomic_store_explicit(&locked, 0, A_STORE);
    if (atomic_load_explicit(&waiters, memory_order_seq_cst) > WAKE_ABOVE) {
        futex_wake();
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, work, 0);
    pthread_create(&threads[1], 0, work, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(!atomic_load(&asleep));
    return 0;
}
