/* Errors in the use of memory, chosen by the first argument. Those in `right` are none. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct node {
    int value;
    struct node *next;
    pthread_mutex_t mutex;
};

static _Atomic(struct node *) shared;
static atomic_int done, stage;
static struct node global;
static int *local;

static struct node *make(void)
{
    struct node *node = malloc(sizeof *node);
    node->value = 1;
    node->next = NULL;
    pthread_mutex_init(&node->mutex, NULL);
    return node;
}

static void *reads(void *nothing)
{
    struct node *node = atomic_load(&shared);
    return node && node->value == 7 ? node : NULL;
}

static void *writes(void *nothing)
{
    struct node *node = atomic_load(&shared);
    if (node) {
        node->value = 2;
    }
    return NULL;
}

static void *frees(void *nothing)
{
    free(atomic_load(&shared));
    return NULL;
}

static void *takes_and_frees(void *nothing)
{
    free(atomic_exchange(&shared, NULL));
    return NULL;
}

static void *locks(void *nothing)
{
    struct node *node = atomic_load(&shared);
    pthread_mutex_lock(&node->mutex);
    node->value++;
    pthread_mutex_unlock(&node->mutex);
    return NULL;
}

static void *waits_and_frees(void *nothing)
{
    while (!atomic_load(&done)) {
    }
    free(atomic_load(&shared));
    return NULL;
}

static void *writes_and_says(void *nothing)
{
    struct node *node = atomic_load(&shared);
    atomic_store_explicit((_Atomic int *)&node->value, 3, memory_order_relaxed);
    atomic_store_explicit(&done, 1, memory_order_relaxed);
    return NULL;
}

static void *writes_and_releases(void *nothing)
{
    struct node *node = atomic_load(&shared);
    node->value = 3;
    atomic_store_explicit(&done, 1, memory_order_release);
    return NULL;
}

/* The store may still be pending when its own thread frees the block. */
static void *writes_and_frees(void *nothing)
{
    struct node *node = atomic_load(&shared);
    node->value = 3;
    free(node);
    return NULL;
}

static void *moves(void *nothing)
{
    struct node *node = atomic_load(&shared);
    atomic_store(&shared, realloc(node, 2 * sizeof *node));
    return NULL;
}

static void *frees_global(void *nothing)
{
    free(&global);
    return NULL;
}

static void *frees_inside(void *nothing)
{
    struct node *node = atomic_load(&shared);
    free(&node->next);
    return NULL;
}

static void *writes_after(void *nothing)
{
    char *bytes = malloc(13);
    memset(bytes, 0, 13);
    int at = 12 + (atomic_load(&stage) != 0);
    bytes[at] = 1;
    free(bytes);
    return NULL;
}

static void *writes_before(void *nothing)
{
    long *numbers = calloc(3, sizeof *numbers);
    int at = -(atomic_load(&stage) != 0);
    numbers[at] = 1;
    free(numbers);
    return NULL;
}

static void *sets_stage(void *nothing)
{
    atomic_store(&stage, 1);
    return NULL;
}

static __attribute__((noinline)) void publish(int wait)
{
    int number = 5;
    local = &number;
    atomic_store(&stage, 1);
    while (wait && !atomic_load(&done)) {
    }
}

static void *uses_local(void *nothing)
{
    if (atomic_load(&stage)) {
        *(volatile int *)local = 6;
    }
    atomic_store(&done, 1);
    return NULL;
}

static void *leaves(void *nothing)
{
    publish(0);
    atomic_store(&stage, 2);
    return NULL;
}

/* After the frame, another one is in the same place. */
static __attribute__((noinline)) int covers(int depth)
{
    volatile int numbers[8] = {depth};
    atomic_fetch_add(&stage, numbers[0]);
    return depth ? covers(depth - 1) : numbers[0];
}

static void *leaves_and_goes_on(void *nothing)
{
    publish(0);
    covers(3);
    return NULL;
}

/* The frame from which a thread was started. */
static pthread_t started;

static void *uses_argument(void *number)
{
    *(int *)number += 1;
    return NULL;
}

static __attribute__((noinline)) void starts(int joins)
{
    int number = 5;
    pthread_create(&started, NULL, uses_argument, &number);
    if (joins) {
        pthread_join(started, NULL);
    }
}

