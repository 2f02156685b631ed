// Treiber's stack of reused nodes: the top is an index with a tag that changes with every exchange.
// Source: IBM System/370 Extended Architecture, Principles of Operation, 1983, appendix A (free-pool lists).
// BROKEN_1: the tag does not change, so that the top can be A, then B, then A again.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define NODES 2
#define INDEX(word) ((word) & 3)
#ifdef BROKEN_1
#define TAGGED(old, index) (index)
#else
#define TAGGED(old, index) ((((old) & ~3u) + 4) | (index))
#endif

static atomic_uint next[NODES + 1];     // nodes are numbered from 1, 0 is the end
static atomic_int owned[NODES + 1];
static atomic_uint top;

static void push(unsigned node)
{
    unsigned old = atomic_load_explicit(&top, memory_order_relaxed);
    atomic_store_explicit(&owned[node], 0, memory_order_relaxed);
    do {
        atomic_store_explicit(&next[node], INDEX(old), memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&top, &old, TAGGED(old, node), memory_order_release,
                                                    memory_order_relaxed));
}

static unsigned pop(void)
{
    unsigned after, old = atomic_load_explicit(&top, memory_order_acquire);
    do {
        if (INDEX(old) == 0) {
            return 0;
        }
        after = atomic_load_explicit(&next[INDEX(old)], memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&top, &old, TAGGED(old, after), memory_order_acquire,
                                                    memory_order_acquire));
    assert(!atomic_exchange(&owned[INDEX(old)], 1));
    return INDEX(old);
}

static void *pops_two(void *unused)
{
    unsigned first = pop();
    pop();
    if (first) {
        push(first);
    }
    return unused;
}

static void *pops_one(void *unused)
{
    pop();
    pop();
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    push(1);
    push(2);
    pthread_create(&threads[0], 0, pops_two, 0);
    pthread_create(&threads[1], 0, pops_one, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
