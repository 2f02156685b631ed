/* The work-stealing deque of Chase and Lev, SPAA 2005, with an array that does not grow. Thread 0 is the
 * owner, the others steal. The owner's store to `bottom` must reach memory before it loads `top`. This needs
 * a fence even under TSO. */
#include "common.h"

#define SIZE 8
static atomic_int tasks[SIZE];
static atomic_long top, bottom;
static atomic_int done[1 + OPS];

static void push(int task) {
    long b = LOAD(bottom);
    STORE(tasks[b % SIZE], task);
    RELEASE(bottom, b + 1);
}

/* The youngest task, or 0. */
static int take(void) {
    long b = LOAD(bottom) - 1;
    STORE(bottom, b);
    FENCE();
    long t = LOAD(top);
    if (b < t) {
        RELEASE(bottom, t);
        return 0;
    }
    int task = LOAD(tasks[b % SIZE]);
    if (b > t) {
        return task;
    }
    if (!CAS(top, t, t + 1)) {
        task = 0;
    }
    RELEASE(bottom, b + 1);
    return task;
}

/* The oldest task, or 0. */
static int steal(void) {
    long t = LOAD(top);
    FENCE();
    long b = LOAD(bottom);
    if (t >= b) {
        return 0;
    }
    int task = LOAD(tasks[t % SIZE]);
    return CAS(top, t, t + 1) ? task : 0;
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        int task = 0;
        if (me != 0) {
            task = steal();
        } else if (i % 2 == 0) {
            push(i + 1);
        } else {
            task = take();
        }
        assert(task == 0 || ADD(done[task], 1) == 0);
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    return 0;
}
