/* A detached thread that may be anywhere when the program ends. The exit code is what the first thread has seen. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int x, y;

static void *run(void *nothing)
{
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    atomic_store_explicit(&y, 1, memory_order_relaxed);
#ifdef FAILS
    assert(atomic_load_explicit(&y, memory_order_relaxed) == 2);
#endif
    return nothing;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_detach(thread);
#ifdef READS
    int seen = atomic_load_explicit(&y, memory_order_relaxed);
    return 1 + seen + 2 * atomic_load_explicit(&x, memory_order_relaxed);
#else
    return 0;
#endif
}
