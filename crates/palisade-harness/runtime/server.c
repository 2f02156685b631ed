/* Runs one execution after the other.
 *
 * Under `palisade run`, standard input receives commands, standard output carries the log, and standard error
 * carries what the program prints. The program stops before `main` and forks, so that all executions begin in the
 * same state, at the same addresses. A process either runs one execution, or undoes executions and runs many
 * (resident.c). The server watches each execution (watch.c). If one dies, the server reports it with the rest of
 * its log. If one produces no events, the server ends it.
 *
 * A program that is started in another way runs under one schedule, with the seed in PALISADE_SEED or 0.
 * Nothing is logged. */

#include "palisade.h"
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_BYTES = 1 << 20, FIRST_FD = 700, HELLO_BYTES = 1 << 16 };

/* The harness looks for this in a file to check whether it can be run. */
EXPORT const char palisade_runtime_marker[] = "palisade-runtime-interface-2";

static struct shared alone;
static char alone_log[1 << 16];
static struct thread main_thread;
static int command_fd = -1;
static char end_of_output[64];

void pal_write_all(int fd, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size) {
        long written = pal_own_syscall(SYS_write, fd, (long)from, (long)size, 0, 0, 0);
        if (written == -EINTR) {
            continue;
        }
        if (written <= 0) {
            /* Nothing reads the output any more. */
            pal_own_syscall(SYS_exit_group, 3, 0, 0, 0, 0, 0);
        }
        from += written;
        size -= (size_t)written;
    }
}

/* What was read from the pipe of commands and not used yet. The server and the process that runs many executions read
 * it in turns. */
struct input {
    uint32_t at, end;
    char bytes[1 << 16];
};
#define INPUT_PLACE 0x072000000000ull
static struct input *input;

int pal_is_input(uint64_t address)
{
    return address == INPUT_PLACE;
}

/* Fills the input. Returns 0 at its end. The next command often comes after less time than it takes to fall asleep and
 * to be woken up. */
static int fill_input(void)
{
    enum { TRIES = 100 };
    for (int tries = 0;; tries++) {
        long got = pal_own_syscall(SYS_read, command_fd, (long)input->bytes, sizeof input->bytes, 0, 0, 0);
        if (got == -EAGAIN && tries < TRIES) {
            pal_own_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        } else if (got == -EAGAIN) {
            struct pollfd file = {.fd = command_fd, .events = POLLIN};
            pal_own_syscall(SYS_poll, (long)&file, 1, -1, 0, 0, 0);
        } else if (got != -EINTR) {
            input->at = 0;
            input->end = got > 0 ? (uint32_t)got : 0;
            return got > 0;
        }
    }
}

/* Reads commands. Returns 0 at their end. */
int pal_read_command(void *bytes, size_t size)
{
    char *to = bytes;
    while (size) {
        if (input->at == input->end && !fill_input()) {
            return 0;
        }
        size_t left = input->end - input->at, part = size < left ? size : left;
        pal_copy(to, input->bytes + input->at, part);
        input->at += (uint32_t)part;
        to += part;
        size -= part;
    }
    return 1;
}

/* A text is being written and must not be interrupted. */
static int in_text;

void pal_flush(void)
{
    struct shared *shared = pal.shared;
    pal_hands_on();
    if (pal.is_served) {
        shared->writing = 1;
        pal_write_all(pal.log_fd, pal.log, shared->at);
    }
    if (pal.command.flags & EXPLORE && pal.self) {
        pal_note_writes(pal.self);
        pal.self->log_mark = 0;
    }
    shared->at = 0;
    shared->flushed++;
    shared->writing = 0;
    if (unlikely(shared->late) && !in_text) {
        pal_stop(R_TIME, "");
    }
}

void pal_text(enum text what, const char *text, size_t length)
{
    if (!pal.is_served) {
        return;
    }
    in_text++;
    pal_log((uint64_t)length | HEAD(K_TEXT, O_PLAIN, what), pal.self->tag);
    for (size_t at = 0; at < length; at += 16) {
        uint64_t words[2] = {0, 0};
        size_t part = length - at < 16 ? length - at : 16;
        for (size_t i = 0; i < part; i++) {
            ((char *)words)[i] = text[at + i];
        }
        pal_log(words[0], words[1]);
    }
    in_text--;
}

