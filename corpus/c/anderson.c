// Anderson's array lock: fetch-and-add hands out slots, and the holder passes the lock to the next slot.
// Source: T. Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors",
// IEEE TPDS 1990.
// BROKEN_1: the next slot is granted before the own slot is cleared; a later grant can be wiped out.
// BROKEN_2: there are fewer slots than threads.
// BROKEN_3: the store that grants the next slot is relaxed.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_2
#define THREADS 3
#define SLOTS 2
#define ROUNDS 1
#else
#define THREADS 2
#define SLOTS 2
#define ROUNDS 2
#endif

#ifdef BROKEN_3
#define GRANT memory_order_relaxed
#else
#define GRANT memory_order_release
#endif

static atomic_int granted[SLOTS] = {1};
static atomic_uint next;
static volatile int counter;

static unsigned lock(void)
{
    unsigned mine = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % SLOTS;
    while (!atomic_load_explicit(&granted[mine], memory_order_acquire)) {
    }
    return mine;
}

static void unlock(unsigned mine)
{
#ifdef BROKEN_1
    atomic_store_explicit(&granted[(mine + 1) % SLOTS], 1, GRANT);
    atomic_store_explicit(&granted[mine], 0, memory_order_release);
#else
    atomic_store_explicit(&granted[mine], 0, memory_order_relaxed);
    atomic_store_explicit(&granted[(mine + 1) % SLOTS], 1, GRANT);
#endif
}

static void *work(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        unsigned mine = lock();
        counter++;
        unlock(mine);
    }
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
    assert(counter == THREADS * ROUNDS);
    return 0;
}
