/* Executions that are undone when they have ended, so that the next one can begin in the same process.
 *
 * Starting a process for every execution costs a few hundred microseconds, far more than a short execution. So
 * the server can start one process that runs many executions (resident.c). It keeps the state in which executions
 * begin, and returns to it when one has ended.
 *
 * *What there is to restore.* A process changes by instructions and by system calls.
 * - Memory. When the state is kept, all private memory that can be written is made read-only. The first write to
 *   a page faults. The fault handler keeps a copy of the page and makes it writable. At the end, all pages with a
 *   copy are copied back. They stay writable: most executions of a program write the same pages, so after a few
 *   executions there are no more faults.
 * - Registers: the general ones, flags, the bases of FS and GS, and everything that XSAVE knows.
 * - Everything that the kernel keeps for a process: files and their positions, mappings, signals, threads, timers,
 *   limits. It changes only by system calls. A filter (seccomp) stops every system call but those of this file,
 *   before it has any effect, and sends SIGSYS. Then the execution is given up: nothing that it did has left this
 *   process, and the server runs it again in a process of its own. This also holds for calls by libraries that are not
 *   wrapped.
 *
 * *Exceptions*, which are emulated here, are calls that end the process, writes to the standard output, which are kept
 * until the execution ends, and what the Rust runtime does before `main`: it looks at its files and at handlers of
 * signals, and ignores SIGPIPE. Names of threads are not set. Memory that the runtime maps for heaps and marks stays mapped when an execution
 * ends, inaccessible until the next one maps it.
 *
 * *What the kernel writes into memory by itself* would fail on a read-only page. It is the area for restartable
 * sequences, which is excluded, and the frames of signals, whose stack is not part of what is restored.
 *
 * An execution is also given up if
 * - its log does not fit into the buffer, as it would have to be handed on before the execution has ended;
 * - it prints much, or writes more than MAX_PAGES pages;
 * - it dies or stops by a signal other than those of a fault;
 * - it asks for the number of its process or thread, which is different in every process.
 * What a given-up execution wrote into the memory that it shares with the server is overwritten before the next
 * execution begins.
 *
 * No such process is used if there is memory that is shared with others, if threads are kernel threads, or if the
 * kernel does not support filters. */

#include "palisade.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

enum { PAGE = 4096, MAX_AREAS = 1024, MAX_PAGES = 1024, MAX_HIDDEN = 128, STACK_BYTES = 1 << 16, REGISTER_BYTES = 1 << 14 };

/* Private memory that can be written. */
struct area {
    uint64_t from, to;
    int protection;
    int is_added;   /* mapped by the runtime during an execution */
    int is_present; /* otherwise, the current execution has not mapped it yet */
    int grows;
};

struct range {
    uint64_t from, to;
};

/* How the kernel describes what happens when a signal arrives. */
struct disposition {
    uint64_t handler, flags, restorer, mask;
};

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
enum { FAULT_SIGNALS = sizeof fault_signals / sizeof *fault_signals };

/* What is not restored itself. */
struct kept {
    struct area areas[MAX_AREAS];
    int area_count;
    uint64_t pages[MAX_PAGES]; /* that have a copy */
    struct area *page_areas[MAX_PAGES];
    int page_count;
    struct range hidden[MAX_HIDDEN]; /* that the current execution has unmapped */
    int hidden_count;
    struct disposition usual[FAULT_SIGNALS]; /* in other processes */
    int emulates, ends;
    uint64_t excluded_from, excluded_to;
    uint64_t context[8];
    uint64_t fs_base, gs_base;
    char registers[REGISTER_BYTES] __attribute__((aligned(64)));
    char signal_stack[STACK_BYTES] __attribute__((aligned(64)));
    char stack[STACK_BYTES] __attribute__((aligned(64)));
    char copies[MAX_PAGES][PAGE] __attribute__((aligned(4096)));
};
#define OWN_PLACE 0x074000000000ull
#define own ((struct kept *)OWN_PLACE)

