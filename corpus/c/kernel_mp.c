// Message passing and store buffering with the Linux kernel's operations, as verifiers declare them.
// Source: J. Alglave et al., "Frightening small children and disconcerting grown-ups: concurrency in the Linux
// kernel", ASPLOS 2018.
// BROKEN_1: no write barrier between the message and the flag.
// BROKEN_2: no full barrier between a thread's own flag and the other's.
#include <assert.h>
#include <pthread.h>

enum order { relaxed, once, acquire, release, mb, wmb, rmb };
enum operation { add, sub, and, or };
int __LKMM_LOAD(int *from, enum order order);
void __LKMM_STORE(int *to, int value, enum order order);
void __LKMM_FENCE(int kind);
int __LKMM_XCHG(int *at, int value, enum order order);
int __LKMM_CMPXCHG(int *at, int old, int new, enum order success, enum order failure);
int __LKMM_ATOMIC_FETCH_OP(int *at, int value, enum order order, enum operation operation);
int __LKMM_ATOMIC_OP_RETURN(int *at, int value, enum order order, enum operation operation);
void __LKMM_ATOMIC_OP(int *at, int value, enum operation operation);

static int message, ready, wants[2], inside;

static void announce(int me)
{
    __LKMM_STORE(&wants[me], 1, once);
#ifndef BROKEN_2
    __LKMM_FENCE(mb);
#endif
    if (!__LKMM_LOAD(&wants[1 - me], once)) {
        assert(__LKMM_ATOMIC_OP_RETURN(&inside, 1, relaxed, add) == 1);
        __LKMM_ATOMIC_OP(&inside, 1, sub);
    }
}

static void *first(void *argument)
{
    (void)argument;
    __LKMM_STORE(&message, 5, once);
#ifndef BROKEN_1
    __LKMM_FENCE(wmb);
#endif
    __LKMM_STORE(&ready, 1, once);
    announce(0);
    return 0;
}

static void *second(void *argument)
{
    (void)argument;
    if (__LKMM_ATOMIC_FETCH_OP(&ready, 2, acquire, or) & 1) {
        __LKMM_FENCE(rmb);
        assert(__LKMM_LOAD(&message, once) == 5);
        assert(__LKMM_CMPXCHG(&message, 4, 6, mb, mb) == 5);
        assert(__LKMM_XCHG(&message, 6, mb) == 5);
    }
    announce(1);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
