/* Small tests of two threads with two accesses each. */

#include <pthread.h>
#include <stdatomic.h>

static atomic_int x, y;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int r[2];

#ifdef FENCED
#define FENCE() atomic_thread_fence(memory_order_seq_cst)
#else
#define FENCE()
#endif
#ifdef RELEASE
#define STORED memory_order_release
#else
#define STORED memory_order_relaxed
#endif
#define STORE(to) atomic_store_explicit(&to, 1, STORED)
#define LOAD(from) atomic_load_explicit(&from, memory_order_relaxed)

static void *first(void *argument)
{
#if defined SB
    STORE(x);
    FENCE();
    r[0] = LOAD(y);
#elif defined MP
    STORE(x);
    STORE(y);
#else
    pthread_mutex_lock(&mutex);
    STORE(x);
    pthread_mutex_unlock(&mutex);
#endif
    return argument;
}

static void *second(void *argument)
{
#if defined SB
    STORE(y);
    FENCE();
    r[1] = LOAD(x);
#elif defined MP
    r[0] = LOAD(y);
    r[1] = LOAD(x);
#else
    pthread_mutex_lock(&mutex);
    STORE(x);
    pthread_mutex_unlock(&mutex);
#endif
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    (void)mutex;
    return 0;
}
