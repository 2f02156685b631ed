// Two threads with a volatile flag each: whoever sees the other's flag stays out. The core of every mutual
// exclusion by loads and stores.
// Source: E. W. Dijkstra, EWD 123, 1965; P. Sewell and others, "x86-TSO", CACM 2010 (store buffering).
// BROKEN_1: there is no barrier.
// BROKEN_2: the barrier is one for the compiler only.
// BROKEN_3: thread 1 has no barrier.
// BROKEN_4: the other's flag is checked before the own one is raised.
#include <assert.h>
#include <pthread.h>

#if defined(BROKEN_1)
#define BARRIER(me) (void)(me)
#elif defined(BROKEN_2)
#define BARRIER(me) __asm__ __volatile__("" ::: "memory")
#elif defined(BROKEN_3)
#define BARRIER(me) if ((me) == 0) __sync_synchronize()
#else
#define BARRIER(me) __sync_synchronize()
#endif

static volatile int flag[2];
static volatile int inside[2];

static void *work(void *argument)
{
    int me = (int)(long)argument;
#ifdef BROKEN_4
    int alone = !flag[1 - me];
    flag[me] = 1;
    BARRIER(me);
#else
    flag[me] = 1;
    BARRIER(me);
    int alone = !flag[1 - me];
#endif
    inside[me] = alone;
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, work, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    assert(!(inside[0] && inside[1]));
    return 0;
}
