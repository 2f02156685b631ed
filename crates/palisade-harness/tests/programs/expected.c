/* Compare-and-swap loops whose expected value is not on the stack. A failed attempt stores what it found there,
 * so the next attempt is another one: the loops end. */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int top;
static int expected[2];

static void *work(void *argument)
{
    int me = (int)(long)argument;
    while (!atomic_compare_exchange_weak(&top, &expected[me], me + 1)) {
    }
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
    int last = atomic_load(&top) - 1;
    assert(expected[last] == 2 - last);
    return 0;
}
