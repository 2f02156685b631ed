/* Detects and reports what cannot be followed: processes that the program starts, signal handlers, and
 * threads that are started or ended without the C library. What they do to memory is not in the log.
 *
 * If the program can continue, a note is logged. If its threads would no longer be under control, the
 * execution ends (R_UNSUPPORTED). */

#include "palisade.h"
#include <dlfcn.h>
#include <errno.h>
#include <mqueue.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void pal_at_exit(int code, void *nothing);

void *pal_next(const char *name)
{
    /* The program's own calls of dlsym may be reported, not ours. */
    pal_looks_up++;
    void *found = dlsym(RTLD_NEXT, name);
    if (!found && pal_is_text(name, "_Unwind_ForcedUnwind")) {
        void *library = dlopen("libgcc_s.so.1", RTLD_NOW);
        found = library ? dlsym(library, name) : NULL;
    }
    pal_looks_up--;
    return found;
}

/* Ends that are followed. What `exit` calls comes in this order: handlers (`atexit`), ours last of those that
 * were registered since the start; handlers of earlier constructors; destructors of the program, ours last;
 * destructors of libraries. Only the latter are not followed. */
static int exit_code;

static void keep_code(int code, void *nothing)
{
    (void)nothing;
    exit_code = code;
}

void pal_begin_limits(void)
{
    on_exit(keep_code, NULL);
}

__attribute__((destructor(101))) static void at_end(void)
{
    int is_followed = !pal.quiet;
    pal_at_exit(exit_code, NULL);
    if (is_followed && pal.is_served && pal_is_c_only && pal_is_alone()) {
        /* What is left to do is to write what the program printed: the C library has no destructors that
         * matter. Another thread could hold a stream, and then only `exit` itself knows what to do. */
        fflush(NULL);
        pal_exit_process(exit_code);
    }
}

/* New processes. */

static struct shared *followed;

/* The new process has only the calling thread, and is not followed. It must not write to the memory in which
 * the execution reports its state. */
static void in_fork(void)
{
    static struct shared own;
    pal.quiet = 1;
    pal.is_served = 0;
    pal.is_forked = 1;
    pal.ready_count = 0;
    followed = pal.shared;
    own = *pal.shared;
    pal.shared = &own;
}

/* In a forked process, no scheduler runs threads. */
void pal_refuse_thread(void)
{
    if (pal.is_forked) {
        followed->forked_threads = 1;
        pal_syscall(SYS_exit_group, 3, 0, 0, 0, 0, 0);
    }
}

static void note_process(uint64_t place)
{
    if (!pal.quiet) {
        pal_note(N_FORK, place);
    }
}

static pid_t forked(pid_t (*next)(void), uint64_t place)
{
    int quiet = pal.quiet;
    note_process(place);
    pid_t pid = next();
    if (pid == 0 && (!quiet || pal.in_handler)) {
        in_fork();
    }
    return pid;
}

EXPORT pid_t fork(void)
{
    return forked(NEXT(fork), CALLER);
}

EXPORT pid_t vfork(void)
{
    return forked(NEXT(fork), CALLER);
}

EXPORT pid_t _Fork(void)
{
    pid_t (*next)(void) = pal_next("_Fork");
    return forked(next ? next : NEXT(fork), CALLER);
}

EXPORT int system(const char *command)
{
    if (command) {
        note_process(CALLER);
    }
    return NEXT(system)(command);
}

EXPORT FILE *popen(const char *command, const char *mode)
{
    note_process(CALLER);
    return NEXT(popen)(command, mode);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    note_process(CALLER);
    return NEXT(posix_spawn)(pid, path, actions, attributes, arguments, environment);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    note_process(CALLER);
    return NEXT(posix_spawnp)(pid, file, actions, attributes, arguments, environment);
}

EXPORT int daemon(int keeps_folder, int keeps_files)
{
    if (!pal.quiet) {
        pal_stop(R_UNSUPPORTED, "the program leaves its process (daemon), which cannot be followed");
    }
    return NEXT(daemon)(keeps_folder, keeps_files);
}

static const char by_clone[] = "the program starts a thread or a process with the system call clone, which cannot be followed";