/* Whether executions of this process are undone. */
char pal_restores;

/* The only system calls that the filter lets pass. */
extern const char pal_own_syscall_made[] __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden pal_own_syscall\n"
        ".globl pal_own_syscall\n"
        ".type pal_own_syscall, @function\n"
        "pal_own_syscall:\n"
        "    movq %rdi, %rax\n"
        "    movq %rsi, %rdi\n"
        "    movq %rdx, %rsi\n"
        "    movq %rcx, %rdx\n"
        "    movq %r8, %r10\n"
        "    movq %r9, %r8\n"
        "    movq 8(%rsp), %r9\n"
        "    syscall\n"
        ".hidden pal_own_syscall_made\n"
        ".globl pal_own_syscall_made\n"
        "pal_own_syscall_made:\n"
        "    ret\n"
        ".size pal_own_syscall, .-pal_own_syscall\n");

/* Keeps where it was called. Returns 0, and 1 when `pal_go_back` is called. */
int pal_keep_place(uint64_t *context) __attribute__((returns_twice));
__attribute__((noreturn)) void pal_go_back(const uint64_t *context);
__asm__(".text\n"
        ".hidden pal_keep_place\n"
        ".globl pal_keep_place\n"
        ".type pal_keep_place, @function\n"
        "pal_keep_place:\n"
        "    movq %rbx, (%rdi)\n"
        "    movq %rbp, 8(%rdi)\n"
        "    movq %r12, 16(%rdi)\n"
        "    movq %r13, 24(%rdi)\n"
        "    movq %r14, 32(%rdi)\n"
        "    movq %r15, 40(%rdi)\n"
        "    movq %rsp, 48(%rdi)\n"
        "    movq (%rsp), %rax\n"
        "    movq %rax, 56(%rdi)\n"
        "    xorl %eax, %eax\n"
        "    ret\n"
        ".size pal_keep_place, .-pal_keep_place\n"
        ".hidden pal_go_back\n"
        ".globl pal_go_back\n"
        ".type pal_go_back, @function\n"
        "pal_go_back:\n"
        "    movq (%rdi), %rbx\n"
        "    movq 8(%rdi), %rbp\n"
        "    movq 16(%rdi), %r12\n"
        "    movq 24(%rdi), %r13\n"
        "    movq 32(%rdi), %r14\n"
        "    movq 40(%rdi), %r15\n"
        "    movq 48(%rdi), %rsp\n"
        "    movq 56(%rdi), %rax\n"
        "    movq %rax, (%rsp)\n"
        "    pushq $0x202\n"
        "    popfq\n"
        "    movl $1, %eax\n"
        "    ret\n"
        ".size pal_go_back, .-pal_go_back\n");

static void copy_bytes(uint64_t to, uint64_t from, uint64_t size)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

