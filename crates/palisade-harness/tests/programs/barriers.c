/* A small program, given by its arguments: how many threads a barrier waits for, and then one argument per thread. An
 * operation is a letter, a word and a number. The exit code is the outcome. tests/suite/external/barriers.rs has the same
 * operations. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { WORDS = 2, THREADS = 3 };

static atomic_uint words[WORDS];
static unsigned seen[THREADS];
static char **codes;
static pthread_barrier_t barrier;

static void *run(void *argument)
{
    unsigned *noted = argument;
    for (const char *at = codes[noted - seen]; *at; at += 3) {
        atomic_uint *word = &words[at[1] - '0'];
        if (*at == 'S') {
            atomic_store_explicit(word, (unsigned)(at[2] - '0'), memory_order_relaxed);
        } else if (*at == 'L') {
            *noted = *noted * 3 + atomic_load_explicit(word, memory_order_relaxed);
        } else if (*at == 'B') {
            pthread_barrier_wait(&barrier);
        } else {
            *noted = *noted * 3 + (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
        }
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    unsigned all = 0;
    pthread_barrier_init(&barrier, NULL, (unsigned)atoi(arguments[1]));
    codes = arguments + 2;
    for (int i = 0; i < count - 2; i++) {
        pthread_create(&threads[i], NULL, run, &seen[i]);
    }
    for (int i = 0; i < count - 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < count - 2; i++) {
        all = all * 31 + seen[i];
    }
    for (int i = 0; i < WORDS; i++) {
        all = all * 31 + words[i];
    }
    return 1 + (int)(all % 200);
}
