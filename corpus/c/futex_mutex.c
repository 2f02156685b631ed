// A mutex on a futex: 0 free, 1 taken, 2 taken and somebody may sleep. The kernel's part is modelled: waiting
// checks the word and falls asleep in one step.
// Source: U. Drepper, "Futexes are tricky", 2004, the second mutex.
// BROKEN_1: a thread that falls asleep does not announce it by the value 2.
// BROKEN_2: the kernel does not check the word again before the thread falls asleep.
// BROKEN_3: unlocking loads and stores the word in two steps.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int word;
static atomic_int kernel, asleep;
static int counter;

#ifdef BROKEN_1
#define CONTENDED 1
#else
#define CONTENDED 2
#endif

static void kernel_lock(void)
{
    while (atomic_exchange_explicit(&kernel, 1, memory_order_acquire)) {
    }
}

static void futex_wait(int value)
{
    kernel_lock();
#ifdef BROKEN_2
    (void)value;
#else
    if (atomic_load_explicit(&word, memory_order_seq_cst) != value) {
        atomic_store_explicit(&kernel, 0, memory_order_release);
        return;
    }
#endif
    atomic_store_explicit(&asleep, 1, memory_order_relaxed);
    atomic_store_explicit(&kernel, 0, memory_order_release);
    while (atomic_load_explicit(&asleep, memory_order_acquire)) {
    }
}

static void futex_wake(void)
{
    kernel_lock();
    atomic_store_explicit(&asleep, 0, memory_order_relaxed);
    atomic_store_explicit(&kernel, 0, memory_order_release);
}

static void lock(void)
{
    int old = 0;
    if (!atomic_compare_exchange_strong(&word, &old, 1)) {
        while (atomic_exchange(&word, CONTENDED) != 0) {
            futex_wait(CONTENDED);
        }
    }
}

static void unlock(void)
{
#ifdef BROKEN_3
    int old = atomic_load(&word);
    atomic_store(&word, 0);
#else
    int old = atomic_exchange(&word, 0);
#endif
    if (old == 2) {
        futex_wake();
    }
}

static void *work(void *unused)
{
    lock();
    counter++;
    unlock();
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
    assert(counter == 2);
    return 0;
}
