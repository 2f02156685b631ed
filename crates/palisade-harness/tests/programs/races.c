/* A data race, and accesses that a mutex orders. */

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int raced, ordered;

static void *run(void *argument)
{
    raced++;
    pthread_mutex_lock(&mutex);
    ordered++;
    pthread_mutex_unlock(&mutex);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, run, 0);
    pthread_create(&threads[1], 0, run, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
