// Reference counting: whoever drops the last reference frees the object.
// Source: G. Collins, "A method for overlapping and erasure of lists", CACM 1960; orders as in Boost.Atomic's
// example of reference counting.
// BROKEN_1: the count is decremented by a load and a store.
// BROKEN_2: the count is loaded again after the decrement.
// BROKEN_3: a thread reads the object after it has dropped its reference.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct object {
    atomic_int references;
    int value;
};

static void drop(struct object *object)
{
#if defined(BROKEN_1)
    int before = atomic_load_explicit(&object->references, memory_order_acquire);
    atomic_store_explicit(&object->references, before - 1, memory_order_release);
#elif defined(BROKEN_2)
    atomic_fetch_sub_explicit(&object->references, 1, memory_order_release);
    int before = atomic_load_explicit(&object->references, memory_order_acquire) + 1;
#else
    int before = atomic_fetch_sub_explicit(&object->references, 1, memory_order_release);
#endif
    if (before == 1) {
        atomic_thread_fence(memory_order_acquire);
        object->value = 0;
        free(object);
    }
}

static void *work(void *argument)
{
    struct object *object = argument;
#ifdef BROKEN_3
    drop(object);
    assert(object->value == 7);
#else
    assert(object->value == 7);
    drop(object);
#endif
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    struct object *object = malloc(sizeof *object);
    atomic_init(&object->references, 1);
    object->value = 7;
    for (int i = 0; i < 2; i++) {
        atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
        pthread_create(&threads[i], 0, work, object);
    }
    drop(object);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
