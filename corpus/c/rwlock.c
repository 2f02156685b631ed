// Reader-writer lock in one word: the number of readers, or -1 for a writer.
// Source: folklore;
// P. Courtois, F. Heymans, D. Parnas, "Concurrent control with readers and writers", CACM 1971.
// BROKEN_1: a reader checks for a writer and registers in two steps.
// BROKEN_2: a reader leaves by a load and a store.
// BROKEN_3: the store that ends writing is relaxed.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_3
#define END_WRITING memory_order_relaxed
#else
#define END_WRITING memory_order_release
#endif

static atomic_int state;
static volatile int left, right;

static void read_lock(void)
{
    for (;;) {
        int readers = atomic_load_explicit(&state, memory_order_relaxed);
#ifdef BROKEN_1
        if (readers >= 0) {
            atomic_fetch_add_explicit(&state, 1, memory_order_acquire);
            return;
        }
#else
        if (readers >= 0 &&
            atomic_compare_exchange_weak_explicit(&state, &readers, readers + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return;
        }
#endif
    }
}

static void read_unlock(void)
{
#ifdef BROKEN_2
    int readers = atomic_load_explicit(&state, memory_order_relaxed);
    atomic_store_explicit(&state, readers - 1, memory_order_release);
#else
    atomic_fetch_sub_explicit(&state, 1, memory_order_release);
#endif
}

static void write_lock(void)
{
    int nobody;
    do {
        nobody = 0;
    } while (!atomic_compare_exchange_weak_explicit(&state, &nobody, -1, memory_order_acquire,
                                                    memory_order_relaxed));
}

static void *reader(void *unused)
{
    read_lock();
    int seen = left;
    assert(right == seen);
    read_unlock();
    return unused;
}

static void *writer(void *unused)
{
    write_lock();
    left++;
    right++;
    atomic_store_explicit(&state, 0, END_WRITING);
    return unused;
}

int main(void)
{
    pthread_t readers[2], one_writer;
    pthread_create(&readers[0], 0, reader, 0);
    pthread_create(&readers[1], 0, reader, 0);
    pthread_create(&one_writer, 0, writer, 0);
    pthread_join(readers[0], 0);
    pthread_join(readers[1], 0);
    pthread_join(one_writer, 0);
    assert(left == 1 && right == 1);
    return 0;
}
