/* Programs that fail in different ways. The first argument says how. */

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static atomic_int never, sometimes;
static int handled;

static void *a_then_b(void *argument)
{
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return argument;
}

static void *b_then_a(void *argument)
{
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return argument;
}

static void *crashes(void *argument)
{
    atomic_store(&sometimes, 1);
    *(volatile int *)argument = 1;
    return argument;
}

static void *asserts(void *argument)
{
    assert(atomic_load(&sometimes) == 1);
    return argument;
}

static void *ends_all(void *argument)
{
    exit(0);
    return argument;
}

static void *waits_for_ever(void *argument)
{
    while (!atomic_load(&never)) {
    }
    return argument;
}

/* The flag goes up and down, and the thread that waits for it to stay up never sees it. */
static void *toggles(void *argument)
{
    for (;;) {
        atomic_store(&sometimes, 1);
        atomic_store(&sometimes, 0);
    }
    return argument;
}

/* It is never in the same state twice. */
static void *counts(void *argument)
{
    for (;;) {
        atomic_fetch_add(&sometimes, 1);
    }
    return argument;
}

/* Without any access to memory. */
static void *runs_silently(void *argument)
{
    for (;;) {
        __asm__ volatile("" ::: "memory");
    }
    return argument;
}

static void *reads_nothing(void *argument)
{
    int ends[2];
    char byte;
    pipe(ends);
    read(ends[0], &byte, 1);
    return argument;
}

static void handle(int number)
{
    handled = number;
}

/* The waiting thread checks the flag and then goes to sleep. In between, the flag is raised and the signal is
 * lost. */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *waits_for_signal(void *argument)
{
    pthread_mutex_lock(&a);
    if (!atomic_load(&sometimes)) {
        pthread_cond_wait(&cond, &a);
    }
    pthread_mutex_unlock(&a);
    return argument;
}

static void *signals(void *argument)
{
    atomic_store(&sometimes, 1);
    pthread_cond_signal(&cond);
    return argument;
}

static void *idles(void *argument)
{
    return argument;
}

static void two(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    if (!strcmp(how, "deadlock")) {
        two(a_then_b, b_then_a);
    } else if (!strcmp(how, "lost-signal")) {
        two(waits_for_signal, signals);
    } else if (!strcmp(how, "crash")) {
        two(crashes, idles);
    } else if (!strcmp(how, "assertion")) {
        sometimes = 1;
        pthread_t thread;
        pthread_create(&thread, NULL, asserts, NULL);
        sometimes = 2;
        sometimes = 1;
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "exit-code")) {
        two(idles, idles);
        return 7;
    } else if (!strcmp(how, "early-exit")) {
        two(ends_all, waits_for_ever);
    } else if (!strcmp(how, "leaked-threads")) {
        pthread_t thread;
        pthread_create(&thread, NULL, waits_for_ever, NULL);
    } else if (!strcmp(how, "never-joined")) {
        pthread_t thread;
        pthread_create(&thread, NULL, idles, NULL);
        usleep(1000);
    } else if (!strcmp(how, "never-ends")) {
        two(waits_for_ever, idles);
    } else if (!strcmp(how, "livelock")) {
        two(waits_for_ever, toggles);
    } else if (!strcmp(how, "step-limit")) {
        two(counts, idles);
    } else if (!strcmp(how, "stalled")) {
        two(runs_silently, idles);
    } else if (!strcmp(how, "blocked")) {
        two(reads_nothing, idles);
    } else if (!strcmp(how, "unsupported")) {
        pthread_t thread;
        pthread_create(&thread, NULL, waits_for_ever, NULL);
        pthread_cancel(thread);
    } else if (!strcmp(how, "fork")) {
        two(idles, idles);
        pid_t child = fork();
        if (child == 0) {
            pthread_mutex_lock(&a);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        assert(status == 0);
    } else if (!strcmp(how, "signal")) {
        signal(SIGUSR1, handle);
        two(idles, idles);
        raise(SIGUSR1);
        assert(handled == SIGUSR1);
    } else if (!strcmp(how, "output")) {
        two(idles, idles);
        for (int i = 0; i < 200000; i++) {
            printf("line %d of very many\n", i);
        }
    } else if (!strcmp(how, "main-leaves")) {
        pthread_t thread;
        pthread_create(&thread, NULL, idles, NULL);
        pthread_detach(thread);
        pthread_exit(NULL);
    }
    return 0;
}
