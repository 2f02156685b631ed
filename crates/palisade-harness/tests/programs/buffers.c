/* Tests of store buffers: how many partial orders there are, and what threads see of pending stores. */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define STORE(to, value) atomic_store_explicit(&to, value, memory_order_relaxed)
#define LOAD(from) atomic_load_explicit(&from, memory_order_relaxed)

#if defined RFI
/* SB in which each thread first reads its own store. */
static atomic_int x, y;
static void *first(void *a) { STORE(x, 1); (void)LOAD(x); (void)LOAD(y); return a; }
static void *second(void *a) { STORE(y, 1); (void)LOAD(y); (void)LOAD(x); return a; }
#elif defined WRITES
/* 2+2W. */
static atomic_int x, y;
static void *first(void *a) { STORE(x, 1); STORE(y, 2); return a; }
static void *second(void *a) { STORE(y, 1); STORE(x, 2); return a; }
#elif defined COHERENCE
/* A thread sees its own store until another one overwrites it. */
static atomic_int x;
static void *first(void *a) { STORE(x, 1); int r = LOAD(x); assert(r != 0); r = LOAD(x); return a; }
static void *second(void *a) { STORE(x, 2); return a; }
#elif defined MIXED
/* Stores of several sizes to the same bytes: the newest one counts for each byte. */
static union { uint64_t all; uint32_t half[2]; uint16_t quarter[4]; unsigned char byte[8]; } volatile u;
static void *first(void *a)
{
    u.all = 0x1111111111111111;
    u.half[1] = 0x22222222;
    u.byte[7] = 0x33;
    assert(u.all == 0x3322222211111111 && u.quarter[3] == 0x3322 && u.half[0] == 0x11111111);
    u.quarter[0] = 0x4444;
    assert(u.all == 0x3322222211114444);
    return a;
}
static void *second(void *a)
{
    /* Under PSO, the last store may reach memory before others that it does not overlap. */
    uint64_t all = u.all, high = all >> 16, low = all & 0xffff;
    assert(all == 0 || ((high == 0x111111111111 || high == 0x222222221111 || high == 0x332222221111) &&
                        (low == 0x1111 || low == 0x4444)));
    return a;
}
#elif defined STACK
/* Stores to frames that are left while they are pending. */
static atomic_int x;
static int deep(int depth, int *up)
{
    volatile int here[8];
    memset((void *)here, depth, sizeof here);
    STORE(x, depth);
    *up += here[3] & 1;
    int below = 0;
    return depth ? deep(depth - 1, &below) + below : 0;
}
static int expected;
static int sum_up(void)
{
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        int part = 0;
        sum += deep(5, &part);
        sum += part;
    }
    return sum;
}
static void *first(void *a) { assert(sum_up() == expected); return a; }
static void *second(void *a) { return first(a); }
#elif defined SPIN
/* A spin lock is given back by a plain store. */
static pthread_spinlock_t lock;
static int count;
static void *first(void *a)
{
    for (int i = 0; i < 2; i++) {
        pthread_spin_lock(&lock);
        int now = count;
        count = now + 1;
        pthread_spin_unlock(&lock);
    }
    return a;
}
static void *second(void *a) { return first(a); }
#elif defined RANGE
/* The second thread looks at the end of a struct that the first one copies in one step. */
struct three { long a, b, c; };
static struct three from = {1, 2, 3}, to;
static void *first(void *a) { to = from; return a; }
static void *second(void *a) { assert(to.c == 0); return a; }
#else
static atomic_int x, y;
static int r[2];
static void *first(void *a) { STORE(x, 1); r[0] = LOAD(y); return a; }
static void *second(void *a) { STORE(y, 1); r[1] = LOAD(x); return a; }
#endif

int main(void)
{
    pthread_t threads[2];
#if defined SPIN
    pthread_spin_init(&lock, 0);
#elif defined STACK
    expected = sum_up();
#endif
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
#if defined SPIN
    assert(count == 4);
#elif defined SB
    assert(r[0] || r[1]);
#endif
    return 0;
}
