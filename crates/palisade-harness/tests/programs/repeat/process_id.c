/* Does something else in every process. */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_int cells[64];

static void *work(void *argument)
{
    (void)argument;
    atomic_store(&cells[0], 1);
    atomic_store(&cells[getpid() % 63 + 1], 1); /* here */
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
