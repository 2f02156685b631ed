// The Parker of HotSpot: park uses up a permit or waits, unpark makes a permit available.
// Source: JDK-6822370 (2009); D. Dice, "A race in LockSupport park() arising from weak memory models",
// 2009.
// BROKEN_1: no fence after the fast path has used up the permit, as in HotSpot; the next one can be lost.
// BROKEN_2: unpark does not take the mutex; the signal can come before the wait.
// BOUNDED: instead of waiting, the thread gives up; at the end there must be a permit for it.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

static volatile int permit;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_bool ready;
static bool gave_up;

static void park(void)
{
    if (permit) {
        permit = 0;
#ifndef BROKEN_1
        atomic_thread_fence(memory_order_seq_cst);
#endif
        return;
    }
    pthread_mutex_lock(&mutex);
    if (!permit) {
#ifdef BOUNDED
        gave_up = true;
        pthread_mutex_unlock(&mutex);
        return;
#else
        pthread_cond_wait(&condition, &mutex);
#endif
    }
    permit = 0;
    pthread_mutex_unlock(&mutex);
}

static void unpark(void)
{
#ifndef BROKEN_2
    pthread_mutex_lock(&mutex);
#endif
    int before = permit;
    permit = 1;
#ifndef BROKEN_2
    pthread_mutex_unlock(&mutex);
#endif
    if (!before) {
        pthread_cond_signal(&condition);
    }
}

static void *waiter(void *unused)
{
    while (!gave_up && !atomic_load_explicit(&ready, memory_order_acquire)) {
        park();
    }
    return unused;
}

static void *waker(void *unused)
{
    unpark();
    atomic_store_explicit(&ready, true, memory_order_release);
    unpark();
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, waiter, 0);
    pthread_create(&threads[1], 0, waker, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(!gave_up || permit);
    return 0;
}
