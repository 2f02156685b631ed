/* A ring buffer for one producer and one consumer (Lamport, "Specifying concurrent program modules", TOPLAS
 * 5(2), 1983). */
#undef THREADS
#define THREADS 2
#include "common.h"

#define SIZE 2
static atomic_int ring[SIZE];
static atomic_uint written, taken;

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (unsigned i = 0; i < OPS; i++) {
        if (me == 0) {
            while (i - LOAD(taken) == SIZE) {
            }
            STORE(ring[i % SIZE], (int)i + 1);
            RELEASE(written, i + 1);
            FENCE();
        } else {
            while (LOAD(written) == i) {
            }
            assert(LOAD(ring[i % SIZE]) == (int)i + 1);
            RELEASE(taken, i + 1);
            FENCE();
        }
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    return 0;
}
