/* Five threads that add to the same number and look at it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int number;

static void *add(void *nothing)
{
    atomic_fetch_add_explicit(&number, 1, memory_order_relaxed);
    return nothing;
}

static void *look(void *nothing)
{
    atomic_load_explicit(&number, memory_order_relaxed);
    return nothing;
}

int main(void)
{
    void *(*bodies[])(void *) = {add, add, add, look, look};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) {
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    }
    for (int i = 0; i < 5; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
