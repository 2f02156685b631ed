/* The rounding modes of both kinds of floating-point arithmetic, and the exception flags, belong to a thread.
 * A new thread begins with those of the thread that starts it. */

#include <assert.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int steps;

/* One third is the same before and after a step, in double and in long double. Three of them exceed one only
 * if it was rounded upwards. */
static void rounds_as(int mode)
{
    volatile double one = 1, three = 3, small = one / three;
    volatile long double long_one = 1, long_three = 3, long_small = long_one / long_three;
    assert(fegetround() == mode);
    atomic_fetch_add(&steps, 1);
    volatile double again = one / three;
    volatile long double long_again = long_one / long_three;
    assert(fegetround() == mode && small == again && long_small == long_again);
    assert((mode == FE_UPWARD) == (again * 3 > 1));
}

static void *inherits(void *mode)
{
    rounds_as((int)(long)mode);
    fesetround(FE_TONEAREST);
    rounds_as(FE_TONEAREST);
    return NULL;
}

static void *rounds(void *argument)
{
    int mode = (int)(long)argument;
    pthread_t thread;
    assert(fegetround() == FE_TOWARDZERO);
    fesetround(mode);
    pthread_create(&thread, NULL, inherits, argument);
    for (int i = 0; i < 3; i++) {
        rounds_as(mode);
    }
    pthread_join(thread, NULL);
    rounds_as(mode);
    return NULL;
}

static void *divides(void *argument)
{
    int flag = (int)(long)argument;
    feclearexcept(FE_ALL_EXCEPT);
    volatile double zero = 0, result = (flag == FE_DIVBYZERO ? 1 : zero) / zero;
    for (int i = 0; i < 3; i++) {
        atomic_fetch_add(&steps, 1);
        assert(fetestexcept(FE_DIVBYZERO | FE_INVALID) == flag);
    }
    (void)result;
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    fesetround(FE_TOWARDZERO);
    pthread_create(&threads[0], NULL, rounds, (void *)(long)FE_UPWARD);
    pthread_create(&threads[1], NULL, rounds, (void *)(long)FE_DOWNWARD);
    pthread_create(&threads[2], NULL, divides, (void *)(long)FE_DIVBYZERO);
    pthread_create(&threads[3], NULL, divides, (void *)(long)FE_INVALID);
    rounds_as(FE_TOWARDZERO);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    rounds_as(FE_TOWARDZERO);
    return 0;
}
