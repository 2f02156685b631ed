/* The heap. Every thread allocates memory from its own range of addresses and frees it there. So the results
 * of `malloc` depend only on what the calling thread has done, and not on how others were scheduled.
 * Otherwise, a repeated step would touch other addresses.
 *
 * Blocks of the same size class are reused at once, most recently freed first. */

#include "palisade.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern __thread int pal_is_leaving;

struct header {
    uint64_t size;     /* usable by the caller */
    uint32_t class;    /* the list it belongs to */
    uint32_t distance; /* from the start of the block to the header, for aligned memory */
};

enum { CLASSES = 64 + 48, SMALL = 1024, CHUNK = 1 << 20, ALIGNMENT = 16 };

struct arena {
    char *free[CLASSES];
    char *next, *end, *limit;
};

/* Addresses of the arenas: 64 GiB each for the first threads, 4 GiB for the others. For the choice of
 * addresses, see memory.c. */
#define ARENAS 0x400000000000ull
#define ARENA_BYTES (1ull << 32)
#define LARGE_ARENAS 0x500000000000ull
#define LARGE_ARENA_BYTES (1ull << 36)
enum { MAX_LARGE = 64 };

static struct arena arenas[MAX_THREADS];

static struct arena *arena(void)
{
    struct thread *self = pal.self ? pal.self : pal_first_thread();
    uint32_t number = self->number;
    struct arena *arena = &arenas[number];
    if (unlikely(!arena->next)) {
        int is_large = number < MAX_LARGE;
        uint64_t bytes = is_large ? LARGE_ARENA_BYTES : ARENA_BYTES;
        arena->next = arena->end = (char *)((is_large ? LARGE_ARENAS : ARENAS) + number * bytes);
        arena->limit = arena->next + bytes;
    }
    return arena;
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

static void *take(size_t size, size_t *rounded)
{
    if (size > LARGE_ARENA_BYTES / 4) {
        return NULL;
    }
    struct arena *from = arena();
    uint32_t class = class_of(size, rounded);
    struct header *header = (struct header *)from->free[class];
    if (header) {
        from->free[class] = *(char **)(header + 1);
    } else {
        size_t bytes = *rounded + sizeof *header;
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
        header = (struct header *)from->next;
        from->next += bytes;
    }
    header->class = class;
    header->distance = 0;
    header->size = *rounded;
    return header + 1;
}

static struct header *header_of(void *memory)
{
    return (struct header *)memory - 1;
}

EXPORT void *malloc(size_t size)
{
    size_t rounded;
    void *memory = take(size, &rounded);
    if (!memory) {
        errno = ENOMEM;
    }
    return memory;
}

EXPORT void free(void *memory)
{
    if (!memory || pal_is_leaving) {
        return;
    }
    struct header *header = header_of(memory);
    pal_also((uint64_t)memory, HEAD(K_FREE, O_PLAIN, 0), header->size);
    if (header->distance) {
        uint32_t distance = header->distance;
        header = (struct header *)((char *)header - distance);
    }
    struct arena *to = arena();
    *(char **)(header + 1) = to->free[header->class];
    to->free[header->class] = (char *)header;
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = malloc(bytes);
    if (memory) {
        pal_fill(memory, 0, bytes);
    }
    return memory;
}

static void *aligned(size_t alignment, size_t size)
{
    if (alignment <= ALIGNMENT) {
        return malloc(size);
    }
    char *memory = malloc(size + alignment + sizeof(struct header));
    if (!memory || (uint64_t)memory % alignment == 0) {
        return memory;
    }
    char *place = (char *)(((uint64_t)memory + sizeof(struct header) + alignment - 1) & ~(alignment - 1));
    struct header *whole = header_of(memory), *header = header_of(place);
    header->class = whole->class;
    header->size = whole->size - (size_t)(place - memory);
    header->distance = (uint32_t)(place - memory);
    return place;
}

EXPORT size_t malloc_usable_size(void *memory)
{
    return memory ? header_of(memory)->size : 0;
}

EXPORT void *realloc(void *memory, size_t size)
{
    if (!memory) {
        return malloc(size);
    }
    if (!size) {
        free(memory);
        return NULL;
    }
    size_t old = malloc_usable_size(memory);
    if (size <= old && size >= old / 4) {
        return memory;
    }
    void *moved = malloc(size);
    if (moved) {
        pal_copy(moved, memory, old < size ? old : size);
        free(memory);
    }
    return moved;
}

EXPORT void *reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, bytes);
}

EXPORT int posix_memalign(void **to, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment) {
        return EINVAL;
    }
    void *memory = aligned(alignment, size);
    if (!memory) {
        return ENOMEM;
    }
    *to = memory;
    return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    void *memory = aligned(alignment, size);
    if (!memory) {
        errno = ENOMEM;
    }
    return memory;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

EXPORT void *valloc(size_t size)
{
    return aligned_alloc((size_t)getpagesize(), size);
}

EXPORT void *pvalloc(size_t size)
{
    size_t page = (size_t)getpagesize();
    return aligned_alloc(page, (size + page - 1) & ~(page - 1));
}
