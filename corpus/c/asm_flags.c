// Two threads announce themselves and look for each other, with barriers in inline assembly.
// Source: E. W. Dijkstra, "Cooperating sequential processes", 1965; a locked instruction on the stack is the
// barrier of most kernels and libraries for x86.
// BROKEN_1: the barrier is one for the compiler only.
// BROKEN_2: `sfence` does not order a store before a later load.
#include <assert.h>
#include <pthread.h>

static int wants[2];
static int inside;

static void barrier(void)
{
#if defined BROKEN_1
    __asm__ volatile("" : : : "memory");
#elif defined BROKEN_2
    __asm__ volatile("sfence" : : : "memory");
#else
    __asm__ volatile("lock; addl $0, -4(%%rsp)" : : : "memory", "cc");
#endif
}

static void *enter(void *argument)
{
    long me = (long)argument;
    int other = 1;
    int one = 1;
    int *mine = &wants[me];
    __asm__ volatile("movl %1, %0" : "=m"(*mine) : "ri"(1) : "memory");
    barrier();
    __asm__ volatile("movl %1, %0" : "=r"(other) : "m"(wants[1 - me]) : "memory");
    if (!other) {
        // An exchange is always locked.
        __asm__ volatile("xchgl %1, %0" : "+m"(inside), "+r"(one) : : "memory");
        assert(one == 0);
        __asm__ volatile("lock decl (%0)" : : "r"(&inside) : "memory", "cc");
    }
    __asm__ volatile("lock andl $0, %0" : "+m"(*mine) : : "memory", "cc");
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, enter, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    return 0;
}
