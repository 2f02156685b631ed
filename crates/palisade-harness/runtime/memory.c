/* Where everything is in memory.
 *
 * A schedule can be repeated only if a step touches the same addresses again, whatever the other threads have
 * done in between. So no address is left to the kernel: its answers to `mmap` depend on everything that was
 * mapped before, on the stack limit and on the machine. Every thread has its own ranges of addresses,
 * determined by its number: for its stack and thread data, for its heap (heap.c), and for what it maps
 * itself. The log and the schedule have fixed addresses too.
 *
 * The ranges are in places that Linux on x86-64 does not use by itself:
 * - Programs with fixed addresses, and their `brk` area, are at the bottom.
 * - Libraries are just above a third of the address space (0x2aaa...) if the stack is unlimited, and at the
 *   top otherwise.
 * - Other programs are just above two thirds of it (0x5555...).
 *
 * Randomisation moves these up by at most 16 TiB, or down from the top by as much. If an address is in use
 * nevertheless, nothing is replaced, and the caller gets an error.
 *
 * The first thread also runs on a stack of ours, because the start of the kernel's stack depends on the size
 * of the environment. For the same reason, it gets copies of its arguments, each aligned: how many steps it takes to
 * read a string depends on the alignment. */

#include "palisade.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MAPPINGS 0x200000000000ull
#define MAPPING_RANGE (1ull << 31)
#define ARGUMENTS 0x075000000000ull

enum {
    PAGE = 4096,
    MIN_STACK = 8 << 20, /* unless the program asks for less */
    OVERHEAD = 128 << 10,   /* thread-local storage and our own frames are on the stack too */
    MAX_TRIES = 64
};
/* The size if the stack is unlimited. */
#define LARGE_STACK (1ull << 30)

/* Stacks end one MiB below the end of their range. Most of them then use no whole large page, and cost little
 * memory. */
#define STACK_TOP(number) (STACKS + (number) * STACK_RANGE + STACK_RANGE - (1ull << 20))

struct slot {
    struct thread thread;
    struct look looks[MAX_LOOKS];
};

int pal_map(uint64_t address, size_t size, int flags)
{
    if (unlikely(pal_restores)) {
        return pal_map_restorable(address, size, flags);
    }
    long got = pal_syscall(SYS_mmap, (long)address, (long)size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | flags, -1, 0);
    if (got == (long)address) {
        return 0;
    }
    if (got < 0 && got > -4096) {
        return (int)-got;
    }
    /* A kernel that does not know the flag has mapped it elsewhere. */
    pal_syscall(SYS_munmap, got, (long)size, 0, 0, 0, 0);
    return EEXIST;
}

void pal_address_in_use(const char *what, uint64_t address)
{
    char text[160];
    snprintf(text, sizeof text, "the address %#llx is in use, but %s must be placed there so that executions can be repeated", (unsigned long long)address, what);
    pal_stop(R_INTERNAL, text);
}

