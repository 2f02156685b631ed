/* The heap. Every thread allocates memory from its own range of addresses and frees it there. So the results
 * of `malloc` depend only on what the calling thread has done, and not on how others were scheduled.
 * Otherwise, a repeated step would touch different addresses.
 *
 * Blocks that a thread has freed wait in its quarantine, first in, first out. They are used again only when the
 * quarantine has more than QUARANTINE_BYTES or QUARANTINE_BLOCKS, so that a later access is noticed (misuse.c).
 * Nothing is written into them while they wait. `realloc` always moves a block.
 *
 * There are at least 48 bytes between two blocks. Every 16 bytes of the heap have a byte of their own, their
 * shadow, which says whether they may be accessed: see `enum shadow` in palisade.h.
 *
 * `free` is a step, which conflicts with all accesses to the block, if other threads may see it. A library
 * that was not compiled by `palisade cc` may hold a lock of its own when it calls `free`; there, no other
 * thread runs before the block is freed. */

#include "palisade.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern __thread int pal_is_leaving;

enum { CLASSES = 64 + 48, SMALL = 1024, CHUNK = 1 << 20 };
enum { QUARANTINE_BYTES = 16 << 20, QUARANTINE_BLOCKS = 1 << 16 };

struct arena {
    struct block *free[CLASSES];
    char *next, *end, *limit;
    struct block *oldest, *newest; /* the quarantine */
    uint64_t waiting_bytes, waiting_blocks;
};

/* The last one is for what the C library allocates when a thread is started. It is where the first thread would have
 * its heap if that were not a large one. */
static struct arena arenas[MAX_THREADS + 1];
enum { FOR_THREADS = MAX_THREADS };
char pal_starts_thread;

static struct arena *arena(void)
{
    struct thread *self = pal.self ? pal.self : pal_first_thread();
    uint32_t number = unlikely(pal_starts_thread) ? FOR_THREADS : self->number;
    struct arena *arena = &arenas[number];
    if (unlikely(!arena->next)) {
        int is_large = number < MAX_LARGE;
        uint64_t bytes = is_large ? LARGE_ARENA_BYTES : ARENA_BYTES;
        uint64_t from = (is_large ? LARGE_ARENAS : ARENAS) + number % FOR_THREADS * bytes;
        int error = pal_map((uint64_t)SHADOW_OF(from), bytes / GRANULE, MAP_PRIVATE | MAP_NORESERVE);
        if (error == EEXIST && !pal.quiet) {
            pal_address_in_use("what is known about the heap of a thread", (uint64_t)SHADOW_OF(from));
        }
        if (error) {
            return NULL;
        }
        arena->next = arena->end = (char *)from;
        arena->limit = arena->next + bytes;
    }
    return arena;
}

/* Whether there can be a block at an address of the heap, so that its shadow can be looked at. */
int pal_is_heap(uint64_t address)
{
    if (address - ARENAS >= HEAP_BYTES) {
        return 0;
    }
    int is_large = address >= LARGE_ARENAS;
    uint64_t number = is_large ? (address - LARGE_ARENAS) / LARGE_ARENA_BYTES : (address - ARENAS) / ARENA_BYTES;
    if (!is_large && !number) {
        return address < (uint64_t)arenas[FOR_THREADS].end;
    }
    return is_large == (number < MAX_LARGE) && address < (uint64_t)arenas[number].end;
}

/* Classes: multiples of 16 up to 1024, then powers of two and one and a half times these. */
static uint32_t class_of(size_t size, size_t *rounded)
{
    if (size <= SMALL) {
        uint32_t class = (uint32_t)((size + 15) / 16);
        class = class ? class : 1;
        *rounded = class * 16;
        return class - 1;
    }
    unsigned power = 63 - (unsigned)__builtin_clzll(size - 1);
    size_t base = 1ull << power;
    int half = size <= base + base / 2;
    *rounded = half ? base + base / 2 : 2 * base;
    return 64 + 2 * (power - 10) + !half;
}

