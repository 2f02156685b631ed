/* Loops that change something outside the program's memory: a key, a pipe, or the position in a file. The thread
 * comes to its assertion after a few rounds, unless the flag is set before. */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#ifndef ROUNDS
#define ROUNDS 3
#endif

static atomic_int flag;
static pthread_key_t key;
static int ends[2];
static FILE *file;

/* What it has seen is left nowhere. */
static __attribute__((noinline)) int step(void)
{
#if defined KEY
    long count = (long)pthread_getspecific(key);
    pthread_setspecific(key, (void *)(count + 1));
    long is_last = count == ROUNDS;
    count = 0;
    return is_last;
#elif defined PIPE
    char byte = 0;
    long got = read(ends[0], &byte, 1);
    int is_last = got == 0;
    byte = 0;
    got = 0;
    return is_last;
#else
    int byte = getc(file);
    int is_last = byte == EOF;
    byte = 0;
    return is_last;
#endif
}

static void *run(void *argument)
{
    while (!atomic_load(&flag)) {
        if (step()) {
            assert(!"the last round");
        }
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, NULL);
    if (pipe(ends)) {
        return 1;
    }
    file = tmpfile();
    for (int i = 0; i < ROUNDS; i++) {
        fputc('a', file);
        if (i < 100 && write(ends[1], "a", 1) != 1) {
            return 1;
        }
    }
    rewind(file);
    close(ends[1]);
    pthread_create(&thread, NULL, run, NULL);
#ifndef ALONE
    atomic_store(&flag, 1);
#endif
    pthread_join(thread, NULL);
    return 0;
}
