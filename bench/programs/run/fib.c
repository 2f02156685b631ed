/* Two threads add to each other's numbers, and the first thread looks at both. The numbers stay below those of
 * Fibonacci. OPS: how often each adds. */
#include "common.h"

static atomic_int numbers[2] = {1, 1};

static void *add(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        int sum = atomic_load_explicit(&numbers[me], memory_order_relaxed);
        sum += atomic_load_explicit(&numbers[1 - me], memory_order_relaxed);
        STORE(numbers[me], sum);
    }
    return NULL;
}

int main(void) {
    int largest = 1, before = 1;
    for (int i = 0; i < 2 * OPS; i++) {
        int next = largest + before;
        before = largest;
        largest = next;
    }
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, add, (void *)i)) {
            abort();
        }
    }
    assert(atomic_load_explicit(&numbers[0], memory_order_relaxed) <= largest);
    assert(atomic_load_explicit(&numbers[1], memory_order_relaxed) <= largest);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
