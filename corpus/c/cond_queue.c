// A buffer for one item, with a mutex and one condition variable: a producer and two consumers.
// Source: C. A. R. Hoare, "Monitors: an operating system structuring concept", CACM 1974;
// B. Lampson, D. Redell, "Experience with processes and monitors in Mesa", CACM 1980, on waiting in a loop.
// BROKEN_1: consumers wait with `if` instead of `while`.
// BROKEN_2: signal instead of broadcast; it can wake the wrong thread.
// BROKEN_3: the producer does not take the mutex.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile int item;               // 0: there is none
static int sum;

static void announce(void)
{
#ifdef BROKEN_2
    pthread_cond_signal(&changed);
#else
    pthread_cond_broadcast(&changed);
#endif
}

static void *producer(void *unused)
{
    for (int i = 1; i <= 2; i++) {
#ifdef BROKEN_3
        while (item) {
        }
        item = i;
        announce();
#else
        pthread_mutex_lock(&mutex);
        while (item) {
            pthread_cond_wait(&changed, &mutex);
        }
        item = i;
        announce();
        pthread_mutex_unlock(&mutex);
#endif
    }
    return unused;
}

static void *consumer(void *unused)
{
    pthread_mutex_lock(&mutex);
#ifdef BROKEN_1
    if (!item) {
#else
    while (!item) {
#endif
        pthread_cond_wait(&changed, &mutex);
    }
    assert(item);
    sum += item;
    item = 0;
    announce();
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], 0, producer, 0);
    pthread_create(&threads[1], 0, consumer, 0);
    pthread_create(&threads[2], 0, consumer, 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], 0);
    }
    assert(sum == 3);
    return 0;
}
