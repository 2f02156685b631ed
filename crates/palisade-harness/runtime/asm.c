/* The functions that rewritten inline assembly calls. The code around a call does not expect it, and other
 * threads may run in between. So all registers are preserved, including vector registers. */

#include "palisade.h"
#include <cpuid.h>

/* Whether `xsave` may be used. Without it, there are no vector registers beyond those of SSE. */
int pal_has_xsave __attribute__((used));

__attribute__((constructor(101))) static void look(void)
{
    unsigned a, b, c, d;
    pal_has_xsave = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE);
}

static __attribute__((used)) void pal_asm_fence(uint64_t address, uint64_t place)
{
    (void)address;
    pal_event(0, HEAD(K_FENCE, O_SEQ_CST, 0), place);
}

static __attribute__((used)) void pal_asm_store_fence(uint64_t address, uint64_t place)
{
    (void)address;
    pal_event(0, HEAD(K_STORE_FENCE, O_RELEASE, 0), place);
}

/* Something that cannot be followed. Only the fact that it happens is reported. */
static __attribute__((used)) void pal_asm_unknown(uint64_t address, uint64_t place)
{
    (void)address;
    if (!pal.quiet) {
        pal_note(N_ASSEMBLY, place);
    }
}

/* In terms of the language, a locked instruction in assembly synchronises like a sequentially consistent
 * one. */
#define LOCKED(size)                                                                               \
    static __attribute__((used)) void pal_asm_locked##size(uint64_t address, uint64_t place)               \
    {                                                                                              \
        pal_event(address, HEAD(K_LOCKED, O_SEQ_CST, size), place);                                \
    }
LOCKED(1)
LOCKED(2)
LOCKED(4)
LOCKED(8)
LOCKED(16)

/* A search through all executions has to know what a step touches before it is taken. Here it does not. */
static void pal_not_searched(uint64_t place)
{
    if (pal.command.flags & EXPLORE && !pal.quiet && !pal_is_alone()) {
        pal_note_about(N_CALL, 0, place);
    }
}

/* Functions of Rust's standard library that are precompiled and order what threads do (src/standard.rs).
 *
 * A function that waits gives up a lock when it begins, and has taken it when it returns, each with a locked
 * instruction. */
static __attribute__((used)) void pal_wait(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)before, (void)nothing;
    pal_not_searched(place);
    pal_event(object, HEAD(K_LOCKED, O_ACQ_REL, 4), place);
}

/* A function that takes a lock reads it first. */
static __attribute__((used)) void pal_take_begins(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)before, (void)nothing;
    pal_not_searched(place);
    pal_event(object, HEAD(K_LOAD, O_RELAXED, 4), place);
}

static __attribute__((used)) void pal_once_begins(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)before, (void)nothing, (void)place;
    pal.self->once[pal.self->once_count++ % MAX_ONCE] = object;
}

/* If everything had been done before, it was only read. Otherwise it was written in the step before. */
static __attribute__((used)) void pal_once_ends(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)nothing;
    pal.self->once_count--;
    if (*(volatile uint32_t *)object == (uint32_t)before) {
        pal_event(object, HEAD(K_LOAD, O_ACQUIRE, 4), place);
    } else {
        pal_not_searched(place);
        pal_also(object, HEAD(K_LOCKED, O_ACQ_REL, 4), place);
    }
}

/* `thread::scope` counts its threads in one word of an object. The last thread that ends wakes up the one that waits,
 * and that one reads the count with acquire semantics, in code that is followed. Counting down releases what the thread
 * has done. Which word it is depends on the compiler: it is the one that changes when the scope gets a thread. No other
 * thread runs in between. */
enum { SCOPE_WORDS = 3 };
static uint64_t scope_before[SCOPE_WORDS];
static int scope_counter = -1;

static __attribute__((used)) void pal_scope_enters(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)before, (void)nothing;
    pal_not_searched(place);
    for (int i = 0; i < SCOPE_WORDS; i++) {
        scope_before[i] = ((volatile uint64_t *)object)[i];
    }
}

static __attribute__((used)) void pal_scope_entered(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)before, (void)nothing, (void)place;
    for (int i = 0; i < SCOPE_WORDS; i++) {
        if (((volatile uint64_t *)object)[i] == scope_before[i] + 1) {
            scope_counter = i;
        }
    }
}

static __attribute__((used)) void pal_scope_leaves(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)before, (void)nothing;
    pal_not_searched(place);
    if (scope_counter >= 0) {
        pal_event(object + 8 * (uint64_t)scope_counter, HEAD(K_LOCKED, O_RELEASE, 8), place);
    } else if (!pal.quiet) {
        pal_note_about(N_CALL, 0, place);
    }
}

/* The thread that waited may have freed the object. */
static __attribute__((used)) void pal_scope_left(uint64_t object, uint64_t before, uint64_t nothing, uint64_t place)
{
    (void)object, (void)before, (void)nothing, (void)place;
}

/* Whether the calling thread is about to wake up others because it has done what is to be done once. It has
 * written that to the object already. */