/* Room for a block with its header. */
static struct block *take(size_t size)
{
    struct arena *from = size > LARGE_ARENA_BYTES / 4 ? NULL : arena();
    if (!from) {
        return NULL;
    }
    size_t rounded;
    uint32_t class = class_of(size, &rounded);
    struct block *block = from->free[class];
    if (block) {
        from->free[class] = block->next;
        pal_fill(SHADOW_OF((uint64_t)block), S_NONE, (sizeof *block + rounded) / GRANULE);
    } else {
        size_t bytes = rounded + sizeof *block;
        if ((size_t)(from->end - from->next) < bytes) {
            size_t more = (bytes + CHUNK - 1) / CHUNK * CHUNK;
            if ((size_t)(from->limit - from->end) < more) {
                return NULL;
            }
            int error = pal_map((uint64_t)from->end, more, MAP_PRIVATE);
            if (error == EEXIST && !pal.quiet) {
                pal_address_in_use("the heap of a thread", (uint64_t)from->end);
            }
            if (error) {
                return NULL;
            }
            from->end += more;
        }
        block = (struct block *)from->next;
        from->next += bytes;
    }
    block->class = class;
    block->room = rounded;
    return block;
}

/* The block becomes accessible. It begins after `block`, which is `distance` bytes after the room for it. */
static void *give(struct block *block, size_t size, uint64_t distance, uint64_t place)
{
    block->size = size;
    block->distance = distance;
    block->made_at = pal_at(place & ADDRESS_BITS);
    block->freed_at = 0;
    unsigned char *shadow = SHADOW_OF((uint64_t)(block + 1));
    shadow[-1] = S_LIVE_HEADER;
    pal_fill(shadow, GRANULE, size / GRANULE);
    if (size % GRANULE) {
        shadow[size / GRANULE] = (unsigned char)(size % GRANULE);
    }
    return block + 1;
}

void *pal_allocate(size_t size, uint64_t place)
{
    struct block *block = take(size);
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    return give(block, size, 0, place);
}

static void *allocate_fresh(size_t size, uint64_t place)
{
    return pal_fresh(pal_allocate(size, place), size);
}

static void *aligned(size_t alignment, size_t size, uint64_t place)
{
    struct block *block;
    if (alignment <= GRANULE) {
        return allocate_fresh(size, place);
    }
    if (alignment > LARGE_ARENA_BYTES / 4 || !(block = take(size + alignment + sizeof *block))) {
        errno = ENOMEM;
        return NULL;
    }
    /* There are two headers, unless the block is aligned anyway. */
    uint64_t start = (uint64_t)(block + 1);
    if (start % alignment) {
        start = ((uint64_t)(block + 2) + alignment - 1) & ~(uint64_t)(alignment - 1);
    }
    struct block *header = (struct block *)start - 1;
    return pal_fresh(give(header, size, (uint64_t)header - (uint64_t)block, place), size);
}

/* The oldest block of a quarantine can be used again. */
static void reuse_oldest(struct arena *arena)
{
    struct block *block = arena->oldest;
    arena->oldest = block->next;
    arena->newest = block->next ? arena->newest : NULL;
    arena->waiting_bytes -= block->room;
    arena->waiting_blocks--;
    block->next = arena->free[block->class];
    arena->free[block->class] = block;
}

/* Frees a block. */
static void retire(struct block *block, uint64_t place)
{
    struct arena *to = arena();
    unsigned char *shadow = SHADOW_OF((uint64_t)(block + 1));
    shadow[-1] = S_FREED_HEADER;
    pal_fill(shadow, S_FREED, (block->size + GRANULE - 1) / GRANULE);
    block->freed_at = pal_at(place & ADDRESS_BITS);
    struct block *whole = (struct block *)((char *)block - block->distance);
    if (!to) {
        return;
    }
    whole->next = NULL;
    *(to->newest ? &to->newest->next : &to->oldest) = whole;
    to->newest = whole;
    to->waiting_bytes += whole->room;
    to->waiting_blocks++;
    while (to->waiting_bytes > QUARANTINE_BYTES || to->waiting_blocks > QUARANTINE_BLOCKS) {
        reuse_oldest(to);
    }
}

/* Memory of the runtime itself. */
void pal_release(void *memory)
{
    if (memory) {
        retire((struct block *)memory - 1, 0);
    }
}

/* The block that the program is about to free or to move. Returns once it may do so; NULL for memory that is
 * not ours. */
static struct block *about_to_free(void *memory, uint64_t place)
{
    uint64_t address = (uint64_t)memory;
    struct block *block = (struct block *)memory - 1;
    int is_block = address % GRANULE == 0 && pal_is_heap(address) && *(SHADOW_OF(address) - 1) >= S_LIVE_HEADER;
    if (pal.quiet) {
        return is_block ? block : NULL;
    }
    uint64_t size = is_block ? block->size : 1, first = (address & ADDRESS_BITS) | HEAD(K_FREE, O_PLAIN, 0);
    if (!pal_is_alone() && !pal_is_in_library(place)) {
        uint64_t second = pal_at(place) | F_CHOSEN;
        pal_add_range(address, size, K_FREE);
        pal_decide(first, second);
        pal_log(first, second);
    }
    pal_check_free(address, place);
    pal_also(address, HEAD(K_FREE, O_PLAIN, 0), size);
    return block;
}

