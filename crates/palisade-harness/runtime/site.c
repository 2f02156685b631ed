/* Call sites: which part of the program has called the library's code that makes an access.
 *
 * Without optimisation, `x.load()` of C++ is a call of a function in a header of the library, and all loads of the
 * program return to the same address in it. So a function whose source is a file of a library calls `palisade_enters`
 * at its start and `palisade_leaves` before it returns (src/audit.rs). An access in such a function is logged with a
 * call site in place of its return address: a number that stands for the return addresses from the access up to the
 * first caller outside these functions. The number is a hash of them, so it is the same in all executions. The
 * first time that a call site occurs in an execution, its addresses are logged.
 *
 * A function may be left without a call of `palisade_leaves`: by an exception, by `longjmp`, or by a jump to another
 * function. What was entered further down the stack than the current frame is then removed later. An entry counts only
 * for a return address within its function. So an entry that is out of date is not taken for a caller, unless it is of
 * the same function.
 *
 * Precompiled functions of the C++ library that may wait, such as `std::thread::join`, call the runtime themselves. The
 * program announces calls of such functions by `palisade_outside`, right before the call. As long as the return address is
 * where that call has put it, the function has not returned. */

#include "palisade.h"

#define GENERAL __attribute__((target("general-regs-only")))

GENERAL static void leave(struct thread *self, uint64_t slot)
{
    while (self->entered_count && self->entered[self->entered_count - 1].slot <= slot) {
        self->entered_count--;
    }
}

/* `slot` is where the return address is on the stack. */
GENERAL __attribute__((used)) void pal_enters(uint64_t from, uint64_t size, const uint64_t *slot)
{
    struct thread *self = pal.self;
    if (!self) {
        return;
    }
    leave(self, (uint64_t)slot);
    if (self->entered_count < MAX_ENTERED) {
        self->entered[self->entered_count++] = (struct entered){.slot = (uint64_t)slot, .caller = *slot, .from = from, .size = size};
    }
}

GENERAL __attribute__((used)) void pal_leaves(uint64_t slot)
{
    if (pal.self) {
        leave(pal.self, slot);
    }
}

/* The call is the next instruction, and puts its return address where the one of this call is. */
GENERAL __attribute__((used)) void pal_calls_outside(const unsigned char *next, uint64_t slot)
{
    struct thread *self = pal.self;
    if (self) {
        /* With a displacement, or through a table. */
        self->outside = *next == 0xe8 ? (uint64_t)next + 5 : *next == 0xff ? (uint64_t)next + 6 : 0;
        self->outside_slot = slot;
    }
}

#define SAVE "    pushq %rax\n    pushq %rcx\n    pushq %rdx\n    pushq %rsi\n    pushq %rdi\n    pushq %r8\n    pushq %r9\n    pushq %r10\n    pushq %r11\n"
/* Registers that the program does not use may hold what depends on other threads. It must not stay on the stack, where
 * frames that begin later may not overwrite it: the contents of frames are part of a thread's state (spin.c). */
#define POP(name) "    popq %" name "\n    movq $0, -8(%rsp)\n"
#define RESTORE POP("r11") POP("r10") POP("r9") POP("r8") POP("rdi") POP("rsi") POP("rdx") POP("rcx") POP("rax") "    ret\n"

/* Above the return address are the size of the rest of the function, and its own return address. Only caller-saved
 * registers have to be saved; flags mean nothing at the start of a function. */
__asm__(".text\n.globl palisade_enters\n.type palisade_enters, @function\npalisade_enters:\n" SAVE
        "    movq 72(%rsp), %rdi\n    movq 80(%rsp), %rsi\n    leaq 88(%rsp), %rdx\n"
        "    call pal_enters\n" RESTORE ".size palisade_enters, .-palisade_enters\n");

__asm__(".text\n.globl palisade_leaves\n.type palisade_leaves, @function\npalisade_leaves:\n" SAVE
        "    leaq 80(%rsp), %rdi\n"
        "    call pal_leaves\n" RESTORE ".size palisade_leaves, .-palisade_leaves\n");

__asm__(".text\n.globl palisade_outside\n.type palisade_outside, @function\npalisade_outside:\n" SAVE
        "    movq 72(%rsp), %rdi\n    leaq 72(%rsp), %rsi\n"
        "    call pal_calls_outside\n" RESTORE ".size palisade_outside, .-palisade_outside\n");

/* Call sites that were logged in this execution: a set by hashing. If it is full, others are logged again. */
enum { MAX_SITES = 1 << 10, MAX_CALLS = 12 };
static uint64_t logged[MAX_SITES];

static int is_new(uint64_t site)
{
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t *slot = &logged[(site + i) % MAX_SITES];
        if (*slot == site) {
            return 0;
        }
        if (!*slot) {
            *slot = site;
            return 1;
        }
    }
    return 1;
}

static __attribute__((noinline)) uint64_t site_of(uint64_t place)
{
    struct thread *self = pal.self;
    uint64_t calls[MAX_CALLS], count = 1, hash = 0x9e3779b97f4a7c15ull;
    calls[0] = place;
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    if (self->outside && self->outside_slot > here && self->outside_slot < (uint64_t)self->stack_end && *(const uint64_t *)self->outside_slot == self->outside && pal_is_in_library(place)) {
        calls[count++] = self->outside;
    }
    for (unsigned i = self->entered_count; i-- && count < MAX_CALLS;) {
        const struct entered *entered = &self->entered[i];
        if (calls[count - 1] - entered->from <= entered->size) {
            calls[count++] = entered->caller;
        }
    }
    if (count == 1) {
        return place;
    }
    for (uint64_t i = 0; i < count; i++) {
        __uint128_t product = (__uint128_t)(hash ^ calls[i]) * 0xa0761d6478bd642full;
        hash = (uint64_t)(product >> 64) ^ (uint64_t)product;
    }
    uint64_t site = (hash & (SITE - 1)) | SITE;
    if (pal.is_served && is_new(site)) {
        for (uint64_t i = 0; i < count; i++) {
            pal_log(site | HEAD(K_SITE, O_PLAIN, i), (calls[i] & ADDRESS_BITS) | self->tag);
        }
    }
    return site;
}

uint64_t pal_site_of(uint64_t place)
{
    if (place & SITE) {
        return place;
    }
    uint64_t site = site_of(place);
    /* What is left on the stack depends on whether the call site was new. */
    pal_wipe();
    return site;
}

/* A place at which a thread may wait. It may be in a precompiled function. */
uint64_t pal_outside(uint64_t place)
{
    return pal.self->outside ? pal_site_of(place) : place;
}

/* Where the program ends, given as a return address: the address before it, as it is reported. */
uint64_t pal_crash_at(uint64_t place)
{
    return (pal.self ? pal_at(place) & ADDRESS_BITS : place) - 1;
}