int pal_is_once(uint64_t object)
{
    for (unsigned i = 0; i < pal.self->once_count && i < MAX_ONCE; i++) {
        if (pal.self->once[i] == object) {
            return 1;
        }
    }
    return 0;
}

/* What src/link.rs generates: the object, its value before the call, and the place of the call are above the
 * return address. The third argument is lost on the way. */
#define OBJECT_ABOVE "    movq 136(%rsp), %rdi\n    movq 144(%rsp), %rsi\n    movq 160(%rsp), %rcx\n"

/* The address, if there is one, is above the return address. */
#define ADDRESS_ABOVE "    movq 136(%rsp), %rdi\n    movq 128(%rsp), %rsi\n"
/* What src/audit.rs generates: the address is in its register, and the code and the count are above the
 * return address. The third argument is lost on the way. */
#define ADDRESS_IN_REGISTER "    movq %rsi, %r8\n    movq 136(%rsp), %rsi\n    movq 144(%rsp), %r9\n    movq 128(%rsp), %rcx\n"

/* What src/link.rs generates: the name of a function is above the return address, and above that is the
 * place of the call. The third argument is lost on the way. The fourth is the address of the saved
 * registers. */
#define NAME_ABOVE "    movq 136(%rsp), %rdi\n    movq 144(%rsp), %rsi\n    movq %rsp, %rcx\n"

#define STUB(name, function, arguments)                                                                       \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                       \
            "    pushfq\n    pushq %rax\n    pushq %rcx\n    pushq %rdx\n    pushq %rbx\n"         \
            "    pushq %rbp\n    pushq %rsi\n    pushq %rdi\n    pushq %r8\n    pushq %r9\n"       \
            "    pushq %r10\n    pushq %r11\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"     \
            "    pushq %r15\n"                                                                     \
            "    cld\n"                                                                            \
            arguments                                                                              \
            "    movq %rsp, %rbx\n"                                                                \
            "    subq $3072, %rsp\n"                                                               \
            "    andq $-64, %rsp\n"                                                                \
            "    cmpl $0, pal_has_xsave(%rip)\n"                                                   \
            "    je 1f\n"                                                                          \
            "    movq $0, 512(%rsp)\n    movq $0, 520(%rsp)\n    movq $0, 528(%rsp)\n"             \
            "    movq $0, 536(%rsp)\n    movq $0, 544(%rsp)\n    movq $0, 552(%rsp)\n"             \
            "    movq $0, 560(%rsp)\n    movq $0, 568(%rsp)\n"                                     \
            "    movl $0xe7, %eax\n    xorl %edx, %edx\n"                                          \
            "    xsave (%rsp)\n"                                                                   \
            "    call " function "\n"                                                              \
            "    movl $0xe7, %eax\n    xorl %edx, %edx\n"                                          \
            "    xrstor (%rsp)\n"                                                                  \
            "    jmp 2f\n"                                                                         \
            "1:  fxsave (%rsp)\n"                                                                  \
            "    call " function "\n"                                                              \
            "    fxrstor (%rsp)\n"                                                                 \
            "2:  movq %rbx, %rsp\n"                                                                \
            "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %r11\n"          \
            "    popq %r10\n    popq %r9\n    popq %r8\n    popq %rdi\n    popq %rsi\n"            \
            "    popq %rbp\n    popq %rbx\n    popq %rdx\n    popq %rcx\n    popq %rax\n"          \
            "    popfq\n    ret\n.size " name ", .-" name "\n");

STUB("palisade_asm_fence", "pal_asm_fence", ADDRESS_ABOVE)
STUB("palisade_asm_store_fence", "pal_asm_store_fence", ADDRESS_ABOVE)
STUB("palisade_asm_unknown", "pal_asm_unknown", ADDRESS_ABOVE)
STUB("palisade_asm_locked1", "pal_asm_locked1", ADDRESS_ABOVE)
STUB("palisade_asm_locked2", "pal_asm_locked2", ADDRESS_ABOVE)
STUB("palisade_asm_locked4", "pal_asm_locked4", ADDRESS_ABOVE)
STUB("palisade_asm_locked8", "pal_asm_locked8", ADDRESS_ABOVE)
STUB("palisade_asm_locked16", "pal_asm_locked16", ADDRESS_ABOVE)
STUB("palisade_call", "pal_call", NAME_ABOVE)
STUB("palisade_wait_begins", "pal_wait", OBJECT_ABOVE)
STUB("palisade_wait_ends", "pal_wait", OBJECT_ABOVE)
STUB("palisade_take_begins", "pal_take_begins", OBJECT_ABOVE)
STUB("palisade_once_begins", "pal_once_begins", OBJECT_ABOVE)
STUB("palisade_once_ends", "pal_once_ends", OBJECT_ABOVE)
STUB("palisade_scope_enters", "pal_scope_enters", OBJECT_ABOVE)
STUB("palisade_scope_entered", "pal_scope_entered", OBJECT_ABOVE)
STUB("palisade_scope_leaves", "pal_scope_leaves", OBJECT_ABOVE)
STUB("palisade_scope_left", "pal_scope_left", OBJECT_ABOVE)
STUB("pal_audit_followed", "pal_audit_follow", ADDRESS_IN_REGISTER)