/* Ends the execution because it cannot, or should not, continue. */
void pal_stop(enum reason reason, const char *message)
{
    if (!pal.is_served) {
        const char *what = reason == R_DEADLOCK ? "deadlock: no thread can ever move again" : message;
        pal_write_all(2, "palisade: ", 10);
        pal_write_all(2, what, pal_length(what));
        pal_write_all(2, "\n", 1);
        pal_syscall(SYS_exit_group, 3, 0, 0, 0, 0, 0);
    }
    if (*message) {
        pal_text(T_MESSAGE, message, pal_length(message));
    }
    pal.shared->reason = reason;
    pal.shared->steps = pal.steps;
    pal_exit_process(0);
}

void pal_note_about(enum note note, uint64_t about, uint64_t place)
{
    if (pal.is_served) {
        uint64_t what = (uint64_t)note | about << NOTE_BITS;
        pal_log((what & ADDRESS_BITS) | HEAD(K_NOTE, O_PLAIN, 0), pal_at(place & ADDRESS_BITS));
    }
}

void pal_note(enum note note, uint64_t place)
{
    pal_note_about(note, 0, place);
}

struct hello {
    char text[HELLO_BYTES];
    size_t length;
    int first;
};

static int module(struct dl_phdr_info *info, size_t size, void *to)
{
    (void)size;
    struct hello *hello = to;
    char self[4096];
    const char *name = info->dlpi_name;
    if (hello->first) {
        hello->first = 0;
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length > 0 ? length : 0] = 0;
        name = self;
    }
    uint64_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uint64_t top = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && top > end) {
            end = top;
        }
    }
    size_t room = sizeof hello->text - hello->length;
    int written = snprintf(hello->text + hello->length, room, "module %llx %llx %s\n", (unsigned long long)info->dlpi_addr,
                           (unsigned long long)(info->dlpi_addr + end), name);
    if (written > 0 && (size_t)written < room) {
        hello->length += (size_t)written;
    }
    return 0;
}

static void say_line(struct hello *hello, const char *what, const char *name)
{
    size_t room = sizeof hello->text - hello->length;
    int written = snprintf(hello->text + hello->length, room, "%s %s\n", what, name);
    if (written > 0 && (size_t)written < room) {
        hello->length += (size_t)written;
    }
}

static void say_not_compiled(const char *name, void *to)
{
    say_line(to, "not-compiled", name);
}

static void say_call(const char *name, void *to)
{
    static int number;
    char what[32];
    snprintf(what, sizeof what, "call %d", ++number);
    say_line(to, what, name);
}

static void say_hello(void)
{
    static struct hello hello = {.first = 1};
    hello.length = (size_t)snprintf(hello.text, sizeof hello.text, "palisade-runtime 1\nscheduling %s\n",
                                    pal.token_mode ? "token" : "coroutines");
    pal_not_compiled(say_not_compiled, &hello);
    dl_iterate_phdr(module, &hello);
    pal_calls(say_call, &hello);
    pal_text(T_HELLO, hello.text, hello.length);
    pal_flush();
}

/* Reports activity that was not followed. It means that the end of the process says nothing about the
 * program. */
static void report_unfollowed(void)
{
    const char *what = pal.shared->replaced         ? "the program was replaced by another program (exec), which cannot be followed"
                       : pal.shared->forked_threads ? "a process that the program forked starts threads, which cannot be followed"
                                                    : NULL;
    if (what && !pal.shared->reason) {
        pal.shared->reason = R_UNSUPPORTED;
        pal_text(T_MESSAGE, what, pal_length(what));
    }
}

