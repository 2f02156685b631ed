/* Reads of memory that was never written, and programs that only look as if they did. */

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct pair {
    int first, second;
};

struct node {
    long key;
    struct pair pair;
    char name[3];
    atomic_bool ready;
    atomic_int count;
    struct node *next;
};

struct bits {
    unsigned a : 3, b : 13, c : 16;
    unsigned long d : 40;
};

static _Atomic(struct node *) shared;
static _Atomic(int *) number;
static atomic_bool done;
static int sink;

static struct node *wait_for_node(void)
{
    struct node *node;
    while (!(node = atomic_load(&shared))) {
    }
    return node;
}

static int *wait_for_number(void)
{
    int *found;
    while (!(found = atomic_load_explicit(&number, memory_order_acquire))) {
    }
    return found;
}

/* What the other thread does with the node. */
static void *reads_first(void *nothing) { sink = wait_for_node()->pair.first; return nothing; }
static void *reads_next(void *nothing) { sink = wait_for_node()->next != NULL; return nothing; }
static void *reads_count(void *nothing) { sink = atomic_load(&wait_for_node()->count); return nothing; }
static void *adds_to_count(void *nothing) { sink = atomic_fetch_add(&wait_for_node()->count, 1); return nothing; }
static void *swaps_count(void *nothing)
{
    int expected = 0;
    sink = atomic_compare_exchange_strong(&wait_for_node()->count, &expected, 1);
    return nothing;
}
static void *reads_ready(void *nothing) { sink = atomic_load_explicit(&wait_for_node()->ready, memory_order_relaxed); return nothing; }
static void *reads_number(void *nothing)
{
    sink = *wait_for_number();
    atomic_store(&done, 1);
    return nothing;
}
static void *copies_node(void *nothing)
{
    struct node copy = *wait_for_node(), *again = malloc(sizeof *again);
    memcpy(again, &copy, sizeof copy);
    *again = copy;
    assert(again->key == 7);
    for (size_t i = 0; i < sizeof copy; i++) {
        ((char *)&copy)[i] = ((char *)again)[i];
    }
    sink = (int)copy.key;
    free(again);
    return nothing;
}

static void with(void *(*other)(void *), void (*publish)(void))
{
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    publish();
    pthread_join(thread, NULL);
}

static void publish_unwritten(void)
{
    atomic_store(&shared, malloc(sizeof(struct node)));
}

static void publish_key(void)
{
    struct node *node = malloc(sizeof *node);
    node->key = 7;
    atomic_store(&shared, node);
}

static void publish_all(void)
{
    struct node *node = malloc(sizeof *node);
    node->key = 7;
    node->pair = (struct pair){1, 2};
    strcpy(node->name, "ab");
    atomic_init(&node->ready, 0);
    atomic_init(&node->count, 0);
    node->next = NULL;
    atomic_store_explicit(&shared, node, memory_order_release);
}

static void publish_zeros(void)
{
    atomic_store(&shared, calloc(1, sizeof(struct node)));
}

static void publish_set(void)
{
    struct node *node = aligned_alloc(64, 64);
    memset(node, 0, sizeof *node);
    atomic_store(&shared, realloc(node, 2 * sizeof *node));
}

static void publish_tail(void)
{
    struct node *node = calloc(1, sizeof *node);
    node = realloc(node, 2 * sizeof *node);
    atomic_store(&shared, node + 1);
}

/* The store of the number and that of its address may reach memory in another order only under PSO. */
static void publish_late(void)
{
    int *made = malloc(sizeof *made);
    *made = 5;
    sink = *made; /* It sees its own store. */
    atomic_store_explicit(&number, made, memory_order_relaxed);
}

static void publish_local(void)
{
    int local;
    atomic_store(&number, &local);
    while (!atomic_load(&done)) {
    }
}

static void publish_local_late(void)
{
    int local;
    local = 3;
    atomic_store_explicit(&number, &local, memory_order_relaxed);
    while (!atomic_load(&done)) {
    }
}

