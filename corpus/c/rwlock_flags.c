// Reader-writer lock with a flag per reader, so that readers do not share a cache line.
// Source: W. Hsieh, W. Weihl, "Scalable reader-writer locks for parallel systems", IPPS 1992; the "big-reader
// lock" of Linux 2.4.
// BROKEN_1: a reader raises its flag without a fence.
// BROKEN_2: the writer raises its flag without a fence.
// BROKEN_3: the writer does not wait for the second reader.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define READERS 2

#ifdef BROKEN_1
#define READER memory_order_release
#else
#define READER memory_order_seq_cst
#endif
#ifdef BROKEN_2
#define WRITER memory_order_release
#else
#define WRITER memory_order_seq_cst
#endif

static atomic_int reading[READERS];
static atomic_int writing;
static int left, right;

static void *reader(void *argument)
{
    atomic_int *mine = &reading[(long)argument];
    for (;;) {
        atomic_store_explicit(mine, 1, READER);
        if (!atomic_load_explicit(&writing, memory_order_seq_cst)) {
            break;
        }
        atomic_store_explicit(mine, 0, memory_order_release);
        while (atomic_load_explicit(&writing, memory_order_acquire)) {
        }
    }
    assert(left == right);
    atomic_store_explicit(mine, 0, memory_order_release);
    return 0;
}

static void *writer(void *unused)
{
    int waited = READERS;
#ifdef BROKEN_3
    waited = 1;
#endif
    atomic_store_explicit(&writing, 1, WRITER);
    for (int j = 0; j < waited; j++) {
        while (atomic_load_explicit(&reading[j], memory_order_seq_cst)) {
        }
    }
    left++;
    right++;
    atomic_store_explicit(&writing, 0, memory_order_release);
    return unused;
}

int main(void)
{
    pthread_t readers[READERS], one_writer;
    for (long i = 0; i < READERS; i++) {
        pthread_create(&readers[i], 0, reader, (void *)i);
    }
    pthread_create(&one_writer, 0, writer, 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], 0);
    }
    pthread_join(one_writer, 0);
    assert(left == 1 && right == 1);
    return 0;
}