/* Reports how an execution ended. What it has printed is either given here, or was written to standard error. */
void pal_report_end(int status, const char *printed, size_t printed_bytes)
{
    enum { PRINTED_HERE = 32 };
    struct shared *shared = pal.shared;
    uint64_t fields[9 + shared->names];
    size_t at = 0;
    fields[at++] = (uint64_t)(uint32_t)status | (uint64_t)(printed != NULL) << PRINTED_HERE;
    fields[at++] = shared->reason;
    fields[at++] = shared->steps;
    fields[at++] = shared->crash_place;
    fields[at++] = shared->crash_address;
    fields[at++] = shared->crash_thread;
    fields[at++] = shared->exited;
    fields[at++] = shared->accesses;
    fields[at++] = shared->names;
    for (uint32_t i = 0; i < shared->names; i++) {
        fields[at++] = (uint64_t)shared->parents[i] << 32 | shared->siblings[i];
    }
    if (printed_bytes) {
        pal_text(T_PRINTED, printed, printed_bytes);
    }
    pal_log(HEAD(K_END, O_PLAIN, 0), 0);
    pal_text(T_END, (const char *)fields, at * sizeof *fields);
    if (!printed) {
        /* Before the log: whoever has read that the execution has ended does not have to wait for this. */
        pal_write_all(2, end_of_output, pal_length(end_of_output));
    }
    pal_flush();
}

void pal_crashed(int signal, void *about, void *context)
{
    ucontext_t *machine = context;
    siginfo_t *info = about;
    pal.shared->crash_place = pal_crash_at((uint64_t)machine->uc_mcontext.gregs[REG_RIP] + 1);
    pal.shared->crash_address = (uint64_t)info->si_addr;
    pal.shared->crash_thread = pal.self->number;
    pal.shared->steps = pal.steps;
    if (pal_restores) {
        pal_end_execution(signal);
    }
    /* What follows is not the program's. */
    pal.quiet++;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL);
    /* The instruction is executed again and ends the process. A signal that was sent is sent again. */
    if (info->si_code <= 0) {
        raise(signal);
    }
}

/* What all executions have in common: they inherit it from the server. */
static void prepare_executions(void)
{
    static char signal_stack[1 << 15];
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK, .sa_sigaction = (void (*)(int, siginfo_t *, void *))pal_crashed};
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &action, NULL);
    }
    pal_begin_limits();
}

/* What a process does before its first execution. System calls are made directly: every other page of the C
 * library that is touched costs as much as several of them. */
void pal_settle(void)
{
    uint64_t none = 0, usual[4] = {0, 0, 0, 0};
    pal_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
    pal_syscall(SYS_rt_sigaction, SIGTERM, (long)usual, 0, sizeof none, 0, 0);
    pal_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof none, 0, 0);
    main_thread.kernel_id = (int)pal_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

void pal_begin_execution(void)
{
    pal.shared->running = (uint32_t)main_thread.kernel_id;
    pal_wipes = (pal.command.flags & EXPLORE) != 0;
    pal_begin_schedule();
    pal.quiet = 0;
    pal_report_early();
}

/* Nothing is known about the next execution yet. */
void pal_begin_log(void)
{
    struct shared *shared = pal.shared;
    shared->at = shared->flushed = shared->reason = shared->exited = shared->accesses = 0;
    shared->writing = 0;
    shared->crash_place = shared->crash_address = shared->steps = 0;
    shared->late = shared->replaced = shared->forked_threads = 0;
    /* An execution depends only on its command. In a search, threads keep their numbers. */
    const uint64_t *names = pal.addresses + pal.command.addresses, *words = names + pal.command.names;
    shared->names = 1;
    for (uint64_t i = 1; i < pal.command.names && i < MAX_THREADS; i++) {
        shared->parents[i] = (uint32_t)(names[i] >> 32);
        shared->siblings[i] = (uint32_t)names[i];
        shared->names = (uint32_t)i + 1;
    }
    pal_know_sharing(words, pal.command.sharing);
    pal.compared = words + pal.command.sharing;
}

size_t pal_choice_bytes(void)
{
    uint64_t numbers = pal.command.addresses + pal.command.names + pal.command.sharing + pal.command.compared;
    return pal.command.choices * sizeof *pal.choices + numbers * sizeof *pal.addresses;
}

void pal_set_choices(struct choice *choices)
{
    pal.choices = choices;
    pal.addresses = (const uint64_t *)(choices + pal.command.choices);
}