static void publish_set_local(void)
{
    int local = 3;
    atomic_store(&number, &local);
    while (!atomic_load(&done)) {
    }
}

/* By the thread itself. */

static __attribute__((noinline)) void use(int *at) { atomic_store(&number, at); }

static void own_local(void)
{
    int local;
    use(&local);
    if (local > 3) {
        sink = 1;
    }
}

static void own_member(void)
{
    struct pair pair, copy;
    pair.first = 1;
    use(&pair.first);
    copy = pair;
    use(&copy.first);
    sink = copy.second;
}

static __attribute__((noinline)) int sum(int count, ...)
{
    va_list list;
    int result = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) {
        result += va_arg(list, int) + (int)va_arg(list, double);
    }
    va_end(list);
    return result;
}

static __attribute__((noinline)) struct pair twice(struct pair pair)
{
    use(&pair.first);
    pair.first *= 2;
    return pair;
}

static void right_alone(void)
{
    /* Only some bits are written, and only those are read. */
    struct bits *bits = malloc(sizeof *bits), local;
    use((int *)(void *)&local);
    local.b = 5;
    local.d = 9;
    bits->c = 7;
    bits->a = 1;
    assert(bits->c == 7 && bits->a == 1 && local.b == 5 && local.d == 9);
    free(bits);
    /* Only one member is written, and the struct is passed on. */
    struct pair pair;
    use(&pair.first);
    pair.first = 3;
    pair = twice(pair);
    assert(pair.first == 6);
    assert(sum(3, 1, 1.5, 2, 2.5, 3, 3.5) == 12);
    /* Written by code that is not followed. */
    time_t now = 0;
    struct tm time;
    use(&time.tm_sec);
    gmtime_r(&now, &time);
    assert(time.tm_year == 70);
    struct stat file;
    use((int *)(void *)&file.st_mode);
    assert(!stat("/", &file) && S_ISDIR(file.st_mode));
    int a, b;
    use(&a);
    use(&b);
    assert(sscanf("17 18", "%d %d", &a, &b) == 2 && a == 17 && b == 18);
    char *line = NULL;
    assert(asprintf(&line, "%d", 12345678) == 8 && !memcmp(line, "12345678", 8));
    free(line);
    int *sorted = malloc(8 * sizeof *sorted);
    for (int i = 0; i < 8; i++) {
        sorted[i] = 8 - i;
    }
    assert(sorted[7] == 1);
    free(sorted);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    static const struct {
        const char *name;
        void *(*other)(void *);
        void (*publish)(void);
    } all[] = {
        {"heap", reads_first, publish_unwritten},
        {"member", reads_first, publish_key},
        {"pointer", reads_next, publish_key},
        {"atomic", reads_count, publish_key},
        {"add", adds_to_count, publish_unwritten},
        {"swap", swaps_count, publish_unwritten},
        {"flag", reads_ready, publish_key},
        {"tail", reads_first, publish_tail},
        {"stack", reads_number, publish_local},
        {"late", reads_number, publish_late},
        {"late-local", reads_number, publish_local_late},
        {"right-heap", reads_first, publish_all},
        {"right-pointer", reads_next, publish_all},
        {"right-atomic", reads_count, publish_all},
        {"right-swap", swaps_count, publish_all},
        {"right-flag", reads_ready, publish_all},
        {"right-zeros", reads_first, publish_zeros},
        {"right-set", adds_to_count, publish_set},
        {"right-stack", reads_number, publish_set_local},
        {"right-copies", copies_node, publish_key},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!strcmp(how, all[i].name)) {
            with(all[i].other, all[i].publish);
            return 0;
        }
    }
    if (!strcmp(how, "own")) {
        own_local();
    } else if (!strcmp(how, "own-member")) {
        own_member();
    } else if (!strcmp(how, "right-alone")) {
        right_alone();
    } else {
        return 2;
    }
    return 0;
}
