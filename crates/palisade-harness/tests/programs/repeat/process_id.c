/* Does something different in every process. */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#ifndef THREADS
#define THREADS 2
#endif

static atomic_int cells[1 << 16];

static void *work(void *argument)
{
    (void)argument;
    atomic_store(&cells[0], 1);
    atomic_store(&cells[getpid() % 65521 + 1], 1); /* here */
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
