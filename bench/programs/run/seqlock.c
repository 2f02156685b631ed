/* A sequence lock: a writer, and readers that read again if the sequence number has changed (Boehm, "Can
 * seqlocks get along with programming language memory models?", MSPC 2012). */
#include "common.h"

static atomic_uint sequence;
static atomic_int data[2];

static void write_both(int value) {
    unsigned before = LOAD(sequence);
    STORE(sequence, before + 1);
#ifdef FENCED
    atomic_thread_fence(memory_order_release);
#endif
    STORE(data[0], value);
    RELEASE(data[1], value);
    RELEASE(sequence, before + 2);
}

static void read_both(void) {
    int a, b;
    unsigned before, after;
    do {
        before = LOAD(sequence);
        a = LOAD(data[0]);
        b = LOAD(data[1]);
        after = LOAD(sequence);
    } while (before % 2 || before != after);
    assert(a == b);
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        if (me == 0) {
            write_both(i + 1);
        } else {
            read_both();
        }
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    return 0;
}
