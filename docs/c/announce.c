#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

atomic_int wants[2];
atomic_int inside;

static void *enter(void *argument)
{
    int me = (int)(long)argument;
    atomic_store_explicit(&wants[me], 1, memory_order_release);
    if (!atomic_load_explicit(&wants[1 - me], memory_order_acquire)) {
        int others = atomic_fetch_add(&inside, 1);
        assert(others == 0);
        atomic_fetch_sub(&inside, 1);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, enter, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
