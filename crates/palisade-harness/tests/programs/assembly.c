/* Store buffering with fences and locked instructions in inline assembly, which compilers do not look into. */

#include <pthread.h>

static volatile int x, y, r[2];
static int counter;

static void fence(void)
{
#if defined MFENCE
    __asm__ volatile("mfence" ::: "memory");
#elif defined LOCK_ADD
    __asm__ volatile("lock; addl $0, (%%rsp)" ::: "memory", "cc");
#elif defined SFENCE
    __asm__ volatile("sfence" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

static void count(void)
{
#if defined PLAIN
    __asm__ volatile("incl %0" : "+m"(counter));
#else
    __asm__ volatile("lock; incl %0" : "+m"(counter));
#endif
}

static void *first(void *argument)
{
    x = 1;
    fence();
    r[0] = y;
    count();
    return argument;
}

static void *second(void *argument)
{
    y = 1;
    fence();
    r[1] = x;
    count();
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return counter != 2;
}