EXPORT int clone(int (*call)(void *), void *stack, int flags, void *argument, ...)
{
    if (!pal.quiet) {
        pal_stop(R_UNSUPPORTED, by_clone);
    }
    va_list list;
    va_start(list, argument);
    void *more[3];
    for (int i = 0; i < 3; i++) {
        more[i] = va_arg(list, void *);
    }
    va_end(list);
    return NEXT(clone)(call, stack, flags, argument, more[0], more[1], more[2]);
}

/* The program is replaced by another program. The exit code of the process is then not that of this
 * program. */

static void replaces(int is_so)
{
    if (!pal.quiet || pal.in_handler) {
        pal.shared->replaced = (uint32_t)is_so;
    }
}

/* Returns only if it failed. */
#define REPLACED(call) ({ \
    replaces(1); \
    int result = (call); \
    replaces(0); \
    result; \
})

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    return REPLACED(NEXT(execve)(path, arguments, environment));
}

EXPORT int execv(const char *path, char *const arguments[])
{
    return REPLACED(NEXT(execv)(path, arguments));
}

EXPORT int execvp(const char *file, char *const arguments[])
{
    return REPLACED(NEXT(execvp)(file, arguments));
}

EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    return REPLACED(NEXT(execvpe)(file, arguments, environment));
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    return REPLACED(NEXT(fexecve)(fd, arguments, environment));
}

/* A list of arguments as an array on the stack. */
#define LISTED(first, array) \
    va_list list; \
    size_t count = 1; \
    va_start(list, first); \
    while (va_arg(list, char *)) { \
        count++; \
    } \
    va_end(list); \
    char *array[count + 1]; \
    array[0] = (char *)first; \
    va_start(list, first); \
    for (size_t i = 1; i <= count; i++) { \
        array[i] = va_arg(list, char *); \
    }

EXPORT int execl(const char *path, const char *argument, ...)
{
    LISTED(argument, arguments)
    va_end(list);
    return execv(path, arguments);
}

EXPORT int execlp(const char *file, const char *argument, ...)
{
    LISTED(argument, arguments)
    va_end(list);
    return execvp(file, arguments);
}

EXPORT int execle(const char *path, const char *argument, ...)
{
    LISTED(argument, arguments)
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}

EXPORT void _exit(int code)
{
    pal_at_exit(code, NULL);
    pal_exit_process(code);
}

EXPORT void _Exit(int code)
{
    _exit(code);
}

/* `quick_exit` runs handlers of its own, and ends like `_exit`. */
enum { MAX_HANDLERS = 256 };
static void (*quick_handlers[MAX_HANDLERS])(void *);
static int quick_count;

EXPORT int __cxa_at_quick_exit(void (*call)(void *), void *library)
{
    (void)library;
    if (quick_count == MAX_HANDLERS) {
        return -1;
    }
    quick_handlers[quick_count++] = call;
    return 0;
}

EXPORT void quick_exit(int code)
{
    while (quick_count) {
        quick_handlers[--quick_count](NULL);
    }
    _exit(code);
}

/* Signal handlers run at any moment, even inside the runtime. So nothing in them is logged, and no other
 * thread can run before they are done. */

/* The handlers that the program has installed. */
static struct sigaction actions[NSIG];

static int send_to_self(int signal)
{
    return (int)pal_syscall(SYS_tgkill, pal_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0), pal_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
                            signal, 0, 0, 0);
}

struct quiet {
    int was;
};

/* Also called when an exception leaves the handler. */
static void end_quiet(struct quiet *quiet)
{
    pal.in_handler--;
    pal.quiet = quiet->was;
}

static void handle(int signal, siginfo_t *info, void *context)
{
    if (pal.token_mode && !pal.quiet && pal_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) != pal.self->kernel_id) {
        /* This thread is waiting for its turn while another one runs. The handler must run there. */
        pal_syscall(SYS_tgkill, pal_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0), pal.self->kernel_id, signal, 0, 0, 0);
        return;
    }
    struct quiet quiet __attribute__((cleanup(end_quiet), unused)) = {pal.quiet};
    pal.quiet = 1;
    pal.in_handler++;
    /* A handler with one argument is called with three as well, which does no harm on this machine. */
    actions[signal].sa_sigaction(signal, info, context);
}

