/* Two threads that allocate, free and use blocks through shared pointers, as the arguments say: a letter and the index
 * of a pointer for each action. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(char *) pointers[2];

static void act(char action, _Atomic(char *) *pointer)
{
    char *block;
    switch (action) {
    case 'm':
        atomic_store(pointer, malloc(8));
        break;
    case 'n':
        atomic_store(pointer, NULL);
        break;
    case 'x':
        free(atomic_exchange(pointer, NULL));
        break;
    case 'f':
        free(atomic_load(pointer));
        break;
    case 'r':
        block = atomic_load(pointer);
        if (block) {
            (void)*(volatile char *)block;
        }
        break;
    case 'w':
        block = atomic_load(pointer);
        if (block) {
            *(volatile char *)block = 1;
        }
        break;
    }
}

static void *run(void *actions)
{
    for (const char *action = actions; *action; action += 2) {
        act(action[0], &pointers[action[1] - '0']);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[2];
    pointers[0] = malloc(8);
    pointers[1] = malloc(8);
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, run, arguments[1 + i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return count != 3;
}
