/* Switching to another thread.
 *
 * Coroutines: every thread of the program has a kernel thread that the C library made, so its stack and
 * thread-local storage are as usual. But that kernel thread sleeps on a small stack of its own until its
 * thread has ended. The first kernel thread runs all threads, by exchanging the stack pointer and the FS
 * base. This takes a few nanoseconds. It needs the instruction `wrfsbase`, which Linux allows since 5.9
 * (FSGSBASE).
 *
 * A kernel thread does nothing for its thread except exist: the C library has set up the stack and the
 * thread-local storage that the thread uses. So the server starts the kernel threads of the first few threads
 * once, before it forks, and more of them when an execution has had more threads. A forked execution has a copy of
 * their memory, and its threads use that without any kernel threads. This saves a short execution most of its start,
 * and an execution without kernel threads can be undone (restore.c). What the C library allocates for a thread is
 * in an arena of its own (heap.c), so that other addresses do not depend on when this was.
 *
 * Token: without that instruction, every kernel thread runs its own thread and waits for its token in a
 * futex. All of them stay on one core, where passing the token is fastest. */

#include "palisade.h"
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

long pal_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void futex_wait(uint32_t *word, uint32_t value)
{
    pal_syscall(SYS_futex, (long)word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, 0, 0, 0);
}

static void futex_wake(uint32_t *word)
{
    pal_syscall(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}

/* What our own frames leave below the stack pointer depends on other threads. The next frames of the program
 * are in the same place and may not overwrite all of it. So it is cleared when the state of the stack
 * matters. */
void pal_wipe(void);
__asm__(".text\n"
        ".hidden pal_wipe\n"
        ".globl pal_wipe\n"
        ".type pal_wipe, @function\n"
        "pal_wipe:\n"
        "    cmpb $0, pal_wipes(%rip)\n"
        "    je 1f\n"
        "    leaq -2048(%rsp), %rdi\n"
        "    movl $256, %ecx\n"
        "    xorl %eax, %eax\n"
        "    rep stosq\n"
        "1:  ret\n"
        ".size pal_wipe, .-pal_wipe\n");

/* Whether the state of stacks matters. */
char pal_wipes __attribute__((used));

/* Saves the state of the caller and continues another thread. In addition to the callee-saved registers, each
 * thread has its own floating-point control words, for rounding and exceptions. They are loaded only if they
 * differ, because loading takes longer than comparing. */
void pal_exchange(void **save, void *load, uint64_t fs_base);
__asm__(".text\n"
        ".hidden pal_exchange\n"
        ".globl pal_exchange\n"
        ".type pal_exchange, @function\n"
        "pal_exchange:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movl (%rsp), %eax\n"
        "    movzwl 4(%rsp), %ecx\n"
        "    movq %rsp, (%rdi)\n"
        "    wrfsbase %rdx\n"
        "    movq %rsi, %rsp\n"
        "    cmpl (%rsp), %eax\n"
        "    je 1f\n"
        "    ldmxcsr (%rsp)\n"
        "1:  cmpw 4(%rsp), %cx\n"
        "    je 2f\n"
        "    fldcw 4(%rsp)\n"
        "2:  addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size pal_exchange, .-pal_exchange\n");

/* Where a coroutine begins. Its thread is in r12. This frame is the end of the stack for unwinders. */
void pal_coroutine_start(void);
__asm__(".text\n"
        ".hidden pal_coroutine_start\n"
        ".globl pal_coroutine_start\n"
        ".type pal_coroutine_start, @function\n"
        "pal_coroutine_start:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    xorl %ebp, %ebp\n"
        "    movq %r12, %rdi\n"
        "    call pal_thread_main\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size pal_coroutine_start, .-pal_coroutine_start\n");

/* Leaves the stack of a kernel thread to its coroutine and calls `park` on another stack. Returns on the
 * first stack when `park` has returned. */
void pal_leave_stack(struct thread *thread, void **save, void *other_stack, void (*park)(struct thread *));
__asm__(".text\n"
        ".hidden pal_leave_stack\n"
        ".globl pal_leave_stack\n"
        ".type pal_leave_stack, @function\n"
        "pal_leave_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    movq %rsi, %rbx\n"
        "    movq %rsp, (%rsi)\n"
        "    movq %rdx, %rsp\n"
        "    call *%rcx\n"
        "    movq (%rbx), %rsp\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size pal_leave_stack, .-pal_leave_stack\n");

/* Returns to where `pal_leave_stack` was called, from anywhere on the same kernel thread. */
__attribute__((noreturn)) void pal_return_to_stack(void *saved);
__asm__(".text\n"
        ".hidden pal_return_to_stack\n"
        ".globl pal_return_to_stack\n"
        ".type pal_return_to_stack, @function\n"
        "pal_return_to_stack:\n"
        "    movq %rdi, %rsp\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size pal_return_to_stack, .-pal_return_to_stack\n");

/* The kernel gives a new thread the floating-point control words of the thread that starts it. */
static void set_control_words(void *stack)
{
    __asm__ volatile("stmxcsr %0" : "=m"(*(uint32_t *)stack));
    __asm__ volatile("fnstcw %0" : "=m"(*(uint16_t *)((char *)stack + 4)));
}

/* A kernel thread lends its stack to its coroutine and waits until the thread has ended. */
static void park(struct thread *thread)
{
    uint64_t *stack = (uint64_t *)(((uint64_t)thread->kernel_stack_pointer - 512) & ~63ull);
    *--stack = (uint64_t)pal_coroutine_start;
    *--stack = 0;                /* rbp */
    *--stack = 0;                /* rbx */
    *--stack = (uint64_t)thread; /* r12 */
    *--stack = 0;
    *--stack = 0;
    *--stack = 0;
    *--stack = 0;
    set_control_words(stack);
    thread->stack_pointer = stack;
    __atomic_store_n(&thread->token, 1, __ATOMIC_RELEASE);
    futex_wake(&thread->token);
    while (!__atomic_load_n(&thread->released, __ATOMIC_ACQUIRE)) {
        futex_wait(&thread->released, 0);
    }
}

/* Set when a kernel thread is about to end. What the C library still frees then has nothing to do with the
 * program. */
__thread int pal_is_leaving __attribute__((tls_model("initial-exec")));

/* A kernel thread runs its own thread. */
static void run(struct thread *thread)
{
    pal_wait_token(thread);
    pal_thread_main(thread);
}

static void *kernel_thread(void *argument)
{
    struct thread *thread = argument;
    thread->fs_base = (uint64_t)pthread_self();
    thread->stack_end = __builtin_frame_address(0);
    if (!thread->stack_size) {
        /* A stack that the program provides. */
        thread->stack_low = thread->given_stack;
    }
    thread->kernel_id = (int)pal_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    if (pal.token_mode) {
        __atomic_store_n(&thread->released, 1, __ATOMIC_RELEASE);
        futex_wake(&thread->released);
        char here;
        pal_leave_stack(thread, &thread->kernel_stack_pointer, (void *)(((uint64_t)&here - 1024) & ~15ull), run);
        return thread->result;
    }
    /* Signal handlers run on the kernel thread that runs the program. There is no room for them here. */
    uint64_t all = UINT64_MAX;
    pal_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof all, 0, 0);
    pal_leave_stack(thread, &thread->kernel_stack_pointer,
                    (void *)((uint64_t)(thread->park_stack + sizeof thread->park_stack) & ~15ull), park);
    pal_is_leaving = 1;
    return thread->result;
}