void pal_free_for(void *memory, uint64_t place)
{
    if (!memory || pal_is_leaving) {
        return;
    }
    struct block *block = about_to_free(memory, place);
    if (block) {
        retire(block, place);
    }
}

EXPORT void *malloc(size_t size)
{
    return allocate_fresh(size, CALLER);
}

EXPORT void free(void *memory)
{
    pal_free_for(memory, CALLER);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = pal_allocate(bytes, CALLER);
    if (memory) {
        pal_fill(memory, 0, bytes);
    }
    return memory;
}

EXPORT size_t malloc_usable_size(void *memory)
{
    return memory ? ((struct block *)memory - 1)->size : 0;
}

static void *reallocate(void *memory, size_t size, uint64_t place)
{
    if (!memory) {
        return allocate_fresh(size, place);
    }
    if (!size) {
        pal_free_for(memory, place);
        return NULL;
    }
    void *moved = allocate_fresh(size, place);
    if (moved) {
        struct block *block = about_to_free(memory, place);
        if (block) {
            pal_copy(moved, memory, block->size < size ? block->size : size);
            retire(block, place);
        }
    }
    return moved;
}

EXPORT void *realloc(void *memory, size_t size)
{
    return reallocate(memory, size, CALLER);
}

EXPORT void *reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return reallocate(memory, bytes, CALLER);
}

EXPORT int posix_memalign(void **to, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment) {
        return EINVAL;
    }
    void *memory = aligned(alignment, size, CALLER);
    if (!memory) {
        return ENOMEM;
    }
    *to = memory;
    return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return aligned(alignment, size, CALLER);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return aligned(alignment, size, CALLER);
}

EXPORT void *valloc(size_t size)
{
    return aligned((size_t)getpagesize(), size, CALLER);
}

EXPORT void *pvalloc(size_t size)
{
    size_t page = (size_t)getpagesize();
    return aligned(page, (size + page - 1) & ~(page - 1), CALLER);
}

/* C++'s operators, so that blocks are known by where the program calls them. A program may have its own. If
 * there is no memory, those of the library call the handler and throw. */
#define NEW(name, symbol)                                                                          \
    EXPORT __attribute__((weak)) void *name(size_t size) __asm__(symbol);                          \
    void *name(size_t size)                                                                        \
    {                                                                                              \
        void *memory = allocate_fresh(size, CALLER);                                               \
        return likely(memory) ? memory : ((void *(*)(size_t))pal_next(symbol))(size);              \
    }
NEW(pal_new, "_Znwm")
NEW(pal_new_array, "_Znam")

#define NEW_ALIGNED(name, symbol)                                                                  \
    EXPORT __attribute__((weak)) void *name(size_t size, size_t alignment) __asm__(symbol);        \
    void *name(size_t size, size_t alignment)                                                      \
    {                                                                                              \
        void *memory = aligned(alignment, size, CALLER);                                           \
        return likely(memory) ? memory : ((void *(*)(size_t, size_t))pal_next(symbol))(size, alignment); \
    }
NEW_ALIGNED(pal_new_aligned, "_ZnwmSt11align_val_t")
NEW_ALIGNED(pal_new_array_aligned, "_ZnamSt11align_val_t")

#define DELETE(name, symbol)                                                                       \
    EXPORT __attribute__((weak)) void name(void *memory) __asm__(symbol);                          \
    void name(void *memory)                                                                        \
    {                                                                                              \
        pal_free_for(memory, CALLER);                                                              \
    }
DELETE(pal_delete, "_ZdlPv")
DELETE(pal_delete_array, "_ZdaPv")
DELETE(pal_delete_sized, "_ZdlPvm")
DELETE(pal_delete_array_sized, "_ZdaPvm")
DELETE(pal_delete_aligned, "_ZdlPvSt11align_val_t")
DELETE(pal_delete_array_aligned, "_ZdaPvSt11align_val_t")
DELETE(pal_delete_sized_aligned, "_ZdlPvmSt11align_val_t")
DELETE(pal_delete_array_sized_aligned, "_ZdaPvmSt11align_val_t")
