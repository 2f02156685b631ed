/* One process that runs many executions, one after the other (restore.c), and how the server watches it.
 *
 * The process itself reads commands, runs executions, and writes their logs. The server only waits. It ends an
 * execution that takes too long, and reports it. If the process gives an execution up, or dies, the server runs
 * that execution again in a process of its own, as if there were no other way.
 *
 * Nothing leaves the process before an execution has ended: its log is in the buffer, and what it has printed is
 * kept and becomes part of the log. So an execution can be given up at any point. */

#include "palisade.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first executions of a program each have a process of their own: keeping the state takes as long as several
 * of them. */
enum { FIRST = 4 };
/* After this many given-up executions, and if they are more than one in this many, there are no further attempts. */
enum { MAX_GIVEN_UP = 4, GIVEN_UP_PART = 8 };
enum { MAX_PRINTED = 1 << 16, MAX_CHOICES = 1 << 17 };

enum state { WAITS, READS, RUNS, REPORTS, GAVE_UP, IS_OVER };

/* What the process shares with the server. */
struct resident {
    volatile uint32_t state;
    volatile uint64_t number; /* of executions so far */
    uint64_t printed_bytes;
    struct command command;
    char choices[MAX_CHOICES] __attribute__((aligned(16)));
    char printed[MAX_PRINTED];
};
#define RESIDENT_PLACE 0x073000000000ull
static struct resident *resident;

enum usage { USUAL, NEVER, ALWAYS };
static enum usage usage;
static uint64_t run_count, given_up;

void pal_begin_residents(const char *mode)
{
    usage = mode && pal_is_text(mode, "forked") ? NEVER : mode && pal_is_text(mode, "reused") ? ALWAYS : USUAL;
    if (pal.token_mode || pal_map(RESIDENT_PLACE, sizeof *resident, MAP_SHARED | MAP_NORESERVE)) {
        usage = NEVER;
        return;
    }
    resident = (struct resident *)RESIDENT_PLACE;
}

/* Whether to run the next executions in one process. */
int pal_wants_resident(void)
{
    if (usage == USUAL && given_up >= MAX_GIVEN_UP && given_up * GIVEN_UP_PART > resident->number) {
        usage = NEVER;
    }
    return usage == ALWAYS || (usage == USUAL && run_count++ >= FIRST);
}

/* Whether shared memory is ours. */
int pal_is_resident_memory(uint64_t address)
{
    return address == RESIDENT_PLACE || address == (uint64_t)pal.shared || pal_is_input(address);
}

/* In the process. */

void pal_resident_gives_up(void)
{
    resident->state = GAVE_UP;
}

void pal_resident_prints(const char *text, size_t size)
{
    if (size > MAX_PRINTED - resident->printed_bytes) {
        pal_give_up();
    }
    char *to = resident->printed + resident->printed_bytes;
    for (size_t i = 0; i < size; i++) {
        to[i] = text[i];
    }
    resident->printed_bytes += size;
}

void pal_resident_reports(int status)
{
    resident->state = REPORTS;
    pal_report_end(status, resident->printed, resident->printed_bytes);
    resident->state = WAITS;
}

