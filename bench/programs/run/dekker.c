/* Dekker's mutual exclusion for two threads (Dijkstra, "Cooperating sequential processes", 1965). */
#undef THREADS
#define THREADS 2
#include "common.h"

static atomic_int wants[2];
static atomic_int turn;
static atomic_int inside;

static void enter(int me) {
    int other = 1 - me;
    STORE(wants[me], 1);
    FENCE();
    while (LOAD(wants[other])) {
        if (LOAD(turn) != me) {
            STORE(wants[me], 0);
            FENCE();
            while (LOAD(turn) != me) {
            }
            STORE(wants[me], 1);
            FENCE();
        }
    }
}

static void leave(int me) {
    RELEASE(turn, 1 - me);
    RELEASE(wants[me], 0);
    FENCE();
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        enter(me);
        STORE(inside, me + 1);
        assert(LOAD(inside) == me + 1);
        leave(me);
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    return 0;
}
