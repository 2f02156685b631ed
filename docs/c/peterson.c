#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag[2], turn;
static int counter;

static void lock(int me)
{
    atomic_store(&flag[me], 1);
    atomic_store(&turn, 1 - me);
    while (atomic_load(&flag[1 - me]) && atomic_load(&turn) == 1 - me) {
    }
}

static void unlock(int me)
{
    atomic_store(&flag[me], 0);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < 2; i++) {
        lock(me);
        counter++;
        unlock(me);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(counter == 4);
    return 0;
}
