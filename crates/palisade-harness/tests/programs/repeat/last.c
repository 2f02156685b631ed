/* The first thread ends by itself; the process ends with the last of the others, whichever that is. */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int count;

static void *child(void *argument)
{
    (void)argument;
    atomic_fetch_add(&count, 1);
    return NULL;
}

static void *work(void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, child, argument);
    pthread_detach(thread);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        pthread_detach(thread);
    }
    pthread_exit(NULL);
}
