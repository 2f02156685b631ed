/* A small program, given by its arguments, one per thread. An operation is a letter, a word and a number. The exit code
 * is the outcome. tests/suite/external/loops.rs has the same operations. */

#include <pthread.h>
#include <stdatomic.h>

enum { WORDS = 2, THREADS = 3 };

static atomic_uint words[WORDS];
static unsigned seen[THREADS];
static char **codes;

#define LOAD(word) atomic_load_explicit(word, memory_order_relaxed)

static void act(unsigned *noted, char what, atomic_uint *word, unsigned number)
{
    unsigned expected = number;
    switch (what) {
    case 'S':
        atomic_store_explicit(word, number, memory_order_relaxed);
        break;
    case 'L':
        *noted = *noted * 3 + LOAD(word);
        break;
    case 'X':
        *noted = *noted * 3 + atomic_exchange(word, number);
        break;
    case 'F':
        atomic_thread_fence(memory_order_seq_cst);
        break;
    case 'A': /* waits for a number */
        while (LOAD(word) != number) {
        }
        break;
    case 'E': /* waits for a number in either word */
        for (;;) {
            if (LOAD(&words[0]) == number) {
                break;
            }
            if (LOAD(&words[1]) == number) {
                break;
            }
        }
        break;
    case 'D': { /* the same, and reads both words in any case */
        unsigned first = 0, second = 0;
        do {
            first = LOAD(&words[0]);
            second = LOAD(&words[1]);
        } while (first != number && second != number);
        break;
    }
    case 'C': /* a compare-and-swap that is repeated until it succeeds */
        while (!atomic_compare_exchange_weak(word, &expected, (number + 1) % 3)) {
            expected = number;
        }
        break;
    case 'T': /* test-and-set */
        while (atomic_exchange(word, 1)) {
        }
        break;
    }
}

static void *run(void *argument)
{
    long me = (long)argument;
    unsigned noted = 0;
    for (const char *at = codes[me]; *at; at += 3) {
        act(&noted, at[0], &words[at[1] - '0'], (unsigned)(at[2] - '0'));
    }
    seen[me] = noted;
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    codes = arguments + 1;
    for (long i = 0; i < count - 1; i++) {
        pthread_create(&threads[i], NULL, run, (void *)i);
    }
    unsigned outcome = 0;
    for (int i = 0; i < count - 1; i++) {
        pthread_join(threads[i], NULL);
        outcome = outcome * 31 + seen[i];
    }
    for (int i = 0; i < WORDS; i++) {
        outcome = outcome * 31 + words[i];
    }
    return (int)(1 + outcome % 200);
}
