/* Lamport's bakery: "A new solution of Dijkstra's concurrent programming problem", CACM 17(8), 1974. */
#include "common.h"

static atomic_int choosing[THREADS];
static atomic_int number[THREADS];
static atomic_int inside;

static void enter(int me) {
    STORE(choosing[me], 1);
    FENCE();
    int most = 0;
    for (int i = 0; i < THREADS; i++) {
        int other = LOAD(number[i]);
        most = other > most ? other : most;
    }
    RELEASE(number[me], most + 1);
    RELEASE(choosing[me], 0);
    FENCE();
    for (int i = 0; i < THREADS; i++) {
        if (i == me) {
            continue;
        }
        while (LOAD(choosing[i])) {
        }
        for (;;) {
            int other = LOAD(number[i]);
            if (other == 0 || other > most + 1 || (other == most + 1 && i > me)) {
                break;
            }
        }
    }
}

static void leave(int me) {
    RELEASE(number[me], 0);
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
