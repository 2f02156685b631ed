/* Watches executions, and ends those that do not end on their own. */

#include "palisade.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t since(const struct timespec *start)
{
    struct timespec now;
    pal_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
    return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
}

void pal_start_watch(struct stopwatch *stopwatch)
{
    pal_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&stopwatch->start, 0, 0, 0, 0);
    stopwatch->last_change = 0;
    stopwatch->seen = UINT64_MAX;
}

/* Whether an execution has had no events for too long, or has taken too long altogether. */
enum reason pal_is_too_long(struct stopwatch *stopwatch, const struct command *command)
{
    struct shared *shared = pal.shared;
    int64_t elapsed = since(&stopwatch->start);
    uint64_t progress = shared->at + (shared->flushed << 32);
    if (progress != stopwatch->seen || shared->writing) {
        stopwatch->seen = progress;
        stopwatch->last_change = elapsed;
    }
    if (command->stall && elapsed - stopwatch->last_change >= (int64_t)command->stall) {
        return R_STALLED;
    }
    return command->time && elapsed >= (int64_t)command->time ? R_TIME : R_NONE;
}

/* What an execution is doing: "running", or the number of a system call. */
void pal_current_call(int process, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", process, (int)pal.shared->running);
    int fd = open(path, O_RDONLY);
    if (fd >= 0) {
        ssize_t length = read(fd, text, size - 1);
        text[length > 0 ? length : 0] = 0;
        close(fd);
    }
}

/* Ends an execution that does not end by itself. Returns 0 and does nothing while it writes to the log,
 * because the amount that was written would be unknown. The caller then tries again. */
static int end_child(pid_t child, int *status, int is_stopped)
{
    if (!is_stopped) {
        kill(child, SIGSTOP);
        if (waitpid(child, status, WUNTRACED) == child && !WIFSTOPPED(*status)) {
            return 1;
        }
    }
    if (pal.shared->writing) {
        kill(child, SIGCONT);
        return 0;
    }
    kill(child, SIGKILL);
    waitpid(child, status, 0);
    return 1;
}

/* How often to try to end an execution that writes to the log, and the pause between tries. Together they
 * take less time than the harness allows. */
enum { TRIES = 20, BETWEEN_TRIES = 5 * 1000 * 1000 };

/* A request to end the server has arrived. What the execution has shown is still reported, unless nothing
 * reads the log any more. */
static void end_all(pid_t child)
{
    int status = 0, is_over = 0;
    for (int i = 0; i < TRIES && !is_over; i++) {
        is_over = end_child(child, &status, 0);
        if (!is_over) {
            struct timespec tick = {0, BETWEEN_TRIES};
            pal_syscall(SYS_nanosleep, (long)&tick, 0, 0, 0, 0, 0);
        }
    }
    if (!is_over) {
        kill(child, SIGKILL);
    }
    pal_end_children();
    if (is_over) {
        if (!pal.shared->reason && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            pal.shared->reason = R_STOPPED;
        }
        pal.shared->late = 0;
        pal_report_end(status, NULL, 0);
    }
    pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* Waits for a process for a moment. Returns what `waitpid` returns: 0 if the process goes on. If the server is to end,
 * `end` is called, which does not return. `parent` is the process that has started the server; if that is gone, everything
 * ends. */
pid_t pal_wait_for(pid_t child, pid_t parent, int *status, void (*end)(pid_t))
{
    pid_t ended = waitpid(child, status, WNOHANG | WUNTRACED);
    if (ended > 0) {
        return ended;
    }
    if (pal_is_end_requested()) {
        end(child);
    }
    if (getppid() != parent) {
        kill(child, SIGKILL);
        pal_reap();
        pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    struct timespec tick = {0, 50 * 1000 * 1000};
    sigtimedwait(&signals, NULL, &tick);
    return ended;
}

/* Watches an execution until it is over. */
int pal_watch(pid_t child)
{
    pid_t parent = getppid();
    struct shared *shared = pal.shared;
    struct stopwatch stopwatch;
    pal_start_watch(&stopwatch);
    for (;;) {
        int status;
        pid_t ended = pal_wait_for(child, parent, &status, end_all);
        if (ended == child && !WIFSTOPPED(status)) {
            return status;
        }
        if (ended == child) {
            int signal = WSTOPSIG(status);
            if (end_child(child, &status, 1)) {
                char text[128];
                snprintf(text, sizeof text, "the program was stopped by signal %d (%s), and waits to be continued from outside", signal,
                         strsignal(signal));
                if (!shared->reason) {
                    shared->reason = R_UNSUPPORTED;
                    pal_text(T_MESSAGE, text, pal_length(text));
                }
                return status;
            }
        }
        enum reason reason = pal_is_too_long(&stopwatch, &pal.command);
        /* An execution that is writing ends by itself afterwards. */
        shared->late = pal.command.time && since(&stopwatch.start) >= (int64_t)pal.command.time;
        if (reason && !shared->writing) {
            char text[256] = "";
            pal_current_call(child, text, sizeof text);
            if (!end_child(child, &status, 0)) {
                continue;
            }
            if (!shared->reason) {
                shared->reason = reason;
            }
            if (shared->reason == R_STALLED) {
                pal_text(T_MESSAGE, text, pal_length(text));
            }
            return status;
        }
    }
}
