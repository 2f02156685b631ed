/* A struct is copied while another thread writes the original and then reads the copy. The exit code is what was seen,
 * and what the copy has at the end. */
#include <pthread.h>

#ifdef SMALL
struct s {
    int a, b;
};
#else
struct s {
    long a, rest[REST];
};
#endif

static struct s x, y;
static int seen;

static void *copies(void *nothing)
{
#ifdef SAME
    x = x;
#else
    y = x;
#endif
    return nothing;
}

static void *writes(void *nothing)
{
    x.a = 1;
    seen = (int)y.a;
    return nothing;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, copies, 0);
    pthread_create(&threads[1], 0, writes, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 1 + seen + 2 * (int)y.a + 4 * (int)x.a;
}
