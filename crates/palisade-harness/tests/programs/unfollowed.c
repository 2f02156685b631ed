/* Programs that do what the scheduler cannot follow, in different ways. The first argument says how. */

#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static atomic_int turn, handled;
static sigjmp_buf before;
static struct sigaction old;

static void *works(void *argument)
{
    atomic_fetch_add(&turn, 1);
    return argument;
}

static void *waits(void *argument)
{
    while (!atomic_load(&handled)) {
    }
    return argument;
}

static void handle(int number)
{
    atomic_store(&handled, number);
}

static void jumps(int number)
{
    siglongjmp(before, number);
}

static void ends(int number)
{
    exit(number != SIGUSR1);
}

static void ends_thread(int number)
{
    pthread_exit((void *)(long)number);
}

static int cloned(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static void *raises(void *argument)
{
    raise(SIGUSR1);
    assert(atomic_load(&handled) == SIGUSR1);
    return argument;
}

static void *leaves(void *argument)
{
    syscall(SYS_exit, 0);
    return argument;
}

static void *computes(void *argument)
{
    for (;;) {
        __asm__ volatile("" ::: "memory");
    }
    return argument;
}

/* Notifications come from a thread that the C library starts. */
static void notice(union sigval value)
{
    atomic_fetch_add((atomic_int *)value.sival_ptr, 1);
}

/* A process that stays and leaves every group, session and family of the program. Its environment contains
 * the mark. */
static void leave_process(const char *mark)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            setenv(mark, "1", 1);
            execlp("sleep", "sleep", "1000", (char *)NULL);
        }
        _exit(0);
    }
    wait(NULL);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    pthread_t thread;
    void *(*start)(void *) = works;
    if (!strcmp(how, "raise")) {
        signal(SIGUSR1, handle);
        start = raises;
    } else if (!strcmp(how, "pthread-kill") || !strcmp(how, "tgkill")) {
        start = waits;
        signal(SIGUSR1, handle);
    } else if (!strcmp(how, "sys-exit")) {
        start = leaves;
    } else if (!strcmp(how, "computes")) {
        start = computes;
    }
    pthread_create(&thread, NULL, start, NULL);
    if (!strcmp(how, "pthread-kill")) {
        assert(pthread_kill(thread, 0) == 0);
        pthread_kill(thread, SIGUSR1);
    } else if (!strcmp(how, "tgkill")) {
        /* The id of the other thread is not known here, so the id of this one is used. */
        assert(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0);
        assert(atomic_load(&handled) == SIGUSR1);
    } else if (!strcmp(how, "longjmp")) {
        signal(SIGUSR1, jumps);
        if (!sigsetjmp(before, 1)) {
            raise(SIGUSR1);
        }
    } else if (!strcmp(how, "jump")) {
        /* Outside a handler, a jump can be followed. */
        if (!sigsetjmp(before, 1)) {
            siglongjmp(before, 1);
        }
    } else if (!strcmp(how, "exit-in-handler")) {
        signal(SIGUSR1, ends);
        raise(SIGUSR1);
    } else if (!strcmp(how, "thread-ends-in-handler")) {
        signal(SIGUSR1, ends_thread);
        raise(SIGUSR1);
    } else if (!strcmp(how, "handlers-are-given-back")) {
        struct sigaction first = {.sa_handler = handle}, second = {.sa_handler = ends};
        sigaction(SIGUSR1, &first, NULL);
        sigaction(SIGUSR1, &second, &old);
        assert(old.sa_handler == handle);
        sigaction(SIGUSR1, &old, NULL);
        kill(getpid(), SIGUSR1);
        assert(atomic_load(&handled) == SIGUSR1);
    } else if (!strcmp(how, "stop")) {
        raise(SIGSTOP);
    } else if (!strcmp(how, "system")) {
        assert(system("exit 3") == 3 << 8);
    } else if (!strcmp(how, "popen")) {
        FILE *pipe = popen("echo hello", "r");
        assert(fgetc(pipe) == 'h');
        pclose(pipe);
    } else if (!strcmp(how, "spawn")) {
        char *list[] = {"true", NULL};
        pid_t pid;
        assert(posix_spawnp(&pid, "true", NULL, NULL, list, environ) == 0);
        waitpid(pid, NULL, 0);
    } else if (!strcmp(how, "clone")) {
        static char stack[1 << 16];
        clone(cloned, stack + sizeof stack, CLONE_VM | SIGCHLD, &turn);
    } else if (!strcmp(how, "raw-fork")) {
        if (syscall(SYS_fork) == 0) {
            _exit(0);
        }
    } else if (!strcmp(how, "exec")) {
        execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
    } else if (!strcmp(how, "exec-fails")) {
        assert(execl("/nothing/here", "here", (char *)NULL) == -1);
    } else if (!strcmp(how, "threads-in-fork")) {
        pid_t child = fork();
        if (child == 0) {
            pthread_create(&thread, NULL, works, NULL);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        assert(status == 0);
    } else if (!strcmp(how, "timer")) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notice, .sigev_value.sival_ptr = &turn};
        timer_t timer;
        timer_create(CLOCK_MONOTONIC, &event, &timer);
    } else if (!strcmp(how, "assembly")) {
        int one = 1;
        __asm__ volatile("movl %1, %0" : "=m"(*(int *)&turn) : "r"(one));
    } else if (!strcmp(how, "leaves-process") || !strcmp(how, "leaves-process-and-hangs")) {
        leave_process(arguments[2]);
    }
    if (!strcmp(how, "leaves-process-and-hangs")) {
        /* The mark shows that the process exists. */
        FILE *file = fopen(arguments[3], "w");
        fclose(file);
        start = computes;
        pthread_create(&thread, NULL, computes, NULL);
    }
    pthread_join(thread, NULL);
    return 0;
}
