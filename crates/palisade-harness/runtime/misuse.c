/* Accesses to memory that must not be accessed, and memory that must not be freed.
 *
 * An access is checked when it happens, which is when its thread has been chosen:
 *   - on the heap, by the shadow of its bytes (heap.c);
 *   - on stacks, by comparing its address with the end of the frames that the owner of the stack has not left.
 *     Memory below that belongs to no function. The owner may have entered other functions since; what is in
 *     their frames looks valid, unless no function has taken an address since (leave.c).
 *
 * The execution ends with the error, as with a failed assertion.
 *
 * A pending store was checked when its thread executed it. If its memory was freed by the same thread since, the
 * order of the program is kept: whoever gets that memory next can do so only after steps of that thread that come
 * after the store. If another thread has freed it, nothing has ordered the store before that, and on a machine with
 * such buffers it changes memory that may be in use for something else. So it is an error when it reaches memory.
 * The same holds for frames of stacks. */

#include "palisade.h"

/* The first byte of a range that must not be accessed, or 0. */
static uint64_t first_bad(uint64_t address, uint64_t size)
{
    for (uint64_t at = address, to = address + size; at < to;) {
        uint64_t in_granule = at % GRANULE, allowed = *SHADOW_OF(at);
        allowed = allowed <= GRANULE ? allowed : 0;
        if (in_granule >= allowed) {
            return at;
        }
        if (allowed < GRANULE && at - in_granule + allowed < to) {
            return at - in_granule + allowed;
        }
        at += GRANULE - in_granule;
    }
    return 0;
}

/* The block whose header is the last one at or before an address. There may be none, at the start of a heap. */
static const struct block *block_before(uint64_t address)
{
    uint64_t start = address >= LARGE_ARENAS ? address & ~(LARGE_ARENA_BYTES - 1) : address & ~(ARENA_BYTES - 1);
    for (uint64_t at = address & ~(uint64_t)(GRANULE - 1); at >= start; at -= GRANULE) {
        if (*SHADOW_OF(at) >= S_LIVE_HEADER) {
            return (const struct block *)(at + GRANULE) - 1;
        }
    }
    return NULL;
}

/* The block to which a bad address belongs: the one that it is in, or else the nearest one. */
static const struct block *block_near(uint64_t address)
{
    const struct block *before = block_before(address), *after = NULL;
    for (uint64_t at = address & ~(uint64_t)(GRANULE - 1), i = 0; i < sizeof(struct block) / GRANULE && !after; i++, at += GRANULE) {
        if (pal_is_heap(at) && *SHADOW_OF(at) >= S_LIVE_HEADER) {
            after = (const struct block *)(at + GRANULE) - 1;
        }
    }
    if (!before || !after || before == after) {
        return after ? after : before;
    }
    uint64_t end = (uint64_t)(before + 1) + before->size;
    return address < end || address - end < (uint64_t)(after + 1) - address ? before : after;
}

static void say(enum misuse what, uint64_t number, uint64_t second)
{
    pal_log((number & ADDRESS_BITS) | HEAD(K_MISUSE, O_PLAIN, what), second & (ADDRESS_BITS | 0xfffull << 48));
}

static const char *const names[] = {"", "use after free", "double free", "invalid free", "heap overflow", "stack use after return", "use of a thread-local variable of a thread that has ended", "unlock of a lock that the thread does not hold", "use of a lock that was destroyed", "a lock is destroyed while it is held", "read of memory that was never written"};

static __attribute__((noreturn)) void misused(enum misuse what, const struct block *block, uint64_t address, uint64_t first, uint64_t second)
{
    if (pal.is_served) {
        enum kind kind = KIND_OF(first);
        int writes = kind == K_STORE || kind == K_LOCKED || kind == K_UPDATE;
        if (kind != K_FREE) {
            uint64_t is_chosen = (second & F_CHOSEN) != 0;
            say(M_ACCESS, (first >> 48 & 0xff) | (uint64_t)writes << 8 | (uint64_t)(kind == K_UPDATE) << 9 | is_chosen << 10, second);
        }
        say(what, address, second);
        if (block) {
            say(M_SIZE, block->size, 0);
            say(M_START, (uint64_t)(block + 1), 0);
            say(M_MADE, 0, block->made_at);
            if (block->freed_at) {
                say(M_FREED, 0, block->freed_at);
            }
        }
    }
    pal_stop(R_MISUSE, pal.is_served ? "" : names[what]);
}

/* An access to the heap. */
void pal_check_heap(uint64_t first, uint64_t second)
{
    uint64_t address = first & ADDRESS_BITS, size = first >> 48 & 0xff;
    if (unlikely(!pal_is_heap(address) || !pal_is_heap(address + size - 1))) {
        return; /* It crashes. */
    }
    if (likely(*SHADOW_OF(address) == GRANULE && address % GRANULE + size <= GRANULE)) {
        return;
    }
    uint64_t bad = first_bad(address, size);
    if (bad) {
        const struct block *block = block_near(bad);
        int is_freed = *SHADOW_OF(bad) == S_FREED;
        misused(is_freed ? M_AFTER_FREE : M_OVERFLOW, block, bad, first, second);
    }
}

