// Asymmetric Dekker synchronisation: the owner of a biased lock enters with a store and a load; the other
// thread revokes the bias and waits until the owner is out.
// Source: D. Dice, H. Huang, M. Yang, "Asymmetric Dekker synchronization", Sun Microsystems, 2001.
// BROKEN_1: the owner has no fence between its store and its load.
// BROKEN_2: the revoker has no fence between its store and its load.
// BROKEN_3: the owner does not look for a revocation.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int inside, revoked, handed_over;
static int counter;

static void *owner(void *unused)
{
    atomic_store_explicit(&inside, 1, memory_order_relaxed);
#ifndef BROKEN_1
    atomic_thread_fence(memory_order_seq_cst);
#endif
#ifndef BROKEN_3
    if (atomic_load_explicit(&revoked, memory_order_relaxed)) {
        atomic_store_explicit(&inside, 0, memory_order_release);
        while (!atomic_load_explicit(&handed_over, memory_order_acquire)) {
        }
    }
#endif
    counter++;
    atomic_store_explicit(&inside, 0, memory_order_release);
    return unused;
}

static void *revoker(void *unused)
{
    atomic_store_explicit(&revoked, 1, memory_order_relaxed);
#ifndef BROKEN_2
    atomic_thread_fence(memory_order_seq_cst);
#endif
    while (atomic_load_explicit(&inside, memory_order_acquire)) {
    }
    counter++;
    atomic_store_explicit(&handed_over, 1, memory_order_release);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, owner, 0);
    pthread_create(&threads[1], 0, revoker, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(counter == 2);
    return 0;
}
