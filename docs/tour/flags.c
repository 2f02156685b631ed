// A lock made of two flags: set your own, then check the other's. Correct on paper, wrong with store buffers.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag[2];
static atomic_int inside;

static void *enter(void *argument)
{
    int me = (int)(long)argument;
    atomic_store_explicit(&flag[me], 1, memory_order_release);
    if (!atomic_load_explicit(&flag[1 - me], memory_order_acquire)) {
        assert(atomic_fetch_add(&inside, 1) == 0);
        atomic_fetch_sub(&inside, 1);
    }
    atomic_store_explicit(&flag[me], 0, memory_order_release);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, enter, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    return 0;
}