static size_t whole_pages(size_t size)
{
    return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

struct thread *pal_prepared[MAX_PREPARED + 1];

/* The stack of a prepared thread gets another size. Its upper end stays where it is. */
static int resize(struct thread *thread, size_t stack)
{
    uint64_t end = (uint64_t)thread->stack_low + thread->stack_size, low = end - stack;
    if (stack > thread->stack_size) {
        if (pal_map(low, stack - thread->stack_size, MAP_PRIVATE | MAP_NORESERVE | MAP_STACK)) {
            return EAGAIN;
        }
    } else if (stack < thread->stack_size) {
        if (pal_restores) {
            pal_unmap_restorable((uint64_t)thread->stack_low, low);
        } else {
            pal_syscall(SYS_munmap, (long)thread->stack_low, (long)(thread->stack_size - stack), 0, 0, 0, 0);
        }
    }
    thread->stack_low = (char *)low;
    thread->stack_size = stack;
    return 0;
}

/* Makes a thread with its stack. If the program provides the stack, `size` is 0. */
int pal_make_thread(uint32_t number, size_t size, struct thread **made)
{
    uint64_t top = STACK_TOP(number);
    size_t control = whole_pages(sizeof(struct slot)), stack = size ? whole_pages(size) + OVERHEAD : 0;
    if (stack + control > STACK_RANGE - (2ull << 20)) {
        return EAGAIN;
    }
    struct thread *prepared = number <= MAX_PREPARED ? pal_prepared[number] : NULL;
    if (prepared) {
        pal_prepared[number] = NULL;
        if (size) {
            *made = prepared;
            return resize(prepared, stack);
        }
        pal_unmake_thread(prepared);
    }
    uint64_t low = top - control - stack;
    int error = pal_map(low, stack + control, MAP_PRIVATE | MAP_NORESERVE | MAP_STACK);
    if (error == EEXIST) {
        pal_address_in_use("the stack of a thread", low);
    }
    if (error) {
        return EAGAIN;
    }
    struct slot *slot = (struct slot *)(top - control);
    slot->thread.looks = slot->looks;
    slot->thread.stack_low = (char *)low;
    slot->thread.stack_size = stack;
    *made = &slot->thread;
    return 0;
}

void pal_unmake_thread(struct thread *thread)
{
    uint64_t end = STACK_TOP(thread->number), low = end - whole_pages(sizeof(struct slot)) - thread->stack_size;
    pal_drop_marks(thread);
    pal_syscall(SYS_munmap, (long)low, (long)(end - low), 0, 0, 0, 0);
}

/* Frees the stack of a thread that has been joined. Its address range stays reserved for it. */
void pal_empty_stack(struct thread *thread)
{
    enum { KEPT = 64 << 10 };
    if (thread->stack_size > KEPT) {
        pal_syscall(SYS_madvise, (long)thread->stack_low, (long)(thread->stack_size - KEPT), MADV_DONTNEED, 0, 0, 0);
    }
}

/* The size in the default attributes; 0 if it is not known. */
static size_t usual;

EXPORT int pthread_setattr_default_np(const pthread_attr_t *attributes)
{
    static int (*next)(const pthread_attr_t *);
    if (!next) {
        next = pal_next("pthread_setattr_default_np");
    }
    usual = 0;
    return next(attributes);
}

/* The size of a stack, given the size in the thread's attributes. The default is the stack limit. A default
 * outside our limits is moved into them. */
size_t pal_stack_size(size_t requested)
{
    pthread_attr_t attributes;
    if (!usual && !pthread_getattr_default_np(&attributes)) {
        pthread_attr_getstacksize(&attributes, &usual);
        pthread_attr_destroy(&attributes);
    }
    size_t size = requested ? requested : usual;
    size = size == usual && size < MIN_STACK ? MIN_STACK : size;
    return size == usual && size > LARGE_STACK ? LARGE_STACK : size;
}

/* The first thread. A program first calls `__libc_start_main`, which does not return. */

typedef int start_fn(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

static uint64_t first_low, first_top;

/* Calls the C library with six arguments in registers and the seventh on the stack, on another stack. */
__attribute__((noreturn)) void pal_start_on(void *stack, start_fn *start, const uint64_t *arguments);
__asm__(".text\n"
        ".hidden pal_start_on\n"
        ".globl pal_start_on\n"
        ".type pal_start_on, @function\n"
        "pal_start_on:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq %rdi, %rsp\n"
        "    movq %rsi, %rax\n"
        "    movq %rdx, %r10\n"
        "    xorl %ebp, %ebp\n"
        "    xorl %ebx, %ebx\n"
        "    xorl %r12d, %r12d\n"
        "    xorl %r13d, %r13d\n"
        "    xorl %r14d, %r14d\n"
        "    xorl %r15d, %r15d\n"
        "    movq (%r10), %rdi\n"
        "    movq 8(%r10), %rsi\n"
        "    movq 16(%r10), %rdx\n"
        "    movq 24(%r10), %rcx\n"
        "    movq 32(%r10), %r8\n"
        "    movq 40(%r10), %r9\n"
        "    pushq $0\n"
        "    pushq 48(%r10)\n"
        "    call *%rax\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size pal_start_on, .-pal_start_on\n");

static size_t padded(size_t size)
{
    enum { ALIGNMENT = 16 };
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* Copies of the arguments and of the environment, as the kernel passes them: one list of pointers after the other. The
 * strings of the arguments come before the lists, so that their addresses do not depend on the environment. */
static char **fixed_arguments(size_t count, char **arguments)
{
    size_t pointers = count + 1, before = 0, after = 0;
    while (arguments[pointers++]) {
    }
    for (size_t i = 0; i < pointers; i++) {
        size_t size = arguments[i] ? padded(pal_length(arguments[i]) + 1) : 0;
        *(i < count ? &before : &after) += size;
    }
    size_t lists = padded(pointers * sizeof *arguments);
    if (pal_map(ARGUMENTS, whole_pages(before + lists + after), MAP_PRIVATE)) {
        return arguments;
    }
    char *to = (char *)ARGUMENTS, **copies = (char **)(to + before);
    for (size_t i = 0; i < pointers; i++) {
        to += i == count ? lists : 0;
        copies[i] = arguments[i] ? to : NULL;
        if (arguments[i]) {
            size_t size = pal_length(arguments[i]) + 1;
            pal_copy(to, arguments[i], size);
            to += padded(size);
        }
    }
    return copies;
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, void (*init)(void), void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end)
{
    start_fn *next = (start_fn *)pal_next("__libc_start_main");
    struct rlimit limit = {MIN_STACK, MIN_STACK};
    pal_syscall(SYS_getrlimit, RLIMIT_STACK, (long)&limit, 0, 0, 0, 0);
    uint64_t size = limit.rlim_cur > LARGE_STACK ? LARGE_STACK : whole_pages(limit.rlim_cur);
    size = size < MIN_STACK ? MIN_STACK : size;
    uint64_t top = STACK_TOP(0);
    for (; size >= MIN_STACK; size /= 2) {
        if (!pal_map(top - size, size, MAP_PRIVATE | MAP_NORESERVE | MAP_STACK)) {
            first_low = top - size;
            first_top = top;
            arguments = fixed_arguments((size_t)count, arguments);
            uint64_t all[] = {(uint64_t)main, (uint64_t)count, (uint64_t)arguments, (uint64_t)init, (uint64_t)fini, (uint64_t)rtld_fini, (uint64_t)stack_end};
            pal_start_on((void *)top, next, all);
        }
    }
    /* It can also run on the kernel's stack. The addresses on its stack then differ between processes. */
    return next(main, count, arguments, init, fini, rtld_fini, stack_end);
}

/* Where the stack of the first thread is. */
void pal_first_stack(struct thread *thread, char **arguments)
{
    if (first_top) {
        thread->stack_low = (char *)first_low;
        thread->stack_size = first_top - first_low;
        thread->stack_end = (char *)first_top;
        return;
    }
    struct rlimit limit = {MIN_STACK, MIN_STACK};
    pal_syscall(SYS_getrlimit, RLIMIT_STACK, (long)&limit, 0, 0, 0, 0);
    thread->stack_end = (char *)arguments;
    thread->stack_low = thread->stack_end - (limit.rlim_cur > LARGE_STACK ? LARGE_STACK : limit.rlim_cur);
}

/* What a thread can query about its stack. The C library believes that our stacks were provided by the
 * program, and those have no guard. Ours effectively have one, because nothing is mapped below them. */
EXPORT int pthread_getattr_np(pthread_t pthread, pthread_attr_t *attributes)
{
    static int (*next)(pthread_t, pthread_attr_t *);
    struct thread *thread = pal_thread_of(pthread);
    if (thread && thread->stack_size && !thread->number) {
        int error = pthread_attr_init(attributes);
        error = error ? error : pthread_attr_setstack(attributes, thread->stack_low, thread->stack_size);
        return error ? error : pthread_attr_setguardsize(attributes, PAGE);
    }
    if (!next) {
        next = pal_next("pthread_getattr_np");
    }
    int error = next(pthread, attributes);
    if (!error && thread && thread->is_prepared) {
        error = pthread_attr_setstack(attributes, thread->stack_low, thread->stack_size);
    }
    if (!error && thread && thread->stack_size) {
        error = pthread_attr_setguardsize(attributes, PAGE);
    }
    return error;
}

/* Mappings of the program itself. */

static uint64_t mapped[MAX_THREADS];

static long map_somewhere(size_t size, int protection, int flags, int fd, off_t offset)
{
    struct thread *self = pal.self ? pal.self : pal_first_thread();
    uint64_t from = MAPPINGS + self->number * MAPPING_RANGE, end = from + MAPPING_RANGE, *next = &mapped[self->number];
    size_t bytes = whole_pages(size) + PAGE;
    if (size && bytes > size && bytes < MAPPING_RANGE) {
        *next = *next ? *next : from;
        for (int tries = 0; tries < MAX_TRIES; tries++) {
            if (end - *next < bytes) {
                *next = from;
            }
            uint64_t address = *next;
            *next += bytes;
            long got = pal_syscall(SYS_mmap, (long)address, (long)size, protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
            if (got == (long)address || (got < 0 && got != -EEXIST)) {
                return got;
            }
            if (got > 0) {
                pal_syscall(SYS_munmap, got, (long)size, 0, 0, 0, 0);
            }
        }
    }
    return pal_syscall(SYS_mmap, 0, (long)size, protection, flags, fd, offset);
}

static void *answer(long got)
{
    if (got < 0 && got > -4096) {
        errno = (int)-got;
        return MAP_FAILED;
    }
    return (void *)got;
}

static void *map(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    int is_decided = address || flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT | MAP_HUGETLB);
    return answer(is_decided ? pal_syscall(SYS_mmap, (long)address, (long)size, protection, flags, fd, offset)
                             : map_somewhere(size, protection, flags, fd, offset));
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    pal_maps(protection, flags, fd, CALLER);
    return map(address, size, protection, flags, fd, offset);
}

EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    pal_maps(protection, flags, fd, CALLER);
    return map(address, size, protection, flags, fd, offset);
}

EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    if (!old_size) {
        /* The pages stay at the old address, too. */
        pal_maps_twice(CALLER);
    } else {
        pal_replaces(CALLER);
    }
    if ((flags & MREMAP_FIXED) || !(flags & MREMAP_MAYMOVE)) {
        return answer(pal_syscall(SYS_mremap, (long)old, (long)old_size, (long)size, flags, (long)to, 0));
    }
    long got = pal_syscall(SYS_mremap, (long)old, (long)old_size, (long)size, flags & ~MREMAP_MAYMOVE, 0, 0);
    if (got != -ENOMEM) {
        return answer(got);
    }
    /* It has to move, to an address that is chosen as for a new mapping. */
    long place = map_somewhere(size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place < 0) {
        return answer(place);
    }
    got = pal_syscall(SYS_mremap, (long)old, (long)old_size, (long)size, flags | MREMAP_FIXED, place, 0);
    if (got < 0) {
        pal_syscall(SYS_munmap, place, (long)size, 0, 0, 0, 0);
    }
    return answer(got);
}
