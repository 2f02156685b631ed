/* All the ways in which threads get memory: stacks, the heap, stream buffers, thread-local storage, mappings,
 * `pthread_exit`. Addresses must not depend on which thread asks first. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_int ready, seen;
static _Thread_local int local[64];
static _Atomic(int *) shared;

static void work(int number, int *result)
{
    char text[512];
    local[number] = number;
    printf("%d is here\n", number);
    int *own = malloc(300);
    memset(own, number, 300);
    int *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = number;
    memset(text, number, sizeof text);
    *result = page[0] + local[number] + text[17];
    int *other = atomic_exchange(&shared, own);
    free(other);
    munmap(page, 4096);
}

static void *first(void *argument)
{
    work(1, argument);
    atomic_store_explicit(&ready, 1, memory_order_release);
    pthread_exit(argument);
}

static void *second(void *argument)
{
    work(2, argument);
    while (!atomic_load_explicit(&ready, memory_order_acquire)) {
    }
    atomic_fetch_add(&seen, 1);
    return argument;
}

int main(void)
{
    int results[2];
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, &results[0]);
    pthread_create(&threads[1], NULL, second, &results[1]);
    void *one, *two;
    pthread_join(threads[0], &one);
    pthread_join(threads[1], &two);
    free(atomic_load(&shared));
    return *(int *)one == 3 && *(int *)two == 6 && seen == 1 ? 0 : 1;
}
