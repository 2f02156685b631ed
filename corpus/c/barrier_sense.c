// Sense-reversing barrier, used twice.
// Source: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", IJPP 1988;
// J. Mellor-Crummey, M. Scott, ACM TOCS 1991, section 3.1.
// BROKEN_1: the decrement is split into a load and a store; both threads can wait.
// BROKEN_2: the sense is reversed before the count is reset; the reset can wipe out an arrival.
// BROKEN_3: the sense is stored relaxed, so that PSO can do what BROKEN_2 does.
// BROKEN_4: the sense is not reversed, so that the second barrier does not wait.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define THREADS 2
#define ROUNDS 2

#ifdef BROKEN_3
#define REVERSE memory_order_relaxed
#else
#define REVERSE memory_order_release
#endif

static atomic_int count = THREADS;
static atomic_int sense;
static atomic_int stage[THREADS];

static void barrier(int *my_sense)
{
#ifdef BROKEN_4
    *my_sense = 1;
#else
    *my_sense = !*my_sense;
#endif
#ifdef BROKEN_1
    int before = atomic_load_explicit(&count, memory_order_acquire);
    atomic_store_explicit(&count, before - 1, memory_order_release);
#else
    int before = atomic_fetch_sub_explicit(&count, 1, memory_order_acq_rel);
#endif
    if (before == 1) {
#ifdef BROKEN_2
        atomic_store_explicit(&sense, *my_sense, REVERSE);
        atomic_store_explicit(&count, THREADS, memory_order_release);
#else
        atomic_store_explicit(&count, THREADS, memory_order_relaxed);
        atomic_store_explicit(&sense, *my_sense, REVERSE);
#endif
    } else {
        while (atomic_load_explicit(&sense, memory_order_acquire) != *my_sense) {
        }
    }
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    int my_sense = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        atomic_store_explicit(&stage[me], i, memory_order_relaxed);
        barrier(&my_sense);
        assert(atomic_load_explicit(&stage[1 - me], memory_order_relaxed) >= i);
    }
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
    assert(atomic_load(&count) == THREADS);
    return 0;
}
