/* Litmus tests: -DP0=… to -DP4=… are the steps of the threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int x, y, z, w;

#define R(v) atomic_load_explicit(&(v), memory_order_relaxed);
#define W(v, n) atomic_store_explicit(&(v), (n), memory_order_relaxed);
#define WSC(v, n) atomic_store_explicit(&(v), (n), memory_order_seq_cst);
#define COPY(to, from) atomic_store_explicit(&(to), atomic_load_explicit(&(from), memory_order_relaxed), memory_order_release);
#define INC(v) atomic_fetch_add_explicit(&(v), 1, memory_order_relaxed);
#define XCHG(v, n) atomic_exchange_explicit(&(v), (n), memory_order_relaxed);
#define CAS(v, from, to) \
    { \
        int expected = (from); \
        atomic_compare_exchange_strong_explicit(&(v), &expected, (to), memory_order_relaxed, memory_order_relaxed); \
    }
#define IF(v, above, step) if (atomic_load_explicit(&(v), memory_order_relaxed) > (above)) { step }
#define FENCE atomic_thread_fence(memory_order_seq_cst);

#define THREAD(name, steps) \
    static void *name(void *nothing) { \
        steps \
        return nothing; \
    }
THREAD(first, P0)
THREAD(second, P1)
#ifdef P2
THREAD(third, P2)
#endif
#ifdef P3
THREAD(fourth, P3)
#endif
#ifdef P4
THREAD(fifth, P4)
#endif

int main(void) {
    void *(*bodies[])(void *) = {
        first,
        second,
#ifdef P2
        third,
#endif
#ifdef P3
        fourth,
#endif
#ifdef P4
        fifth,
#endif
    };
    enum { COUNT = sizeof bodies / sizeof *bodies };
    pthread_t threads[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
