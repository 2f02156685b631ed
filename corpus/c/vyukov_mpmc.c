// Vyukov's bounded queue: each cell has a sequence number that says whose turn it is.
// Source: D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010.
// BROKEN_1: the sequence number is stored relaxed after the item.
// BROKEN_2: the sequence number is stored before the item.
// BROKEN_3: the position is taken by a store instead of an exchange.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CELLS 2

#ifdef BROKEN_1
#define FILL memory_order_relaxed
#else
#define FILL memory_order_release
#endif

struct cell {
    atomic_uint sequence;
    atomic_int item;
};

static struct cell cells[CELLS] = {{0, 0}, {1, 0}};
static atomic_uint tail;

static void enqueue(int item)
{
    unsigned at = atomic_load_explicit(&tail, memory_order_relaxed);
    for (;;) {
        struct cell *cell = &cells[at % CELLS];
        if (atomic_load_explicit(&cell->sequence, memory_order_acquire) == at) {
#ifdef BROKEN_3
            atomic_store_explicit(&tail, at + 1, memory_order_release);
            bool mine = true;
#else
            bool mine = atomic_compare_exchange_weak_explicit(&tail, &at, at + 1, memory_order_relaxed,
                                                              memory_order_relaxed);
#endif
            if (mine) {
#ifdef BROKEN_2
                atomic_store_explicit(&cell->sequence, at + 1, FILL);
                atomic_store_explicit(&cell->item, item, memory_order_relaxed);
#else
                atomic_store_explicit(&cell->item, item, memory_order_relaxed);
                atomic_store_explicit(&cell->sequence, at + 1, FILL);
#endif
                return;
            }
        } else {
            at = atomic_load_explicit(&tail, memory_order_relaxed);
        }
    }
}

static void *producer(void *argument)
{
    enqueue((int)(long)argument + 1);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    int sum = 0;
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, producer, (void *)i);
    }
    while (atomic_load_explicit(&cells[0].sequence, memory_order_acquire) != 1) {
    }
    sum += atomic_load_explicit(&cells[0].item, memory_order_relaxed);
    assert(sum == 1 || sum == 2);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    sum += atomic_load_explicit(&cells[1].item, memory_order_relaxed);
    assert(sum == 3);
    return 0;
}