/* The addresses of the log and of the given turns. */
#define LOG_PLACE 0x070000000000ull
#define CHOICES_PLACE 0x071000000000ull

static void *shared_memory(uint64_t place, size_t size)
{
    if (pal_map(place, size, MAP_SHARED | MAP_NORESERVE)) {
        const char problem[] = "palisade: no memory for the log\n";
        pal_write_all(2, problem, sizeof problem - 1);
        pal_syscall(SYS_exit_group, 3, 0, 0, 0, 0, 0);
    }
    return (void *)place;
}

static void serve(void)
{
    command_fd = fcntl(0, F_DUPFD_CLOEXEC, FIRST_FD);
    fcntl(command_fd, F_SETFL, O_NONBLOCK);
    pal.log_fd = fcntl(1, F_DUPFD_CLOEXEC, FIRST_FD);
    /* With a large pipe, the execution can continue while its log is read. If the pipe cannot be that large,
     * it stays as it is. */
    fcntl(pal.log_fd, F_SETPIPE_SZ, LOG_BYTES);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    close(nothing);
    dup2(2, 1);
    pal.shared = shared_memory(LOG_PLACE, sizeof *pal.shared + LOG_BYTES);
    *pal.shared = alone;
    pal.log = (char *)(pal.shared + 1);
    pal.log_end = pal.log + LOG_BYTES;
    input = shared_memory(INPUT_PLACE, sizeof *input);
    pal.is_served = 1;
    /* Otherwise, the C library would allocate these from the heap of the thread that prints or reads
     * first. */
    static char printed[4096], read[4096];
    setvbuf(stdout, printed, _IOFBF, sizeof printed);
    setvbuf(stdin, read, _IOFBF, sizeof read);
    pal_begin_unwinding();
    say_hello();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    pal_begin_reaping();
    prepare_executions();
    pal_prepare_threads(USUALLY_PREPARED);
    /* An execution is not a process that the program forks, so its handlers for that must not run. */
    pid_t (*make_process)(void) = pal_next("_Fork");
    make_process = make_process ? make_process : pal_next("fork");
    pid_t server = getpid();
    for (;;) {
        int left = 0;
        if (pal_wants_resident()) {
            left = pal_run_resident(make_process);
            if (left < 0) {
                return;
            }
            if (!left) {
                continue;
            }
        }
        if (!left && (!pal_read_command(&pal.command, sizeof pal.command) || pal.command.magic != COMMAND_MAGIC)) {
            pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
        }
        size_t bytes = left == 2 ? 0 : pal_choice_bytes();
        pal_set_choices(bytes ? shared_memory(CHOICES_PLACE, bytes) : left == 2 ? pal_given_up_choices() : NULL);
        if (!pal_read_command(pal.choices, bytes)) {
            pal_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
        }
        pal_begin_log();
        pal_expect_children();
        pid_t child = make_process();
        if (child == 0) {
            if (pal_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0) != server) {
                pal_syscall(SYS_exit_group, 3, 0, 0, 0, 0, 0);
            }
            pal_settle();
            pal_syscall(SYS_close, command_fd, 0, 0, 0, 0, 0);
            pal_begin_execution();
            return;
        }
        int status = 0;
        if (child < 0) {
            pal.shared->reason = R_INTERNAL;
            const char problem[] = "fork failed: there are too many processes, or no memory is left";
            pal_text(T_MESSAGE, problem, sizeof problem - 1);
        } else {
            status = pal_watch(child);
            pal.shared->late = 0;
            pal_reap();
            report_unfollowed();
        }
        pal_report_end(status, NULL, 0);
        pal_prepare_threads(pal.shared->names - 1);
        if (bytes) {
            munmap(pal.choices, bytes);
        }
    }
}

/* Restarts the program without address space randomisation, so that addresses are the same whenever a
 * schedule is repeated. */
static void without_randomisation(char **arguments, char **environment)
{
    int now = personality(0xffffffff);
    if (now == -1 || now & ADDR_NO_RANDOMIZE || personality((unsigned)now | ADDR_NO_RANDOMIZE) == -1) {
        return;
    }
    execve("/proc/self/exe", arguments, environment);
}