/* The current execution cannot be undone: the server runs it again. */
void pal_give_up(void)
{
    pal_resident_gives_up();
    pal_own_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

void pal_unrestorable(void)
{
    if (unlikely(pal_restores)) {
        pal_give_up();
    }
}

/* The log is about to be written to its pipe. */
void pal_hands_on(void)
{
    if (unlikely(pal_restores) && !own->ends) {
        pal_give_up();
    }
}

/* Memory. */

static struct area *area_of(uint64_t address)
{
    for (int i = 0; i < own->area_count; i++) {
        struct area *area = &own->areas[i];
        if (address >= area->from && address < area->to && area->is_present) {
            return area;
        }
    }
    return NULL;
}

static int has_copy(uint64_t page)
{
    for (int i = 0; i < own->page_count; i++) {
        if (own->pages[i] == page) {
            return 1;
        }
    }
    return 0;
}

static void protect(uint64_t from, uint64_t to, int protection)
{
    if (pal_own_syscall(SYS_mprotect, (long)from, (long)(to - from), protection, 0, 0, 0)) {
        pal_give_up();
    }
}

/* A page is about to be written. */
static void keep_page(struct area *area, uint64_t page)
{
    if (own->page_count == MAX_PAGES) {
        pal_give_up();
    }
    copy_bytes((uint64_t)own->copies[own->page_count], page, PAGE);
    own->page_areas[own->page_count] = area;
    own->pages[own->page_count++] = page;
    protect(page, page + PAGE, area->protection);
}

/* Makes the pages of an area accessible: those with a copy can be written, the others only read. */
static void show_area(struct area *area)
{
    area->is_present = 1;
    protect(area->from, area->to, area->protection & ~PROT_WRITE);
    for (uint64_t low = 0, high = 0, at = area->from;;) {
        /* The next page with a copy. They were kept in any order. */
        uint64_t next = UINT64_MAX;
        for (int i = 0; i < own->page_count; i++) {
            uint64_t page = own->pages[i];
            next = page >= at && page < area->to && page < next ? page : next;
        }
        if (next != high || next == UINT64_MAX) {
            if (high > low) {
                protect(low, high, area->protection);
            }
            low = next;
        }
        if (next == UINT64_MAX) {
            return;
        }
        high = at = next + PAGE;
    }
}

/* The runtime maps memory. */
int pal_map_restorable(uint64_t address, size_t size, int flags)
{
    uint64_t to = (address + size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    for (int i = 0; i < own->area_count; i++) {
        struct area *area = &own->areas[i];
        if (area->is_added && !area->is_present && area->from == address && area->to == to) {
            show_area(area);
            return 0;
        }
        if (area->is_added && area->from < to && address < area->to) {
            pal_give_up();
        }
    }
    if (flags & MAP_SHARED || own->area_count == MAX_AREAS) {
        pal_give_up();
    }
    enum { NO_REPLACE = 0x100000 };
    long got = pal_own_syscall(SYS_mmap, (long)address, (long)size, PROT_READ, MAP_ANONYMOUS | NO_REPLACE | flags, -1, 0);
    if (got != (long)address) {
        pal_give_up();
    }
    own->areas[own->area_count++] =
        (struct area){.from = address, .to = to, .protection = PROT_READ | PROT_WRITE, .is_added = 1, .is_present = 1};
    return 0;
}

/* Memory of an area is unmapped. */
void pal_unmap_restorable(uint64_t from, uint64_t to)
{
    if (own->hidden_count == MAX_HIDDEN || !area_of(from)) {
        pal_give_up();
    }
    own->hidden[own->hidden_count++] = (struct range){from, to};
    protect(from, to, PROT_NONE);
}

static int is_hidden(uint64_t address)
{
    for (int i = 0; i < own->hidden_count; i++) {
        if (address >= own->hidden[i].from && address < own->hidden[i].to) {
            return 1;
        }
    }
    return 0;
}

static void show_hidden(void)
{
    for (int i = 0; i < own->hidden_count; i++) {
        struct range *range = &own->hidden[i];
        protect(range->from, range->to, area_of(range->from)->protection & ~PROT_WRITE);
        for (int j = 0; j < own->page_count; j++) {
            if (own->pages[j] >= range->from && own->pages[j] < range->to) {
                protect(own->pages[j], own->pages[j] + PAGE, own->page_areas[j]->protection);
            }
        }
    }
    own->hidden_count = 0;
}

static void restore_memory(void)
{
    show_hidden();
    for (int i = 0; i < own->page_count; i++) {
        uint64_t page = own->pages[i], copy = (uint64_t)own->copies[i];
        uint64_t from = own->excluded_from, to = own->excluded_to;
        if (unlikely(!own->page_areas[i]->is_present)) {
            continue; /* This execution has not mapped it. */
        }
        if (unlikely(from < page + PAGE && to > page)) {
            from = from > page ? from - page : 0;
            to = to < page + PAGE ? to - page : PAGE;
            copy_bytes(page, copy, from);
            copy_bytes(page + to, copy + to, PAGE - to);
        } else {
            copy_bytes(page, copy, PAGE);
        }
    }
    for (int i = 0; i < own->area_count; i++) {
        struct area *area = &own->areas[i];
        if (area->is_added && area->is_present) {
            area->is_present = 0;
            protect(area->from, area->to, PROT_NONE);
        }
    }
}

/* Faults and system calls. */

static void faulted(int signal, siginfo_t *info, void *context)
{
    uint64_t address = (uint64_t)info->si_addr, page = address & ~(uint64_t)(PAGE - 1);
    if (signal == SIGSEGV && info->si_code == SEGV_ACCERR && !is_hidden(page)) {
        struct area *area = area_of(page);
        if (area && !has_copy(page)) {
            keep_page(area, page);
            return;
        }
    }
    /* The stack that the kernel has made grows by being written. */
    for (int i = 0; i < own->area_count; i++) {
        if (own->areas[i].grows && info->si_code > 0 && address < own->areas[i].from && own->areas[i].from - address < 1ull << 31) {
            pal_give_up();
        }
    }
    if (own->emulates || own->ends) {
        pal_give_up();
    }
    pal_crashed(signal, info, context);
}

/* What the program knows of SIGPIPE. The memory is restored. */
static struct disposition of_pipe;

static void change_disposition(int signal, const struct disposition *new, struct disposition *old)
{
    struct disposition now = of_pipe;
    if (signal != SIGPIPE) {
        int i = 0;
        while (i < FAULT_SIGNALS && fault_signals[i] != signal) {
            i++;
        }
        if (new || i == FAULT_SIGNALS) {
            pal_give_up();
        }
        now = own->usual[i];
    } else if (new) {
        if (new->handler != (uint64_t)SIG_IGN && new->handler != (uint64_t)SIG_DFL) {
            pal_give_up();
        }
        of_pipe = *new;
    }
    if (old) {
        *old = now;
    }
}

/* The kernel would write into memory by itself. */
static long look_at_files(struct pollfd *files, uint64_t count, long timeout)
{
    struct pollfd own_files[4];
    if (timeout || count > sizeof own_files / sizeof *own_files) {
        pal_give_up();
    }
    for (uint64_t i = 0; i < count; i++) {
        own_files[i] = files[i];
    }
    long result = pal_own_syscall(SYS_poll, (long)own_files, (long)count, 0, 0, 0, 0);
    for (uint64_t i = 0; i < count; i++) {
        files[i].revents = own_files[i].revents;
    }
    return result;
}

static void called(int signal, siginfo_t *info, void *context)
{
    enum { BY_FILTER = 1 };
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    greg_t fd = registers[REG_RDI], *result = &registers[REG_RAX];
    if (signal != SIGSYS || info->si_code != BY_FILTER || info->si_arch != AUDIT_ARCH_X86_64 || pal.in_handler) {
        pal_give_up();
    }
    own->emulates = 1;
    switch (info->si_syscall) {
    case SYS_exit_group:
        own->emulates = 0;
        pal_end_execution((int)(registers[REG_RDI] & 0xff) << 8);
    case SYS_write:
        if (fd != 1 && fd != 2) {
            pal_give_up();
        }
        pal_resident_prints((const char *)registers[REG_RSI], (size_t)registers[REG_RDX]);
        *result = registers[REG_RDX];
        break;
    case SYS_writev:
        if ((fd != 1 && fd != 2) || registers[REG_RDX] < 0 || registers[REG_RDX] > 16) {
            pal_give_up();
        }
        *result = 0;
        for (greg_t i = 0; i < registers[REG_RDX]; i++) {
            const struct iovec *part = (const struct iovec *)registers[REG_RSI] + i;
            pal_resident_prints(part->iov_base, part->iov_len);
            *result += (greg_t)part->iov_len;
        }
        break;
    case SYS_sched_yield:
        *result = 0;
        break;
    case SYS_poll:
        *result = look_at_files((struct pollfd *)registers[REG_RDI], (uint64_t)registers[REG_RSI], registers[REG_RDX]);
        break;
    case SYS_rt_sigaction:
        change_disposition((int)registers[REG_RDI], (const struct disposition *)registers[REG_RSI],
                           (struct disposition *)registers[REG_RDX]);
        *result = 0;
        break;
    case SYS_prctl:
        if (registers[REG_RDI] != PR_SET_NAME) {
            pal_give_up();
        }
        *result = 0;
        break;
    default:
        pal_give_up();
    }
    own->emulates = 0;
}

/* Everything that is not one of our own system calls sends SIGSYS. */
static int install_filter(void)
{
    uint64_t made = (uint64_t)pal_own_syscall_made;
    enum { LOW = offsetof(struct seccomp_data, instruction_pointer), HIGH = LOW + 4 };
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 8),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)made, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, HIGH),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(made >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return !pal_own_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) &&
           !pal_own_syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0, 0, 0);
}