/* The program leaves a handler without returning from it. What was interrupted when it began is not known. */
void pal_leaves_handler(const char *message)
{
    if (pal.in_handler) {
        pal_stop(R_UNSUPPORTED, message);
    }
}

#define JUMP(name) \
    EXPORT __attribute__((noreturn)) void name(struct __jmp_buf_tag *buffer, int value) \
    { \
        typedef void jump(struct __jmp_buf_tag *, int); \
        static jump *next; \
        pal_leaves_handler("the program leaves a signal handler by " #name ", which cannot be followed"); \
        if (!next) { \
            next = pal_next(#name); \
        } \
        next(buffer, value); \
        __builtin_unreachable(); \
    }
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

static int set_action(int signal, const struct sigaction *action, struct sigaction *old, uint64_t place)
{
    if (signal <= 0 || signal >= NSIG) {
        return NEXT(sigaction)(signal, action, old);
    }
    struct sigaction ours, before = actions[signal];
    int is_handler = action && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN && (!pal.quiet || pal.in_handler);
    if (is_handler) {
        if (!pal.quiet) {
            pal_note(N_HANDLER, place);
        }
        ours = *action;
        ours.sa_sigaction = handle;
        ours.sa_flags |= SA_SIGINFO;
        actions[signal] = *action;
        action = &ours;
    }
    int result = NEXT(sigaction)(signal, action, old);
    if (result && is_handler) {
        actions[signal] = before;
    }
    if (!result && old && old->sa_sigaction == handle) {
        /* The program gets back what it has installed. */
        *old = before;
    }
    return result;
}

EXPORT int sigaction(int signal, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    return set_action(signal, action, old, CALLER);
}

static void (*set_handler(int number, void (*handler)(int), int flags, uint64_t place))(int)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    return set_action(number, &action, &old, place) ? SIG_ERR : old.sa_handler;
}

EXPORT void (*signal(int number, void (*handler)(int)))(int)
{
    return set_handler(number, handler, SA_RESTART, CALLER);
}

EXPORT void (*bsd_signal(int number, void (*handler)(int)))(int)
{
    return set_handler(number, handler, SA_RESTART, CALLER);
}

EXPORT void (*sysv_signal(int number, void (*handler)(int)))(int)
{
    return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER, CALLER);
}

EXPORT void (*__sysv_signal(int number, void (*handler)(int)))(int)
{
    return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER, CALLER);
}

/* Signals that the program sends to its own threads. Those to the calling thread are sent as usual. Another
 * thread does not run and cannot receive one. */

static const char to_thread[] = "the program sends a signal to another of its threads (pthread_kill), which cannot be followed";

static int send_signal(struct thread *thread, int signal)
{
    if (!thread) {
        return ESRCH;
    }
    if (signal < 0 || signal >= NSIG) {
        return EINVAL;
    }
    if (!signal || thread->finished) {
        return 0;
    }
    if (thread != pal.self) {
        pal_stop(R_UNSUPPORTED, to_thread);
    }
    return -send_to_self(signal);
}

EXPORT int pthread_kill(pthread_t pthread, int signal)
{
    return pal.is_forked ? NEXT(pthread_kill)(pthread, signal) : send_signal(pal_thread_of(pthread), signal);
}

EXPORT int pthread_sigqueue(pthread_t pthread, int signal, const union sigval value)
{
    struct thread *thread = pal_thread_of(pthread);
    if (thread && thread != pal.self && !thread->finished && signal) {
        pal_stop(R_UNSUPPORTED, to_thread);
    }
    return NEXT(pthread_sigqueue)(pthread, signal, value);
}

static struct thread *by_kernel_id(long id)
{
    for (int i = 0; i < pal.thread_count; i++) {
        if (pal.threads[i]->kernel_id == id) {
            return pal.threads[i];
        }
    }
    return NULL;
}

EXPORT int raise(int signal)
{
    int error = -send_to_self(signal);
    if (error) {
        errno = error;
        return -1;
    }
    return 0;
}

EXPORT int kill(pid_t pid, int signal)
{
    /* A handler runs on the kernel thread on which the program runs. */
    if (pid == getpid() && signal > 0 && signal < NSIG && actions[signal].sa_handler && !pal.is_forked) {
        return raise(signal);
    }
    return NEXT(kill)(pid, signal);
}

