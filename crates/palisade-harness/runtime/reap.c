/* Processes that an execution leaves behind: those that the program forked, and their descendants. They end
 * with the execution.
 *
 * The server adopts orphans (PR_SET_CHILD_SUBREAPER). When the execution is over, every process that is left
 * of it is a child of the server, or becomes one when its parent ends. So a program cannot hide a process in
 * a process group or session of its own. */

#include "palisade.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t end_requested, has_children;

/* A request that the server end. It ends at once if it has no children to end first. */
static void request_end(int signal)
{
    (void)signal;
    end_requested = 1;
    if (!has_children) {
        pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
}

void pal_begin_reaping(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct sigaction action = {.sa_handler = request_end};
    sigaction(SIGTERM, &action, NULL);
}

void pal_expect_children(void)
{
    has_children = 1;
}

int pal_is_end_requested(void)
{
    return end_requested;
}

/* Ends the children that the kernel lists. Returns 0 if it does not list them. */
static int end_listed(void)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", pal_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    /* The rest of the list is read in the next round. A truncated number would be the id of another
     * process. */
    char *end = pal_last(text, ' ');
    if (end) {
        *end = 0;
    }
    for (char *at = text; *at;) {
        char *next;
        long pid = strtol(at, &next, 10);
        if (next == at) {
            break;
        }
        at = next;
        if (pid > 1) {
            kill((pid_t)pid, SIGKILL);
        }
    }
    return 1;
}

/* The same on kernels that do not list children, by looking at all processes. */
static void end_searched(void)
{
    DIR *processes = opendir("/proc");
    if (!processes) {
        return;
    }
    pid_t self = getpid();
    for (struct dirent *entry; (entry = readdir(processes));) {
        char path[300], text[1024];
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 1) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            continue;
        }
        ssize_t length = read(fd, text, sizeof text - 1);
        close(fd);
        text[length > 0 ? length : 0] = 0;
        /* The parent is the second field after the name. The name may contain anything, but ends with the
         * last parenthesis. */
        char *name_end = pal_last(text, ')');
        if (name_end && pal_length(name_end) > 4 && strtol(name_end + 4, NULL, 10) == self) {
            kill((pid_t)pid, SIGKILL);
        }
    }
    closedir(processes);
}

/* Ends all processes that are left of an execution. */
void pal_end_children(void)
{
    for (;;) {
        int status;
        pid_t ended = waitpid(-1, &status, WNOHANG | __WALL);
        if (ended > 0) {
            continue;
        }
        if (ended < 0 && errno != EINTR) {
            break;
        }
        if (!end_listed()) {
            end_searched();
        }
        /* They end soon. If one was not listed, it is found in the next round. */
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGCHLD);
        struct timespec tick = {0, 5 * 1000 * 1000};
        sigtimedwait(&signals, NULL, &tick);
    }
}

/* The same, and the server ends too if that was requested. */
void pal_reap(void)
{
    pal_end_children();
    has_children = 0;
    if (end_requested) {
        pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
}