/* Finding all memory. */

static uint64_t read_hex(const char **at)
{
    uint64_t number = 0;
    for (;; (*at)++) {
        char c = **at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) {
            return number;
        }
        number = number << 4 | (uint64_t)digit;
    }
}

static int begins(const char *text, const char *with)
{
    while (*with && *text == *with) {
        text++;
        with++;
    }
    return !*with;
}

/* A line of /proc/self/maps. Returns 0 if that memory cannot be restored. */
static int add_line(const char *line)
{
    const char *at = line;
    uint64_t from = read_hex(&at);
    at++;
    uint64_t to = read_hex(&at);
    at++;
    if (at[1] != 'w' || (from >= OWN_PLACE && from < OWN_PLACE + sizeof(struct kept))) {
        return 1;
    }
    if (at[3] != 'p') {
        return pal_is_resident_memory(from);
    }
    if (own->area_count == MAX_AREAS) {
        return 0;
    }
    int protection = PROT_WRITE | (at[0] == 'r' ? PROT_READ : 0) | (at[2] == 'x' ? PROT_EXEC : 0), grows = 0;
    for (; *at; at++) {
        grows |= begins(at, "[stack]");
    }
    own->areas[own->area_count++] =
        (struct area){.from = from, .to = to, .protection = protection, .is_present = 1, .grows = grows};
    return 1;
}

