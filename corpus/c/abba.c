// Two accounts with a mutex each: transfers take both mutexes, in one order.
// Source: E. W. Dijkstra, "Hierarchical ordering of sequential processes", EWD 310, 1971.
// BROKEN_1: each thread takes its own mutex first (AB-BA).
// BROKEN_2: the second mutex is left out, and the first one is given back early.
// BROKEN_3: one thread returns without giving the second mutex back.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t mutex[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int account[2] = {1, 1};

static void *transfer(void *argument)
{
    int from = (int)(long)argument, to = 1 - from;
#ifdef BROKEN_1
    int first = from;
#else
    int first = 0;
#endif
    pthread_mutex_lock(&mutex[first]);
#ifdef BROKEN_2
    account[from]--;
    pthread_mutex_unlock(&mutex[first]);
    account[to]++;
#else
    pthread_mutex_lock(&mutex[1 - first]);
    account[from]--;
    account[to]++;
#ifdef BROKEN_3
    if (from == 0)
#endif
        pthread_mutex_unlock(&mutex[1 - first]);
    pthread_mutex_unlock(&mutex[first]);
#endif
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, transfer, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    assert(account[0] == 1 && account[1] == 1);
    return 0;
}
