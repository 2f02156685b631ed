/* Loops in which a thread waits, chosen by the first argument. All of these programs end. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int lock, ready, stop;
static int counter;

/* Test and set: each attempt writes. */
static void *test_and_set(void *nothing)
{
    while (atomic_exchange(&lock, 1)) {
    }
    counter++;
    atomic_store_explicit(&lock, 0, memory_order_release);
    return NULL;
}

static void *compare_and_swap(void *nothing)
{
    int expected = 0;
    while (!atomic_compare_exchange_weak(&lock, &expected, 1)) {
        expected = 0;
    }
    counter++;
    atomic_store_explicit(&lock, 0, memory_order_release);
    return NULL;
}

static void *exits(void *nothing)
{
    for (;;) {
        if (atomic_load(&stop)) {
            pthread_exit(NULL);
        }
    }
}

static void *stops(void *nothing)
{
    atomic_store(&stop, 1);
    return NULL;
}

/* The flag for which the first thread waits is on its own stack. */
static void *sets(void *flag)
{
    atomic_store((atomic_int *)flag, 1);
    return NULL;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    pthread_t a, b;
    if (!strcmp(how, "flag")) {
        atomic_int flag = 0;
        pthread_create(&a, NULL, sets, &flag);
        while (!atomic_load(&flag)) {
        }
        pthread_join(a, NULL);
        return 0;
    }
    void *(*first)(void *) = test_and_set, *(*second)(void *) = test_and_set;
    if (!strcmp(how, "cas")) {
        first = second = compare_and_swap;
    } else if (!strcmp(how, "exit")) {
        first = exits;
        second = stops;
    }
    pthread_create(&a, NULL, first, NULL);
    pthread_create(&b, NULL, second, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
