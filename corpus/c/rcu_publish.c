// Publishing a structure by a pointer, as rcu_assign_pointer does: readers see all of it or nothing.
// Source: P. McKenney, J. Slingwine, "Read-copy update: using execution history to solve concurrency
// problems", PDCS 1998.
// BROKEN_1: the pointer is stored relaxed.
// BROKEN_2: the pointer is stored before the structure is filled.
// BROKEN_3: readers load the pointer twice, and get fields of two versions.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_1
#define PUBLISH memory_order_relaxed
#else
#define PUBLISH memory_order_release
#endif

struct config {
    atomic_int width, height;
};

static struct config versions[2];
static _Atomic(struct config *) current;

static void *writer(void *unused)
{
    for (int i = 0; i < 2; i++) {
        struct config *fresh = &versions[i];
#ifdef BROKEN_2
        atomic_store_explicit(&current, fresh, PUBLISH);
#endif
        atomic_store_explicit(&fresh->width, i + 1, memory_order_relaxed);
        atomic_store_explicit(&fresh->height, i + 1, memory_order_relaxed);
#ifndef BROKEN_2
        atomic_store_explicit(&current, fresh, PUBLISH);
#endif
    }
    return unused;
}

static void *reader(void *unused)
{
    struct config *now = atomic_load_explicit(&current, memory_order_acquire);
    if (now) {
        int width = atomic_load_explicit(&now->width, memory_order_relaxed);
#ifdef BROKEN_3
        now = atomic_load_explicit(&current, memory_order_acquire);
#endif
        int height = atomic_load_explicit(&now->height, memory_order_relaxed);
        assert(width > 0 && width == height);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], 0, writer, 0);
    pthread_create(&threads[1], 0, reader, 0);
    pthread_create(&threads[2], 0, reader, 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], 0);
    }
    return 0;
}