/* Threads that the C library starts by itself. */

static const char by_notification[] = "the program requests notifications by thread (SIGEV_THREAD), which cannot be followed";

EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    if (event && event->sigev_notify == SIGEV_THREAD && !pal.quiet) {
        pal_stop(R_UNSUPPORTED, by_notification);
    }
    return NEXT(timer_create)(clock, event, timer);
}

EXPORT int mq_notify(mqd_t queue, const struct sigevent *event)
{
    if (event && event->sigev_notify == SIGEV_THREAD && !pal.quiet) {
        pal_stop(R_UNSUPPORTED, by_notification);
    }
    return NEXT(mq_notify)(queue, event);
}

/* System calls that neither access the program's memory nor order accesses to it. */
static int touches_no_memory(long number)
{
    switch (number) {
    case SYS_getpid:
    case SYS_getppid:
    case SYS_gettid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_getpgid:
    case SYS_getsid:
    case SYS_sched_yield:
    case SYS_close:
    case SYS_dup:
    case SYS_lseek:
    case SYS_fsync:
    case SYS_umask:
    case SYS_kill:
    case SYS_alarm:
        return 1;
    default:
        return 0;
    }
}

static void note_syscall(long number, uint64_t place)
{
    if (pal.self && !pal.quiet && !pal_is_alone() && !touches_no_memory(number)) {
        pal_note_about(N_CALL, 0, place);
    }
}

/* System calls by number. Returns whether the call has been handled completely. A call that may touch memory
 * is reported, unless no other thread can see its effect. */
int pal_limit_syscall(long number, const long *arguments, uint64_t place, long *result)
{
    if (pal_hidden_syscall(number, arguments, place, result)) {
        note_syscall(number, place);
        return 1;
    }
    if (pal.quiet) {
        return 0;
    }
    switch (number) {
    case SYS_fork:
    case SYS_vfork:
    case SYS_clone:
    case SYS_clone3:
        pal_stop(R_UNSUPPORTED, by_clone);
    case SYS_execve:
    case SYS_execveat:
        *result = REPLACED(pal_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], 0));
        return 1;
    case SYS_exit:
        pal_stop(R_UNSUPPORTED, "the program ends a thread with the system call exit, which cannot be followed");
    case SYS_exit_group:
        _exit((int)arguments[0]);
    case SYS_rt_sigaction:
        if (arguments[1]) {
            pal_stop(R_UNSUPPORTED, "the program installs a signal handler with a system call of its own, which cannot be followed");
        }
        return 0;
    case SYS_tkill:
        *result = -send_signal(by_kernel_id(arguments[0]), (int)arguments[1]);
        return 1;
    case SYS_tgkill:
        *result = -send_signal(by_kernel_id(arguments[1]), (int)arguments[2]);
        return 1;
    default:
        note_syscall(number, place);
        return 0;
    }
}

/* Failed assertions and aborts. Only this code knows where they happened. */

EXPORT void abort(void)
{
    if (!pal.shared->crash_place) {
        pal.shared->crash_place = pal_crash_at(CALLER);
        pal.shared->crash_thread = pal.self->number;
    }
    pal.shared->steps = pal.steps;
    pal.quiet = 1;
    if (pal_restores) {
        pal_end_execution(SIGABRT);
    }
    NEXT(abort)();
    __builtin_unreachable();
}

void pal_fails(const char *what, uint64_t place)
{
    char text[256];
    int length = snprintf(text, sizeof text, "assertion failed: %s", what);
    pal_text(T_MESSAGE, text, (size_t)length);
    pal.shared->crash_place = pal_crash_at(place);
    pal.shared->crash_thread = pal.self->number;
    abort();
}

EXPORT void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    char text[1024];
    int length = snprintf(text, sizeof text, "%s:%u: assertion `%s` failed in %s", file, line, assertion, function ? function : "?");
    pal_text(T_MESSAGE, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
    pal.shared->crash_place = pal_crash_at(CALLER);
    pal.shared->crash_thread = pal.self->number;
    write(2, text, pal_length(text));
    write(2, "\n", 1);
    abort();
}
