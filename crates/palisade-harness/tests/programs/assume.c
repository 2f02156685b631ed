/* Assumptions and values that are not determined, chosen by the first argument. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

extern void __VERIFIER_assume(int);
extern void __VERIFIER_assert(int);
extern int __VERIFIER_nondet_int(void);
extern _Bool __VERIFIER_nondet_bool(void);
extern char __VERIFIER_nondet_char(void);
extern long __VERIFIER_nondet_range(long low, long high);

static atomic_int x, y;

/* The assumption holds only if the other thread comes first. */
static void *assumes(void *nothing)
{
    __VERIFIER_assume(atomic_load(&x) == 1);
    atomic_store(&y, 1);
    return NULL;
}

static void *sets(void *nothing)
{
    atomic_store(&x, 1);
    return NULL;
}

/* Each thread stores a value to the same cell. */
static void *stores_bool(void *nothing)
{
    atomic_store_explicit(&x, 1 + __VERIFIER_nondet_bool(), memory_order_relaxed);
    return NULL;
}

static void *stores_range(void *nothing)
{
    atomic_store_explicit(&x, (int)__VERIFIER_nondet_range(1, 3), memory_order_relaxed);
    return NULL;
}

/* What a thread does depends on a value. */
static void *may_store(void *nothing)
{
    if (__VERIFIER_nondet_bool()) {
        atomic_store_explicit(&x, 1, memory_order_relaxed);
    }
    return NULL;
}

static void *reads(void *nothing)
{
    int value = (int)__VERIFIER_nondet_range(1, 2);
    atomic_store_explicit(&y, value, memory_order_relaxed);
    *(int *)nothing = atomic_load_explicit(&x, memory_order_relaxed);
    return NULL;
}

static void both(void *(*one)(void *), void *(*two)(void *), void *argument)
{
    pthread_t a, b;
    pthread_create(&a, NULL, one, argument);
    pthread_create(&b, NULL, two, argument);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

static int seen;

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    if (!strcmp(how, "never")) {
        __VERIFIER_assume(0);
        __VERIFIER_assert(0);
    } else if (!strcmp(how, "value")) {
        int value = __VERIFIER_nondet_int();
        __VERIFIER_assume(value >= 0 && value < 4);
        __VERIFIER_assert(value != 3 || __VERIFIER_nondet_bool());
    } else if (!strcmp(how, "wide")) {
        /* Each exit code needs a value that is unlikely by chance. */
        int value = __VERIFIER_nondet_int();
        return value == 77123 ? 1 : value < -2147483647 ? 2 : value == 2147483647 ? 3 : value == -1 ? 4 : 0;
    } else if (!strcmp(how, "range")) {
        return 1 + (int)__VERIFIER_nondet_range(-1, 3) + 1 + 5 * __VERIFIER_nondet_bool();
    } else if (!strcmp(how, "byte")) {
        return 1 + (__VERIFIER_nondet_char() == -77);
    } else if (!strcmp(how, "threads")) {
        both(stores_bool, stores_range, NULL);
        return x;
    } else if (!strcmp(how, "branches")) {
        both(may_store, reads, &seen);
        return 1 + seen + 4 * y;
    } else {
        pthread_t a, b;
        pthread_create(&a, NULL, assumes, NULL);
        pthread_create(&b, NULL, sets, NULL);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        __VERIFIER_assert(atomic_load(&y) == !!strcmp(how, "wrong"));
    }
    return 0;
}
