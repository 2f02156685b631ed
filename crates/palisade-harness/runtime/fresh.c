/* Reads of memory that was never written.
 *
 * New memory is filled with a pattern: blocks from `malloc` and its relatives (heap.c), and frames of functions that
 * take an address in them (src/audit/fresh.rs). A load that gets the pattern from a heap or a stack reads what nobody has
 * written. So nothing needs to be known about the stores: also those of libraries, of the kernel and of instructions that
 * are not followed replace the pattern. Each thread sees the pattern until a store is in its own buffer or has reached
 * memory, as it sees all other values.
 *
 * These loads are checked:
 * - plain and volatile ones of 4 bytes or more, if all of them are part of the pattern. A byte may belong to a copy that
 *   the program makes byte by byte, and padding may be copied in this way.
 * - atomic ones of any size. If they are short, the 4 bytes around them must be part of the pattern.
 *
 * Functions that copy memory, and copies of structs, are not loads in this sense: the pattern is copied with the rest, and
 * found when the copy is read. A load that comes right before a store to the same address is not reported either.
 * clang makes such pairs to set some bits of a bit-field. So a plain load is reported at the next step of its thread.
 *
 * Compilers that optimise copy structs by loads, and so does rustc always. So nothing is filled if any part of the
 * program was compiled in this way. */

#include "palisade.h"
#include <dlfcn.h>

/* Distinct bytes that are not part of any text in UTF-8. src/audit/fresh.rs has the same number. */
#define FRESH 0xc1f9f6faull
enum { PERIOD = 4, MAX_FILLED = 16 << 10 };

static int is_off = 1;

/* Such parts of the program have a symbol of this name. */
__attribute__((constructor(101))) static void look(void)
{
    is_off = dlsym(RTLD_DEFAULT, "palisade_ignores_fresh") != NULL;
}

/* A new block. There is room for a multiple of the pattern. */
void *pal_fresh(void *memory, size_t size)
{
    if (memory && !is_off) {
        uint32_t *to = memory;
        size_t count = (size < MAX_FILLED ? size + PERIOD - 1 : MAX_FILLED) / PERIOD;
        __asm__ volatile("rep stosl" : "+D"(to), "+c"(count) : "a"((uint32_t)FRESH) : "memory");
    }
    return memory;
}

static int is_mapped(uint64_t address, uint64_t size)
{
    if (address - ARENAS < HEAP_BYTES) {
        return pal_is_heap(address) && pal_is_heap(address + size - 1);
    }
    const struct thread *owner = pal.by_number[(address - STACKS) / STACK_RANGE];
    return owner && pal_is_on_stack(owner, address) && pal_is_on_stack(owner, address + size - 1);
}

static int is_fresh(uint64_t address, uint64_t size)
{
    if (size < PERIOD) {
        size = address % PERIOD + size <= PERIOD ? PERIOD : 2 * PERIOD;
        address -= address % PERIOD;
    }
    unsigned shift = address % PERIOD * 8;
    uint32_t expected = (uint32_t)((FRESH << 32 | FRESH) >> shift);
    if (!is_mapped(address, size)) {
        return 0;
    }
    for (uint64_t at = 0; at < size; at += PERIOD) {
        if (*(volatile uint32_t *)(address + at) != expected) {
            return 0;
        }
    }
    return 1;
}

/* The running thread has read a heap or a stack, by an atomic access that is in the log. */
void pal_loads_atomic(uint64_t first, uint64_t place)
{
    if (unlikely(is_fresh(first & ADDRESS_BITS, first >> 48 & 0xff))) {
        pal_misused_fresh(first, pal_at(place));
    }
}

/* The same for a plain access. */
void pal_loads_plain(uint64_t first, uint64_t place)
{
    uint64_t size = first >> 48 & 0xff;
    if (size >= PERIOD && unlikely(is_fresh(first & ADDRESS_BITS, size))) {
        pal.fresh_first = first;
        pal.fresh_second = pal_at(place);
        /* The next step begins with a check. */
        pal.next_check = 0;
    }
}
