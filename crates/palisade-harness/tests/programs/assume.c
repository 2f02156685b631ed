/* Assumptions and values that are not determined, chosen by the first argument. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

extern void __VERIFIER_assume(int);
extern void __VERIFIER_assert(int);
extern int __VERIFIER_nondet_int(void);
extern _Bool __VERIFIER_nondet_bool(void);

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
