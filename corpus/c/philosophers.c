// Three dining philosophers with a mutex per chopstick. The last one reaches for the other chopstick first.
// Source: E. W. Dijkstra, "Hierarchical ordering of sequential processes", EWD 310, 1971.
// BROKEN_1: all reach for the left chopstick first.
// BROKEN_2: a philosopher takes the second chopstick only if it is free, and eats anyway.
#include <assert.h>
#include <pthread.h>

#define SEATS 3

static pthread_mutex_t chopstick[SEATS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                           PTHREAD_MUTEX_INITIALIZER};
static int used[SEATS];

static void *philosopher(void *argument)
{
    int left = (int)(long)argument, right = (left + 1) % SEATS;
#ifndef BROKEN_1
    if (right < left) {
        int swap = left;
        left = right;
        right = swap;
    }
#endif
    pthread_mutex_lock(&chopstick[left]);
#ifdef BROKEN_2
    int got = pthread_mutex_trylock(&chopstick[right]) == 0;
    used[left]++;
    used[right]++;
    if (got) {
        pthread_mutex_unlock(&chopstick[right]);
    }
#else
    pthread_mutex_lock(&chopstick[right]);
    used[left]++;
    used[right]++;
    pthread_mutex_unlock(&chopstick[right]);
#endif
    pthread_mutex_unlock(&chopstick[left]);
    return 0;
}

int main(void)
{
    pthread_t threads[SEATS];
    for (long i = 0; i < SEATS; i++) {
        pthread_create(&threads[i], 0, philosopher, (void *)i);
    }
    for (int i = 0; i < SEATS; i++) {
        pthread_join(threads[i], 0);
    }
    for (int i = 0; i < SEATS; i++) {
        assert(used[i] == 2);
    }
    return 0;
}
