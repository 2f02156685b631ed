/* A random program, generated from the seed in its argument. Two or three threads do a few operations on two
 * words, a lock, a semaphore and a condition variable. The exit code is the outcome. */

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 3, STEPS = 3 };

static atomic_int words[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int raised, program[THREADS][STEPS][2], seen[THREADS];

static void act(int me, int what, int which)
{
    atomic_int *word = &words[which];
    int expected = 0;
    switch (what) {
    case 0:
    case 1:
        atomic_store_explicit(word, 1 + me, memory_order_relaxed);
        break;
    case 2:
    case 3:
        seen[me] = 4 * seen[me] + atomic_load_explicit(word, memory_order_relaxed);
        break;
    case 4:
        seen[me] = 4 * seen[me] + atomic_fetch_add(word, 1);
        break;
    case 5:
        seen[me] = 4 * seen[me] + atomic_compare_exchange_strong(word, &expected, 3);
        break;
    case 6:
        pthread_mutex_lock(&mutex);
        words[which] += 1;
        raised = 1;
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&cond);
        break;
    case 7:
        pthread_mutex_lock(&mutex);
        if (!raised && which) {
            pthread_cond_wait(&cond, &mutex);
        }
        seen[me] = 4 * seen[me] + raised;
        pthread_mutex_unlock(&mutex);
        break;
    case 8:
        sem_post(&sem);
        break;
    case 9:
        seen[me] = 4 * seen[me] + (sem_trywait(&sem) == 0);
        break;
    case 10:
        atomic_thread_fence(memory_order_seq_cst);
        break;
    default:
        if (which) {
            while (!atomic_load_explicit(&words[0], memory_order_acquire)) {
            }
        } else {
            seen[me] = 4 * seen[me] + (pthread_mutex_trylock(&mutex) == 0);
            if (seen[me] % 4) {
                pthread_mutex_unlock(&mutex);
            }
        }
    }
}

static void *run(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < STEPS; i++) {
        act(me, program[me][i][0], program[me][i][1]);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    unsigned state = count > 1 ? (unsigned)atoi(arguments[1]) * 2654435761u + 12345 : 1;
    int threads = state % 3 ? 2 : 3;
    for (int i = 0; i < threads; i++) {
        for (int j = 0; j < (threads == 3 ? 2 : STEPS); j++) {
            state = state * 1103515245 + 12345;
            program[i][j][0] = (int)(state >> 16) % 12;
            program[i][j][1] = (int)(state >> 8) % 2;
        }
    }
    sem_init(&sem, 0, 0);
    pthread_t ids[THREADS];
    for (long i = 0; i < threads; i++) {
        pthread_create(&ids[i], NULL, run, (void *)i);
    }
    unsigned outcome = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        outcome = outcome * 31 + (unsigned)seen[i];
    }
    outcome = outcome * 31 + (unsigned)(words[0] * 5 + words[1]);
    return (int)(outcome % 120) + 1;
}
