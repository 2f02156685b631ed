// A thread that sleeps until there is work, and one that wakes it. A fence is missing on each side.
#include <pthread.h>
#include <stdatomic.h>

static atomic_int work, asleep, woken;

static void *sleep_until_work(void *nothing)
{
    atomic_store_explicit(&asleep, 1, memory_order_release);

    if (atomic_load_explicit(&work, memory_order_acquire))
        return nothing;

    while (!atomic_load_explicit(&woken, memory_order_acquire))
        ;
    return nothing;
}

static void add_work(void)
{
    atomic_store_explicit(&work, 1, memory_order_release);
    if (atomic_load_explicit(&asleep, memory_order_acquire))
        atomic_store_explicit(&woken, 1, memory_order_release);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, sleep_until_work, 0);
    add_work();
    pthread_join(thread, 0);
    return 0;
}
