// PostgreSQL's latch: the waiter resets it, looks for work, and waits until it is set; others store work and
// set it, unless it is set already.
// Source: PostgreSQL commits 6760a4d4 (2011), on the risk, and 14e8803f (2015), which adds barriers.
// BROKEN_1: no barrier after the reset; the wake-up can be lost.
// BROKEN_2: no barrier before the latch is set.
// BROKEN_3: the waiter looks for work before it resets the latch.
// BOUNDED: instead of waiting, the waiter gives up; at the end the latch must be set for it.
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

static volatile int is_set = 1;         // by something earlier
static volatile int work;
static bool gave_up;

static void reset_latch(void)
{
    is_set = 0;
#ifndef BROKEN_1
    __sync_synchronize();
#endif
}

static void set_latch(void)
{
#ifndef BROKEN_2
    __sync_synchronize();
#endif
    if (!is_set) {
        is_set = 1;
    }
}

static void *waiter(void *unused)
{
    for (;;) {
#ifdef BROKEN_3
        if (work) {
            return unused;
        }
        reset_latch();
#else
        reset_latch();
        if (work) {
            return unused;
        }
#endif
        while (!is_set) {
#ifdef BOUNDED
            gave_up = true;
            return unused;
#endif
        }
    }
}

static void *setter(void *unused)
{
    work = 1;
    set_latch();
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, waiter, 0);
    pthread_create(&threads[1], 0, setter, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(!gave_up || is_set);
    return 0;
}
