// Two threads take turns with two semaphores.
// Source: E. W. Dijkstra, "Cooperating sequential processes", EWD 123, 1965.
// BROKEN_1: the message is stored after the semaphore is raised.
// BROKEN_2: the reply is not awaited.
// BROKEN_3: both threads wait first.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

#define ROUNDS 2

static sem_t sent, received;
static int message;

static void *sender(void *unused)
{
    for (int i = 1; i <= ROUNDS; i++) {
#ifdef BROKEN_3
        sem_wait(&received);
#endif
#ifdef BROKEN_1
        sem_post(&sent);
        message = i;
#else
        message = i;
        sem_post(&sent);
#endif
#if !defined(BROKEN_2) && !defined(BROKEN_3)
        sem_wait(&received);
#endif
    }
    return unused;
}

static void *receiver(void *unused)
{
    for (int i = 1; i <= ROUNDS; i++) {
        sem_wait(&sent);
        assert(message == i);
        sem_post(&received);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&sent, 0, 0);
    sem_init(&received, 0, 0);
    pthread_create(&threads[0], 0, sender, 0);
    pthread_create(&threads[1], 0, receiver, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
