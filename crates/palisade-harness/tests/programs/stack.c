/* Store buffering on the stack of the first thread, for which compilers omit some calls. `MINE` says how the
 * first thread stores. */

#include <pthread.h>
#include <string.h>

struct large {
    long words[4];
};

struct pair {
    union {
        struct large large;
        long double real;
        int number;
    } x, y;
};

static long double number = 1.5L;
volatile int seen[2];

static __attribute__((noinline)) struct large make(long value)
{
    struct large made = {{value, value, value, value}};
    return made;
}

static void *other(void *argument)
{
    struct pair *pair = argument;
    pair->y.number = 1;
    seen[0] = pair->x.number;
    return argument;
}

int main(void)
{
    struct pair pair;
    memset(&pair, 0, sizeof pair);
    pthread_t thread;
    pthread_create(&thread, NULL, other, &pair);
#if defined RETURNS
    pair.x.large = make(1);
#elif defined LONG_DOUBLE
    pair.x.real = number;
#else
    pair.x.number = (int)make(1).words[0];
#endif
    seen[1] = pair.y.number;
    pthread_join(thread, NULL);
    return 0;
}
