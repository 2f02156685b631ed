// A message whose text follows its header in the same allocation is handed over by a pointer.
// Source: ISO C11, 6.7.2.1 (flexible array members); message passing.
// BROKEN_1: the pointer is stored before the text is there.
// BROKEN_2: the reader trusts a length that is too large by one.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LENGTH 2

struct message {
    int length;
    long text[];
};

static _Atomic(struct message *) box;

static void *writer(void *argument)
{
    (void)argument;
    struct message *message = malloc(sizeof(struct message) + LENGTH * sizeof(long));
#ifdef BROKEN_1
    atomic_store_explicit(&box, message, memory_order_release);
#endif
#ifdef BROKEN_2
    message->length = LENGTH + 1;
#else
    message->length = LENGTH;
#endif
    for (long i = 0; i < LENGTH; i++) {
        message->text[i] = i + 7;
    }
#ifndef BROKEN_1
    atomic_store_explicit(&box, message, memory_order_release);
#endif
    return 0;
}

static void *reader(void *argument)
{
    (void)argument;
    struct message *message = atomic_load_explicit(&box, memory_order_acquire);
    if (message) {
        for (int i = 0; i < message->length; i++) {
            assert(message->text[i] == i + 7);
        }
    }
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, writer, 0);
    pthread_create(&threads[1], 0, reader, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
