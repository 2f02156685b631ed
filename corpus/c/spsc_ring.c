// Ring buffer for one producer and one consumer: each side owns one index.
// Source: L. Lamport, "Specifying concurrent program modules", ACM TOPLAS 1983.
// BROKEN_1: the producer's index is stored relaxed.
// BROKEN_2: the producer's index is stored before the item.
// BROKEN_3: the producer's check for a full ring is off by one.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define SIZE 2
#define ITEMS 4

#ifdef BROKEN_1
#define PUBLISH memory_order_relaxed
#else
#define PUBLISH memory_order_release
#endif
#ifdef BROKEN_3
#define CAPACITY (SIZE + 1)
#else
#define CAPACITY SIZE
#endif

static volatile int slots[SIZE];
static atomic_uint head, tail;

static void *producer(void *unused)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        while (i - atomic_load_explicit(&head, memory_order_acquire) == CAPACITY) {
        }
#ifdef BROKEN_2
        atomic_store_explicit(&tail, i + 1, PUBLISH);
        slots[i % SIZE] = (int)i + 1;
#else
        slots[i % SIZE] = (int)i + 1;
        atomic_store_explicit(&tail, i + 1, PUBLISH);
#endif
    }
    return unused;
}

static void *consumer(void *unused)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        while (atomic_load_explicit(&tail, memory_order_acquire) == i) {
        }
        assert(slots[i % SIZE] == (int)i + 1);
        atomic_store_explicit(&head, i + 1, memory_order_release);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, producer, 0);
    pthread_create(&threads[1], 0, consumer, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