/* The end of the frames that a thread has not left, at an address of its stack; 0 if that is not known, because the
 * thread runs on another stack or has not started. */
static uint64_t frames_of(const struct thread *owner)
{
    return pal_is_on_stack(owner, (uint64_t)owner->frame) ? (uint64_t)owner->frame : 0;
}

/* The thread to whose part of the stacks an address belongs. */
static const struct thread *near(uint64_t address)
{
    uint64_t number = (address - STACKS) / STACK_RANGE;
    for (int i = 0; i < pal.thread_count; i++) {
        const struct thread *thread = pal.threads[i];
        if (thread->number == number) {
            return thread->stack_size ? thread : NULL;
        }
    }
    return NULL;
}

/* Whether an address of a stack is in a frame that its owner has left. */
static int is_left(const struct thread *owner, uint64_t address)
{
    int is_leaving = address < owner->left_high && address >= owner->left_low;
    return owner->finished || is_leaving || address < owner->live_from || address < frames_of(owner);
}

static const struct thread *owner_of(uint64_t address)
{
    const struct thread *thread = near(address);
    return thread && pal_is_on_stack(thread, address) ? thread : NULL;
}

/* The C library keeps the thread-local variables of a thread above its frames. They end with the thread. */
static void check_locals(uint64_t first, uint64_t second)
{
    uint64_t address = first & ADDRESS_BITS;
    const struct thread *of = near(address);
    if (of && of->finished && address >= (uint64_t)of->stack_end && address < (uint64_t)of->stack_low + of->stack_size) {
        say(M_OWNER, 1, of->tag);
        misused(M_AFTER_END, NULL, address, first, second);
    }
}

/* An access to a stack by a thread whose own frames begin at `frame`. */
void pal_check_stack(uint64_t first, uint64_t second, const void *frame)
{
    uint64_t address = first & ADDRESS_BITS;
    const struct thread *owner = owner_of(address);
    if (!owner) {
        check_locals(first, second);
        return;
    }
    uint64_t own = pal_is_on_stack(owner, (uint64_t)frame) ? (uint64_t)frame : 0;
    if (owner == pal.self ? address < own : is_left(owner, address)) {
        say(M_OWNER, owner->finished, owner->tag);
        misused(M_AFTER_RETURN, NULL, address, first, second);
    }
}

/* A store of `owner` reaches memory. */
void pal_check_update(const struct thread *owner, uint64_t first, uint64_t second)
{
    uint64_t address = first & ADDRESS_BITS, size = first >> 48 & 0xff;
    if (pal_is_heap(address)) {
        uint64_t bad = first_bad(address, size);
        const struct block *block = bad && *SHADOW_OF(bad) == S_FREED ? block_near(bad) : NULL;
        if (block && (block->freed_at & ~ADDRESS_BITS) != owner->tag) {
            misused(M_AFTER_FREE, block, bad, first, second);
        }
    } else if (address - STACKS < STACK_RANGE * MAX_THREADS) {
        const struct thread *of = owner_of(address);
        if (of && of != owner && is_left(of, address)) {
            say(M_OWNER, of->finished, of->tag);
            misused(M_AFTER_RETURN, NULL, address, first, second);
        }
        check_locals(first, second);
    }
}

/* The program is about to free an address. */
void pal_check_free(uint64_t address, uint64_t place)
{
    uint64_t first = HEAD(K_FREE, O_PLAIN, 0), second = pal_at(place);
    int state = address % GRANULE == 0 && pal_is_heap(address) ? *(SHADOW_OF(address) - 1) : 0;
    if (state == S_FREED_HEADER) {
        misused(M_DOUBLE_FREE, (const struct block *)address - 1, address, first, second);
    }
    if (state != S_LIVE_HEADER) {
        const struct block *block = pal_is_heap(address) ? block_before(address) : NULL;
        int is_inside = block && address - (uint64_t)(block + 1) < block->size;
        misused(M_INVALID_FREE, is_inside ? block : NULL, address, first, second);
    }
}

/* A thread has read memory that was never written. That step is in the log. */
void pal_misused_fresh(uint64_t first, uint64_t second)
{
    uint64_t address = first & ADDRESS_BITS;
    const struct thread *owner = address - ARENAS < HEAP_BYTES ? NULL : owner_of(address);
    if (pal.is_served && owner) {
        say(M_OWNER, owner->finished, owner->tag);
    }
    misused(M_FRESH, owner ? NULL : block_before(address), address, first, second);
}

/* A thread has done something to a lock that it must not do. That step is in the log. `owner` is the number of the thread
 * that holds the lock, plus 1; `destroyed_at` is where it was destroyed. Each is 0 if there is no such thing. */
void pal_misused_lock(enum misuse what, const void *lock, uint32_t owner, uint64_t destroyed_at, uint64_t place)
{
    if (pal.is_served && owner) {
        say(M_OWNER, 0, (uint64_t)(owner - 1) << 48);
    }
    if (pal.is_served && destroyed_at) {
        say(M_FREED, 0, destroyed_at);
    }
    misused(what, NULL, (uint64_t)lock, HEAD(K_FREE, O_PLAIN, 0), pal_at(place));
}
