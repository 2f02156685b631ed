/* A loop that changes nothing but the stack of its thread, and returns to an earlier state. Another thread
 * reads that stack in between. */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(atomic_int *) published;
static atomic_int done, seen;

static void *look(void *argument)
{
    (void)argument;
    atomic_int *door = atomic_load(&published);
    if (door) {
        atomic_store(&seen, atomic_load(door));
    }
    atomic_store(&done, 1);
    return NULL;
}

int main(void)
{
    atomic_int door = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, look, NULL);
    atomic_store(&published, &door);
    while (!atomic_load(&done)) {
        atomic_store_explicit(&door, 1, memory_order_relaxed);
        atomic_store_explicit(&door, 0, memory_order_relaxed);
    }
    pthread_join(thread, NULL);
    return atomic_load(&seen);
}