static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int (*join)(pthread_t, void **);

/* Looks up functions in advance, so that it does not matter which thread needs them first. */
void pal_begin_threads(void)
{
    create = pal_next("pthread_create");
    join = pal_next("pthread_join");
}

/* Prepares threads up to a number. Called in the server. If it fails, executions start their own kernel threads. */
void pal_prepare_threads(uint32_t count)
{
    static uint32_t first = 1;
    if (pal.token_mode || pal.thread_count != 1) {
        return;
    }
    for (; first <= count && first <= MAX_PREPARED; first++) {
        uint32_t number = first;
        struct thread *thread;
        if (pal_make_thread(number, pal_stack_size(0), &thread)) {
            return;
        }
        thread->number = number;
        if (pal_start_kernel_thread(thread, NULL)) {
            pal_unmake_thread(thread);
            return;
        }
        thread->is_prepared = 1;
        pal_prepared[number] = thread;
    }
}

int pal_start_kernel_thread(struct thread *thread, const pthread_attr_t *attributes)
{
    if (thread->is_prepared) {
        set_control_words(thread->stack_pointer);
        return 0;
    }
    pthread_t pthread;
    pthread_attr_t own;
    if (attributes) {
        /* A shallow copy: what it refers to still belongs to the program. */
        own = *attributes;
    } else {
        pthread_attr_init(&own);
    }
    if (thread->stack_size) {
        pthread_attr_setstack(&own, thread->stack_low, thread->stack_size);
    }
    pal_starts_thread = 1;
    int error = create(&pthread, &own, kernel_thread, thread);
    pal_starts_thread = 0;
    if (error) {
        return error;
    }
    uint32_t *word = pal.token_mode ? &thread->released : &thread->token;
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
        futex_wait(word, 0);
    }
    *word = 0;
    thread->pthread = (pthread_t)thread->fs_base;
    return 0;
}

/* Lets the kernel thread of a thread that has ended end too. */
void pal_release_kernel_thread(struct thread *thread)
{
    if (thread->is_prepared) {
        return;
    }
    if (!pal.token_mode) {
        __atomic_store_n(&thread->released, 1, __ATOMIC_RELEASE);
        futex_wake(&thread->released);
    }
    if (!thread->detached) {
        join(thread->pthread, NULL);
        pal_empty_stack(thread);
    }
}

void pal_wait_token(struct thread *thread)
{
    while (!__atomic_load_n(&thread->token, __ATOMIC_ACQUIRE)) {
        futex_wait(&thread->token, 0);
    }
    thread->token = 0;
}

void pal_switch(struct thread *to)
{
    struct thread *self = pal.self;
    pal.self = to;
    if (likely(!pal.token_mode)) {
        pal_exchange(&self->stack_pointer, to->stack_pointer, to->fs_base);
    } else {
        pal.shared->running = (uint32_t)to->kernel_id;
        __atomic_store_n(&to->token, 1, __ATOMIC_RELEASE);
        futex_wake(&to->token);
        pal_wait_token(self);
    }
}

/* The calling thread has ended. In token mode its kernel thread ends now. */
void pal_switch_forever(struct thread *to)
{
    struct thread *self = pal.self;
    if (!pal.token_mode) {
        pal.self = to;
        pal_exchange(&self->stack_pointer, to->stack_pointer, to->fs_base);
        __builtin_trap();
    }
    pal_is_leaving = 1;
    pal.self = to;
    pal.shared->running = (uint32_t)to->kernel_id;
    __atomic_store_n(&to->token, 1, __ATOMIC_RELEASE);
    futex_wake(&to->token);
    if (self->number == 0) {
        /* The first kernel thread stays, because otherwise the process would look dead. */
        for (;;) {
            pal_wait_token(self);
        }
    }
    pal_return_to_stack(self->kernel_stack_pointer);
}
