// Double-checked initialisation with a mutex.
// Source: D. Schmidt, T. Harrison, "Double-checked locking", PLoP 1996; S. Meyers, A. Alexandrescu, "C++ and
// the perils of double-checked locking", Dr. Dobb's Journal 2004.
// BROKEN_1: the pointer is stored relaxed.
// BROKEN_2: the pointer is stored before the object is complete.
// BROKEN_3: there is no second check.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_1
#define PUBLISH memory_order_relaxed
#else
#define PUBLISH memory_order_release
#endif

struct object {
    volatile int size;
};

static struct object only;
static _Atomic(struct object *) instance;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int made;

static struct object *get(void)
{
    struct object *object = atomic_load_explicit(&instance, memory_order_acquire);
    if (!object) {
        pthread_mutex_lock(&mutex);
#ifndef BROKEN_3
        object = atomic_load_explicit(&instance, memory_order_relaxed);
        if (!object)
#endif
        {
            object = &only;
#ifdef BROKEN_2
            atomic_store_explicit(&instance, object, PUBLISH);
            object->size = 7;
#else
            object->size = 7;
            atomic_store_explicit(&instance, object, PUBLISH);
#endif
            made++;
        }
        pthread_mutex_unlock(&mutex);
    }
    return object;
}

static void *work(void *unused)
{
    assert(get()->size == 7);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, work, 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    assert(made == 1);
    return 0;
}