/* `malloc` may be called before any code of the program runs. It needs a calling thread. */
static void prepare(void)
{
    if (!pal.self) {
        pal.self = &main_thread;
        pal.quiet = 1;
        pal.shared = &alone;
        pal.log = alone_log;
        pal.log_end = alone_log + sizeof alone_log;
        pal.next_check = UINT64_MAX;
        alone.names = 1;
    }
}

/* Constructors of libraries, and some of the program, run before ours. */
__attribute__((section(".preinit_array"), used)) static void (*before_all)(void) = prepare;

struct thread *pal_first_thread(void)
{
    prepare();
    return &main_thread;
}

__attribute__((constructor(101))) static void begin(int count, char **arguments, char **environment)
{
    (void)count;
    prepare();
    const char *run = getenv("PALISADE_RUN");
    const char *mode = getenv("PALISADE_SCHEDULING");
    enum { FSGSBASE = 2 };
    pal.token_mode = !(getauxval(AT_HWCAP2) & FSGSBASE) || (mode && pal_is_text(mode, "token"));
    if (run && pal_is_text(run, "1")) {
        /* Changed in place, because `setenv` would allocate from the heap of the program. Addresses would
         * then depend on whether the program was restarted. */
        *(char *)run = 'a';
        without_randomisation(arguments, environ);
    }
    const char *end = getenv("PALISADE_END_OF_OUTPUT");
    if (end && pal_length(end) < sizeof end_of_output) {
        pal_copy(end_of_output, end, pal_length(end));
    }
    unsetenv("PALISADE_RUN");
    unsetenv("PALISADE_END_OF_OUTPUT");
    enum { LONGEST_MODE = 16 };
    static char kept_mode[LONGEST_MODE];
    if (mode && pal_length(mode) < sizeof kept_mode) {
        pal_copy(kept_mode, mode, pal_length(mode));
    }
    unsetenv("PALISADE_SCHEDULING");
    const char *bind = getenv("LD_BIND_NOW");
    if (bind && pal_is_text(bind, "palisade")) {
        /* The harness has set it, because looking up a function at its first call would leave traces on the
         * stack of the caller. */
        unsetenv("LD_BIND_NOW");
    }
    (void)environment;
    static struct look looks[MAX_LOOKS];
    main_thread.looks = looks;
    pal_first_stack(&main_thread, arguments);
    main_thread.pthread = pthread_self();
    main_thread.fs_base = (uint64_t)main_thread.pthread;
    main_thread.kernel_id = getpid();
    pal_add_thread(&main_thread);
    pal_begin_threads();
    if (pal.token_mode) {
        /* On one core, the token is passed on fastest. */
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(sched_getcpu(), &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    if (run) {
        pal_begin_residents(kept_mode);
        serve();
        return;
    }
    const char *seed = getenv("PALISADE_SEED");
    pal.command.seed = seed ? strtoull(seed, NULL, 10) : 0;
    pal_begin_schedule();
    pal_begin_limits();
    pal.quiet = 0;
    pal_report_early();
}

/* Called when the process ends normally. */
void pal_at_exit(int code, void *nothing)
{
    (void)nothing;
    if (pal.quiet || pal.shared->exited) {
        if (pal.in_handler) {
            /* It ends normally, inside a handler where nothing is logged. */
            pal.shared->steps = pal.steps;
            pal.shared->exited = 1;
        }
        return;
    }
    pal_event((uint64_t)(uint32_t)code, HEAD(K_EXIT, O_PLAIN, 0), 0);
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        uint64_t how = !thread->finished    ? (thread->detached ? STUCK_DETACHED : STUCK_RUNNING)
                       : !thread->detached && !thread->joined ? STUCK_NOT_JOINED
                                                              : 0;
        if (how && thread != pal.self && !thread->is_excluded && (thread->number || !thread->finished)) {
            pal_log((thread->first & ADDRESS_BITS) | HEAD(K_STUCK, O_PLAIN, how),
                    (thread->second & ADDRESS_BITS) | thread->tag);
        }
    }
    pal.shared->steps = pal.steps;
    pal.shared->exited = 1;
    pal.quiet = 1;
}
