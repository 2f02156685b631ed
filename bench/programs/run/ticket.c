/* A ticket lock (Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
 * multiprocessors", TOCS 9(1), 1991, section 2.2). */
#include "common.h"

static atomic_uint next_ticket, now_serving;
static atomic_int counter;

static void *body(void *argument) {
    (void)argument;
    for (int i = 0; i < OPS; i++) {
        unsigned ticket = ADD(next_ticket, 1);
        while (LOAD(now_serving) != ticket) {
        }
        STORE(counter, LOAD(counter) + 1);
        RELEASE(now_serving, ticket + 1);
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    assert(LOAD(counter) == THREADS * OPS);
    return 0;
}