static int find_memory(void)
{
    static char text[1 << 15];
    size_t length = 0;
    long fd = pal_own_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0), got;
    while (fd >= 0 && (got = pal_own_syscall(SYS_read, fd, (long)(text + length), (long)(sizeof text - 1 - length), 0, 0, 0)) > 0) {
        length += (size_t)got;
        text[length] = 0;
        size_t from = 0;
        for (size_t i = 0; i < length; i++) {
            if (text[i] == '\n') {
                text[i] = 0;
                if (!add_line(text + from)) {
                    return 0;
                }
                from = i + 1;
            }
        }
        pal_copy(text, text + from, length - from);
        length -= from;
    }
    pal_own_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
    return fd >= 0 && !length && own->area_count;
}

/* The kernel writes into this by itself. Not all linkers find these names if nothing else of the C library has been
 * linked yet, so they are looked up here. */
static void find_sequences(void)
{
    enum { USUAL_BYTES = 32 };
    const ptrdiff_t *offset = pal_next("__rseq_offset");
    const unsigned *size = pal_next("__rseq_size");
    if (offset && size) {
        own->excluded_from = own->fs_base + (uint64_t)*offset;
        own->excluded_to = own->excluded_from + (*size > USUAL_BYTES ? *size : USUAL_BYTES);
    }
}

static void exclude_sequences(void)
{
    for (uint64_t page = own->excluded_from & ~(uint64_t)(PAGE - 1); page < own->excluded_to; page += PAGE) {
        struct area *area = area_of(page);
        if (area) {
            keep_page(area, page);
        }
    }
}

