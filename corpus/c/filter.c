// The filter lock: Peterson's algorithm for three threads, one level after the other.
// Source: G. Peterson, Information Processing Letters 1981; M. Herlihy, N. Shavit, 2008, section 2.4.
// BROKEN_1: the stores are release stores, without fences.
// BROKEN_2: the victim is stored before the level.
// BROKEN_3: there is one level too few.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define THREADS 3
#ifdef BROKEN_3
#define LEVELS (THREADS - 2)
#else
#define LEVELS (THREADS - 1)
#endif

#ifdef BROKEN_1
#define STORE memory_order_release
#else
#define STORE memory_order_seq_cst
#endif

static atomic_int level[THREADS];
static atomic_int victim[THREADS];
static volatile int owner, counter;

static bool somebody_at(int at, int me)
{
    for (int j = 0; j < THREADS; j++) {
        if (j != me && atomic_load_explicit(&level[j], memory_order_seq_cst) >= at) {
            return true;
        }
    }
    return false;
}

static void lock(int me)
{
    for (int at = 1; at <= LEVELS; at++) {
#ifdef BROKEN_2
        atomic_store_explicit(&victim[at], me, STORE);
        atomic_store_explicit(&level[me], at, STORE);
#else
        atomic_store_explicit(&level[me], at, STORE);
        atomic_store_explicit(&victim[at], me, STORE);
#endif
        while (atomic_load_explicit(&victim[at], memory_order_seq_cst) == me && somebody_at(at, me)) {
        }
    }
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    lock(me);
    owner = me;
    counter++;
    assert(owner == me);
    atomic_store_explicit(&level[me], 0, memory_order_release);
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], 0, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
    }
    assert(counter == THREADS);
    return 0;
}
