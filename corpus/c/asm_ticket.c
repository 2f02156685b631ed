// Ticket lock in inline assembly for x86, as libraries that are older than C11 write it.
// Source: J. Mellor-Crummey, M. Scott, "Algorithms for scalable synchronization on shared-memory
// multiprocessors", ACM TOCS 9(1), 1991; the instructions are those of Intel's manual.
// BROKEN_1: `xadd` without `lock` is a load and a store.
// BROKEN_2: the compare-and-exchange that takes the free lock is done in two instructions.
#include <assert.h>
#include <pthread.h>

static unsigned int next;
static unsigned int serving;
static int owner;
static int counter;

static unsigned int fetch_add(unsigned int *at, unsigned int by)
{
#ifdef BROKEN_1
    __asm__ volatile("xaddl %1, %0" : "+m"(*at), "+r"(by) : : "memory", "cc");
#else
    __asm__ volatile("lock xaddl %1, %0" : "+m"(*at), "+r"(by) : : "memory", "cc");
#endif
    return by;
}

static unsigned int load(unsigned int *at)
{
    unsigned int value;
    __asm__ volatile("movl %1, %0" : "=r"(value) : "m"(*at) : "memory");
    return value;
}

static void store(unsigned int *at, unsigned int value)
{
    __asm__ volatile("movl %1, %0" : "=m"(*at) : "r"(value) : "memory");
}

static int compare_exchange(unsigned int *at, unsigned int old, unsigned int new)
{
#ifdef BROKEN_2
    if (load(at) != old) {
        return 0;
    }
    store(at, new);
    return 1;
#else
    unsigned char done;
    __asm__ volatile("lock; cmpxchgl %3, %0\n\tsete %1"
                     : "+m"(*at), "=q"(done), "+a"(old)
                     : "r"(new)
                     : "memory", "cc");
    return done;
#endif
}

static void lock(void)
{
    unsigned int ticket = fetch_add(&next, 1);
    while (load(&serving) != ticket) {
        __asm__ volatile("pause" : : : "memory");
    }
}

static int try_lock(void)
{
    unsigned int now = load(&serving);
    return compare_exchange(&next, now, now + 1);
}

static void unlock(void)
{
    // x86 keeps the order of stores by itself.
    __asm__ volatile("sfence" : : : "memory");
    store(&serving, load(&serving) + 1);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    if (me == 2) {
        if (!try_lock()) {
            return 0;
        }
    } else {
        lock();
    }
    owner = me;
    counter++;
    assert(owner == me);
    unlock();
    return 0;
}

int main(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) {
        pthread_create(&threads[i], 0, work, (void *)i);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], 0);
    }
    assert(counter >= 2);
    return 0;
}