static int is_saved(void)
{
    uint32_t eax = 1, ebx, ecx = 0, edx;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    if (!(ecx >> 27 & 1)) {
        return 0;
    }
    eax = 0xd;
    ecx = 0;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return ebx <= REGISTER_BYTES;
}

/* Prepares this process to undo executions. Returns 0 if that is not possible. */
int pal_begin_restoring(void)
{
    if (pal.token_mode || !is_saved() || pal_map(OWN_PLACE, sizeof(struct kept), MAP_PRIVATE | MAP_NORESERVE)) {
        return 0;
    }
    uint64_t fs_base, gs_base;
    __asm__("rdfsbase %0" : "=r"(fs_base));
    __asm__("rdgsbase %0" : "=r"(gs_base));
    own->fs_base = fs_base;
    own->gs_base = gs_base;
    find_sequences();
    stack_t stack = {.ss_sp = own->signal_stack, .ss_size = sizeof own->signal_stack};
    if (sigaltstack(&stack, NULL)) {
        return 0;
    }
    struct sigaction fault = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER, .sa_sigaction = faulted};
    struct sigaction call = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER, .sa_sigaction = called};
    for (int i = 0; i < FAULT_SIGNALS; i++) {
        pal_syscall(SYS_rt_sigaction, fault_signals[i], 0, (long)&own->usual[i], sizeof(uint64_t), 0, 0);
        sigaction(fault_signals[i], &fault, NULL);
    }
    pal_syscall(SYS_rt_sigaction, SIGPIPE, 0, (long)&of_pipe, sizeof(uint64_t), 0, 0);
    sigaction(SIGSYS, &call, NULL);
    if (!find_memory()) {
        return 0;
    }
    pal_restores = 1;
    return install_filter();
}

/* Keeps the state to which executions return. The caller's frame belongs to it. */
static void keep_state(void)
{
    __asm__ volatile("xsave64 %0" : "=m"(own->registers) : "a"(-1), "d"(-1) : "memory");
    exclude_sequences();
    int page_count = own->page_count;
    for (int i = 0; i < own->area_count; i++) {
        struct area *area = &own->areas[i];
        protect(area->from, area->to, area->protection & ~PROT_WRITE);
        for (int j = 0; j < page_count; j++) {
            if (own->page_areas[j] == area) {
                protect(own->pages[j], own->pages[j] + PAGE, area->protection);
            }
        }
    }
}

/* Calls `begin` for every execution, with memory as it is now. Returns when an execution has begun. */
void pal_each_execution(void (*begin)(void))
{
    if (!pal_keep_place(own->context)) {
        keep_state();
    }
    begin();
}

__attribute__((used, noreturn)) void pal_take_back(int status)
{
    own->ends = 1;
    pal_resident_reports(status);
    restore_memory();
    own->ends = own->emulates = 0;
    uint64_t fs_base = own->fs_base, gs_base = own->gs_base;
    __asm__ volatile("xrstor64 %0" : : "m"(own->registers), "a"(-1), "d"(-1) : "memory");
    __asm__ volatile("wrfsbase %0" : : "r"(fs_base));
    __asm__ volatile("wrgsbase %0" : : "r"(gs_base));
    pal_go_back(own->context);
}

/* The current execution has ended like a process with this status. What comes next must not be on a stack that is
 * restored. */
void pal_end_execution(int status)
{
    char *stack = own->stack + sizeof own->stack - 64;
    __asm__ volatile("movq %0, %%rsp\n"
                     "xorl %%ebp, %%ebp\n"
                     "call pal_take_back\n"
                     : : "r"(stack), "D"(status) : "memory");
    __builtin_unreachable();
}

void pal_exit_process(int code)
{
    if (pal_restores) {
        pal_end_execution((code & 0xff) << 8);
    }
    pal_syscall(SYS_exit_group, code, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}
