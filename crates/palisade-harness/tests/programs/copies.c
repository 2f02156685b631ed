/* Store buffering whose stores are made by functions that optimising compilers expand inline. */
#include <pthread.h>
#include <string.h>

static char x[20], y[20];
static const char *volatile source = "abcdefghijklmnopqrstuvwxyz";
int seen[2];

static void write_to(char *to)
{
#if defined SET
    memset(to, 1, 20);
#elif defined COPY
    memcpy(to, source, 7);
#else
    memmove(to, source, 7);
#endif
}

static void *one(void *nothing)
{
    write_to(x);
    seen[0] = y[0];
    return nothing;
}

static void *two(void *nothing)
{
    write_to(y);
    seen[1] = x[0];
    return nothing;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return seen[0] < 0 || seen[1] < 0;
}
