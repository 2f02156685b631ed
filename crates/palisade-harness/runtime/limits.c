/* What cannot be followed is noticed here, and told: processes that the program forks, and handlers of signals. What they do to memory is not part of the log. */

#include "palisade.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void pal_at_exit(int code, void *nothing);

void *pal_next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found && !strcmp(name, "_Unwind_ForcedUnwind")) {
        void *library = dlopen("libgcc_s.so.1", RTLD_NOW);
        found = library ? dlsym(library, name) : NULL;
    }
    return found;
}

void pal_begin_limits(void)
{
    /* Registered first, so it is called last. */
    on_exit(pal_at_exit, NULL);
}

/* The new process has only the calling thread, and is not followed. */
static void in_fork(void)
{
    pal.quiet = 1;
    pal.is_served = 0;
    pal.ready_count = 0;
}

EXPORT pid_t fork(void)
{
    static pid_t (*next)(void);
    if (!next) {
        next = pal_next("fork");
    }
    if (!pal.quiet) {
        pal_note(N_FORK, CALLER);
    }
    pid_t pid = next();
    if (pid == 0 && !pal.quiet) {
        in_fork();
    }
    return pid;
}

EXPORT pid_t vfork(void)
{
    return fork();
}

EXPORT void _exit(int code)
{
    pal_at_exit(code, NULL);
    pal_syscall(SYS_exit_group, code, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

EXPORT void _Exit(int code)
{
    _exit(code);
}

/* Handlers of signals run at any moment, also within the runtime: nothing of them is logged, and no other thread can go on before they are done. */

static void (*handlers[NSIG])(int, siginfo_t *, void *);

static void handle(int signal, siginfo_t *info, void *context)
{
    int quiet = pal.quiet;
    pal.quiet = 1;
    handlers[signal](signal, info, context);
    pal.quiet = quiet;
}

static int set_action(int signal, const struct sigaction *action, struct sigaction *old, uint64_t place)
{
    static int (*next)(int, const struct sigaction *, struct sigaction *);
    if (!next) {
        next = pal_next("sigaction");
    }
    if (!action || signal <= 0 || signal >= NSIG || pal.quiet || action->sa_handler == SIG_DFL ||
        action->sa_handler == SIG_IGN) {
        return next(signal, action, old);
    }
    pal_note(N_HANDLER, place);
    struct sigaction ours = *action;
    /* A handler with one argument is called with three all the same: on this machine that does no harm. */
    handlers[signal] = action->sa_sigaction;
    ours.sa_sigaction = handle;
    ours.sa_flags |= SA_SIGINFO;
    return next(signal, &ours, old);
}

EXPORT int sigaction(int signal, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    return set_action(signal, action, old, CALLER);
}

static void (*set_handler(int number, void (*handler)(int), uint64_t place))(int)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    return set_action(number, &action, &old, place) ? SIG_ERR : old.sa_handler;
}

EXPORT void (*signal(int number, void (*handler)(int)))(int)
{
    return set_handler(number, handler, CALLER);
}

EXPORT void (*bsd_signal(int number, void (*handler)(int)))(int)
{
    return set_handler(number, handler, CALLER);
}

/* Failed assertions and aborts: where they are is known here only. */

EXPORT void abort(void)
{
    static void (*next)(void);
    if (!next) {
        next = pal_next("abort");
    }
    if (!pal.shared->crash_place) {
        pal.shared->crash_place = CALLER - 1;
        pal.shared->crash_thread = pal.self->number;
    }
    pal.shared->steps = pal.steps;
    pal.quiet = 1;
    next();
    __builtin_unreachable();
}

EXPORT void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    char text[1024];
    int length = snprintf(text, sizeof text, "%s:%u: assertion `%s` failed in %s", file, line, assertion, function ? function : "?");
    pal_text(T_MESSAGE, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
    pal.shared->crash_place = CALLER - 1;
    pal.shared->crash_thread = pal.self->number;
    write(2, text, strlen(text));
    write(2, "\n", 1);
    abort();
}
