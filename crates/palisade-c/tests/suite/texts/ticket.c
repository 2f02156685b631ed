#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct ticket_lock {
    atomic_int next, owner;
};

static struct ticket_lock lock;
static int counter;

static void acquire(struct ticket_lock *l)
{
    int mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    while (atomic_load_explicit(&l->owner, memory_order_acquire) != mine)
        ;
}

static void release(struct ticket_lock *l)
{
    int owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
    atomic_store_explicit(&l->owner, owner + 1, memory_order_release);
}

static void *work(void *argument)
{
    long index = (long)argument;
    acquire(&lock);
    counter = (int)index;
    assert(counter == index);
    release(&lock);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