static void begin_one(void)
{
    struct command *command = &resident->command;
    if (!pal_read_command(command, sizeof *command) || command->magic != COMMAND_MAGIC) {
        resident->state = IS_OVER;
        pal_own_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    resident->state = READS;
    pal.command = *command;
    size_t bytes = pal_choice_bytes();
    if (bytes > MAX_CHOICES) {
        pal_own_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    if (!pal_read_command(resident->choices, bytes)) {
        resident->state = IS_OVER;
        pal_own_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    pal_set_choices((struct choice *)resident->choices);
    resident->printed_bytes = 0;
    pal_begin_log();
    resident->number++;
    resident->state = RUNS;
    pal_begin_execution();
}

/* Becomes the process that runs executions. Returns when the first one has begun, and again for each. */
static void reside(void)
{
    pal_settle();
    if (!pal_begin_restoring()) {
        resident->state = GAVE_UP;
        pal_own_syscall(SYS_exit_group, 1, 0, 0, 0, 0, 0);
    }
    pal_each_execution(begin_one);
}

/* In the server. */

/* Stops the process. Returns 0 if it has gone on since, and can do so. */
static int hold(pid_t child, int *status, uint64_t number)
{
    kill(child, SIGSTOP);
    if (waitpid(child, status, WUNTRACED) == child && !WIFSTOPPED(*status)) {
        return 0;
    }
    if (resident->number == number && resident->state == RUNS && !pal.shared->writing) {
        return 1;
    }
    kill(child, SIGCONT);
    return 0;
}

static void end(pid_t child, int *status)
{
    kill(child, SIGKILL);
    waitpid(child, status, 0);
}

/* A request to end the server has arrived. */
static __attribute__((noreturn)) void end_all(pid_t child)
{
    enum { TRIES = 20, BETWEEN_TRIES = 5 * 1000 * 1000 };
    int status = 0;
    for (int i = 0; i < TRIES && resident->state != WAITS; i++) {
        if (hold(child, &status, resident->number)) {
            pal.command = resident->command;
            end(child, &status);
            pal_end_children();
            pal.shared->reason = pal.shared->reason ? pal.shared->reason : R_STOPPED;
            pal_report_end(status, resident->printed, resident->printed_bytes);
            break;
        }
        struct timespec tick = {0, BETWEEN_TRIES};
        pal_syscall(SYS_nanosleep, (long)&tick, 0, 0, 0, 0, 0);
    }
    kill(child, SIGKILL);
    pal_end_children();
    pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

/* Watches the process until it ends. Returns whether it has read a command and not reported an execution. */
static int watch(pid_t child)
{
    pid_t parent = getppid();
    struct shared *shared = pal.shared;
    struct stopwatch stopwatch;
    uint64_t number = UINT64_MAX;
    for (;;) {
        int status;
        pid_t ended = pal_wait_for(child, parent, &status, end_all);
        if (ended) {
            if (ended == child && WIFSTOPPED(status)) {
                end(child, &status);
            }
            return 1;
        }
        if (resident->state != RUNS || number != resident->number) {
            number = resident->number;
            pal_start_watch(&stopwatch);
            continue;
        }
        enum reason reason = pal_is_too_long(&stopwatch, &resident->command);
        if (reason && hold(child, &status, number)) {
            char text[256] = "";
            pal_current_call(child, text, sizeof text);
            pal.command = resident->command;
            end(child, &status);
            pal_reap();
            if (!shared->reason) {
                shared->reason = reason;
            }
            if (shared->reason == R_STALLED) {
                pal_text(T_MESSAGE, text, pal_length(text));
            }
            pal_report_end(status, resident->printed, resident->printed_bytes);
            return 0;
        }
    }
}

/* Runs executions in one process. Returns -1 in that process; otherwise, whether a command was read that is still
 * to be run: its choices are read, too. */
int pal_run_resident(pid_t (*make_process)(void))
{
    pid_t server = getpid();
    uint64_t before = resident->number;
    resident->state = WAITS;
    pal_expect_children();
    pid_t child = make_process();
    if (child == 0) {
        if (pal_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0) != server) {
            pal_syscall(SYS_exit_group, 3, 0, 0, 0, 0, 0);
        }
        reside();
        return -1;
    }
    if (child < 0) {
        usage = NEVER;
        return 0;
    }
    int is_left = watch(child);
    pal_reap();
    if (!is_left) {
        return 0;
    }
    if (resident->state == IS_OVER || resident->state == REPORTS) {
        /* If it died while it was writing, it is not known how much of the log arrived. */
        pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    given_up++;
    if (resident->state == WAITS || resident->number == before) {
        /* It is not possible, or not even the first execution could be run. */
        usage = NEVER;
    }
    if (resident->state == WAITS || (resident->state == GAVE_UP && resident->number == before)) {
        return 0;
    }
    pal.command = resident->command;
    size_t bytes = pal_choice_bytes();
    if (resident->state == READS) {
        if (bytes <= MAX_CHOICES) {
            pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
        }
        return 1;
    }
    return 2;
}

/* The choices of a command that was given up. */
struct choice *pal_given_up_choices(void)
{
    return (struct choice *)resident->choices;
}