/* The frame is left twice, by a thread that others do not wait for, and the accesses are over. */
static void *stays_often(void *nothing)
{
    for (int i = 0; i < 2; i++) {
        publish(1);
    }
    return NULL;
}

static void *stays(void *nothing)
{
    publish(1);
    return NULL;
}

/* A variable that ends with its thread. */
static _Thread_local int own;

static void *publishes_own(void *wait)
{
    local = &own;
    atomic_store(&stage, 1);
    while (wait && !atomic_load(&done)) {
    }
    return NULL;
}

static void *publishes_and_waits(void *nothing)
{
    return publishes_own(&own);
}

/* The frame of the thread's own function. */
static void *ends(void *nothing)
{
    int number = 5;
    local = &number;
    atomic_store(&stage, 1);
    return NULL;
}

static void together(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t a, b;
    pthread_create(&a, NULL, first, NULL);
    pthread_create(&b, NULL, second, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    if (strcmp(how, "leaves") && strcmp(how, "stays")) {
        atomic_store(&shared, make());
    }
    if (!strcmp(how, "reads")) {
        together(reads, frees);
    } else if (!strcmp(how, "writes")) {
        together(writes, takes_and_frees);
    } else if (!strcmp(how, "moves")) {
        together(reads, moves);
        free(atomic_load(&shared));
    } else if (!strcmp(how, "double")) {
        together(frees, frees);
    } else if (!strcmp(how, "global")) {
        together(frees_global, reads);
    } else if (!strcmp(how, "inside")) {
        together(frees_inside, reads);
    } else if (!strcmp(how, "mutex")) {
        together(locks, frees);
    } else if (!strcmp(how, "after")) {
        together(writes_after, sets_stage);
    } else if (!strcmp(how, "before")) {
        together(writes_before, sets_stage);
    } else if (!strcmp(how, "leaves")) {
        together(leaves, uses_local);
    } else if (!strcmp(how, "goes-on")) {
        together(leaves_and_goes_on, uses_local);
    } else if (!strcmp(how, "starts")) {
        starts(0);
        pthread_join(started, NULL);
    } else if (!strcmp(how, "right-starts")) {
        starts(1);
    } else if (!strcmp(how, "right-stays-often")) {
        together(stays_often, uses_local);
    } else if (!strcmp(how, "thread-local")) {
        together(publishes_own, uses_local);
    } else if (!strcmp(how, "ended")) {
        together(ends, uses_local);
    } else if (!strcmp(how, "right-thread-local")) {
        together(publishes_and_waits, uses_local);
    } else if (!strcmp(how, "relaxed")) {
        together(writes_and_says, waits_and_frees);
    } else if (!strcmp(how, "alone")) {
        struct node *node = atomic_load(&shared);
        free(node);
        node->value = 1;
    } else if (!strcmp(how, "right-released")) {
        together(writes_and_releases, waits_and_frees);
    } else if (!strcmp(how, "right-frees")) {
        together(writes_and_frees, sets_stage);
    } else if (!strcmp(how, "right-taken")) {
        together(takes_and_frees, takes_and_frees);
    } else if (!strcmp(how, "right-mutex")) {
        together(locks, locks);
        free(atomic_load(&shared));
    } else if (!strcmp(how, "right-sizes")) {
        for (size_t size = 0; size < 200; size++) {
            for (size_t alignment = 8; alignment <= 256; alignment *= 2) {
                void *aligned = NULL;
                assert(!posix_memalign(&aligned, alignment, size) && (uintptr_t)aligned % alignment == 0);
                memset(aligned, 1, size);
                aligned = realloc(aligned, size + 40);
                assert(!size || ((char *)aligned)[size - 1] == 1);
                memset(aligned, 2, size + 40);
                free(aligned);
            }
        }
        /* More than any quarantine holds. */
        for (int i = 0; i < 75000; i++) {
            size_t size = i < 5000 ? 4000 : 16;
            char *bytes = malloc(size);
            bytes[size - 1] = 1;
            free(bytes);
        }
    } else if (!strcmp(how, "right-stays")) {
        together(stays, uses_local);
    }
    return 0;
}
