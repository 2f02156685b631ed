/* Double-checked locking: the first thread that needs a value creates it (Schmidt and Harrison, 1996). */
#include "common.h"

struct thing {
    atomic_int a, b;
};

static struct thing things[THREADS];
static _Atomic(struct thing *) instance;
static spinlock lock;

static struct thing *get(int me) {
    struct thing *found = LOAD(instance);
    if (found == NULL) {
        acquire(&lock);
        found = LOAD(instance);
        if (found == NULL) {
            found = &things[me];
            STORE(found->a, 1);
            STORE(found->b, 2);
            RELEASE(instance, found);
        }
        release(&lock);
    }
    return found;
}

static void *body(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPS; i++) {
        struct thing *thing = get(me);
        assert(LOAD(thing->a) == 1 && LOAD(thing->b) == 2);
    }
    return NULL;
}

int main(void) {
    run_threads(body);
    return 0;
}
