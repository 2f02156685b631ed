// Sequence lock: readers read again if the writer was active, and never make the writer wait.
// Source: Linux 2.5.60 (seqlock_t, 2003); H.-J. Boehm, "Can seqlocks get along with programming language
// memory models?", MSPC 2012.
// BROKEN_1: there is no fence between the odd number and the data.
// BROKEN_2: the even number is stored relaxed.
// BROKEN_3: the writer does not make the number odd.
// BROKEN_4: readers do not check the number again.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef BROKEN_2
#define EVEN memory_order_relaxed
#else
#define EVEN memory_order_release
#endif

static atomic_uint number;
static atomic_int left, right;

static void *writer(void *unused)
{
    for (int i = 1; i <= 2; i++) {
        unsigned now = atomic_load_explicit(&number, memory_order_relaxed);
#ifndef BROKEN_3
        atomic_store_explicit(&number, now + 1, memory_order_relaxed);
#endif
#ifndef BROKEN_1
        atomic_thread_fence(memory_order_release);
#endif
        atomic_store_explicit(&left, i, memory_order_relaxed);
        atomic_store_explicit(&right, i, memory_order_relaxed);
        atomic_store_explicit(&number, now + 2, EVEN);
    }
    return unused;
}

static void *reader(void *unused)
{
    unsigned before, after;
    int l, r;
    do {
        before = atomic_load_explicit(&number, memory_order_acquire);
        l = atomic_load_explicit(&left, memory_order_relaxed);
        r = atomic_load_explicit(&right, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&number, memory_order_relaxed);
#ifdef BROKEN_4
        after = before;
#endif
    } while (before % 2 != 0 || before != after);
    assert(l == r);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, writer, 0);
    pthread_create(&threads[1], 0, reader, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    assert(atomic_load(&left) == 2 && atomic_load(&right) == 2);
    return 0;
}
