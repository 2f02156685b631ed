/* Accesses to memory that are not atomic. There is one entry point per size, as compilers call them. The
 * functions of the C library that copy memory are here too. */

#include "palisade.h"

/* Whether memory was ever written: see fresh.c. */
static inline __attribute__((always_inline)) void before(uint64_t address, enum kind kind)
{
    if (kind == K_STORE && unlikely(pal.fresh_first) && (pal.fresh_first & ADDRESS_BITS) == (address & ADDRESS_BITS)) {
        pal.fresh_first = 0;
    }
}

static inline __attribute__((always_inline)) void after(uint64_t address, uint64_t head, uint64_t place)
{
    if (KIND_OF(head) == K_LOAD && pal_may_be_fresh(address)) {
        pal_loads_plain((address & ADDRESS_BITS) | head, place);
    }
}

#define ACCESS(name, kind, order, size)                                                            \
    EXPORT void name(void *address)                                                                \
    {                                                                                              \
        before((uint64_t)address, kind);                                                           \
        pal_event((uint64_t)address, HEAD(kind, order, size), CALLER);                             \
        after((uint64_t)address, HEAD(kind, order, size), CALLER);                                 \
        pal_announce((uint64_t)address, size, kind);                                               \
    }

#define SIZES(prefix, kind, order)                                                                 \
    ACCESS(prefix##1, kind, order, 1)                                                              \
    ACCESS(prefix##2, kind, order, 2)                                                              \
    ACCESS(prefix##4, kind, order, 4)                                                              \
    ACCESS(prefix##8, kind, order, 8)                                                              \
    ACCESS(prefix##16, kind, order, 16)

SIZES(__tsan_read, K_LOAD, O_PLAIN)
SIZES(__tsan_write, K_STORE, O_PLAIN)
SIZES(__tsan_unaligned_read, K_LOAD, O_PLAIN)
SIZES(__tsan_unaligned_write, K_STORE, O_PLAIN)
SIZES(__tsan_volatile_read, K_LOAD, O_VOLATILE)
SIZES(__tsan_volatile_write, K_STORE, O_VOLATILE)
SIZES(__tsan_unaligned_volatile_read, K_LOAD, O_VOLATILE)
SIZES(__tsan_unaligned_volatile_write, K_STORE, O_VOLATILE)

/* Calls that pass the place as an argument after the address. */
#define ACCESS_AT(name, kind, size)                                                                \
    EXPORT void name(void *address, void *place)                                                   \
    {                                                                                              \
        before((uint64_t)address, kind);                                                           \
        pal_event((uint64_t)address, HEAD(kind, O_PLAIN, size), (uint64_t)place);                  \
        after((uint64_t)address, HEAD(kind, O_PLAIN, size), (uint64_t)place);                      \
        pal_announce((uint64_t)address, size, kind);                                               \
    }
ACCESS_AT(__tsan_read1_pc, K_LOAD, 1)
ACCESS_AT(__tsan_read2_pc, K_LOAD, 2)
ACCESS_AT(__tsan_read4_pc, K_LOAD, 4)
ACCESS_AT(__tsan_read8_pc, K_LOAD, 8)
ACCESS_AT(__tsan_read16_pc, K_LOAD, 16)
ACCESS_AT(__tsan_write1_pc, K_STORE, 1)
ACCESS_AT(__tsan_write2_pc, K_STORE, 2)
ACCESS_AT(__tsan_write4_pc, K_STORE, 4)
ACCESS_AT(__tsan_write8_pc, K_STORE, 8)
ACCESS_AT(__tsan_write16_pc, K_STORE, 16)

EXPORT void __tsan_init(void) {}
EXPORT void __tsan_func_entry(void *caller) { (void)caller; }
EXPORT void __tsan_func_exit(void) {}

/* clang may combine a load and the store after it into one call. The step writes, and is announced as a write
 * before it is chosen. */
static void both(uint64_t address, uint64_t load, uint64_t store, uint64_t place)
{
    if (pal_is_quiet(place)) {
        return;
    }
    uint64_t at = address & ADDRESS_BITS, second = pal_at(place);
    /* With store buffers, only the load is seen by others now. */
    pal_decide(at | (pal.buffers ? load : store), second | F_CHOSEN);
    pal_log(at | load, second | F_CHOSEN);
    pal_happens(at | store, second);
}

#define BOTH(name, order, size)                                                                    \
    EXPORT void name(void *address)                                                                \
    {                                                                                              \
        both((uint64_t)address, HEAD(K_LOAD, order, size), HEAD(K_STORE, order, size), CALLER);    \
        pal_announce((uint64_t)address, size, K_LOAD);                                             \
        pal_announce((uint64_t)address, size, K_STORE);                                            \
    }
BOTH(__tsan_read_write1, O_PLAIN, 1)
BOTH(__tsan_read_write2, O_PLAIN, 2)
BOTH(__tsan_read_write4, O_PLAIN, 4)
BOTH(__tsan_read_write8, O_PLAIN, 8)
BOTH(__tsan_read_write16, O_PLAIN, 16)

EXPORT void __tsan_vptr_update(void **address, void *value)
{
    if (pal_is_quiet(CALLER)) {
        return;
    }
    /* Writing the value that is already there does not race with others that do the same. Whether it is there
     * is known only when the thread has been chosen. */
    uint64_t at = (uint64_t)address & ADDRESS_BITS, second = pal_at(CALLER) | F_CHOSEN;
    pal_decide(at | (pal.buffers ? HEAD(K_LOAD, O_PLAIN, 8) : HEAD(K_STORE, O_PLAIN, 8)), second);
    pal_happens(at | (*address != value ? HEAD(K_STORE, O_PLAIN, 8) : HEAD(K_LOAD, O_PLAIN, 8)), second);
    pal_announce((uint64_t)address, 8, K_STORE);
}

EXPORT void __tsan_vptr_read(void **address)
{
    pal_event((uint64_t)address, HEAD(K_LOAD, O_PLAIN, 8), CALLER);
    pal_announce((uint64_t)address, 8, K_LOAD);
}

/* Short copies are made word by word. Long ones are made by cache lines, to limit the number of steps. */
enum { WORD = 8, LINE = 64, SHORT = 256 };

static size_t part(uint64_t address, size_t left, size_t whole)
{
    size_t unit = whole <= SHORT ? WORD : LINE;
    size_t to_boundary = unit - address % unit;
    return to_boundary < left ? to_boundary : left;
}

/* A range that the program itself accesses when this returns. It is one step, because no other thread can run
 * in between. */
static void range(uint64_t address, size_t size, uint64_t head, uint64_t place)
{
    if (size > part(address, size, size) && !pal.quiet) {
        pal_add_range(address, size, KIND_OF(head));
    }
    for (size_t at = 0; at < size;) {
        size_t bytes = part(address + at, size - at, size);
        if (at == 0) {
            pal_event(address, head | HEAD(0, 0, bytes), place);
        } else {
            pal_also(address + at, head | HEAD(0, 0, bytes), place);
        }
        at += bytes;
    }
}

EXPORT void __tsan_read_range(void *address, unsigned long size)
{
    range((uint64_t)address, size, HEAD(K_LOAD, O_PLAIN, 0), CALLER);
    pal_announce((uint64_t)address, size, K_LOAD);
}

EXPORT void __tsan_write_range(void *address, unsigned long size)
{
    range((uint64_t)address, size, HEAD(K_STORE, O_PLAIN, 0), CALLER);
    pal_announce((uint64_t)address, size, K_STORE);
}

void pal_copy(void *to, const void *from, size_t size)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

void pal_fill(void *to, int byte, size_t size)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
}

static void copy(char *to, const char *from, size_t size, uint64_t place)
{
    if (pal.quiet || pal_is_alone()) {
        /* No other thread can see single pieces of it, but others may look at it later. */
        range((uint64_t)from, size, HEAD(K_LOAD, O_PLAIN, 0), place);
        range((uint64_t)to, size, HEAD(K_STORE, O_PLAIN, 0), place);
        pal_copy(to, from, size);
        return;
    }
    for (size_t at = 0; at < size;) {
        size_t bytes = part((uint64_t)(to + at), size - at, size);
        pal_event((uint64_t)(from + at), HEAD(K_LOAD, O_PLAIN, bytes), place);
        char piece[LINE];
        pal_copy(piece, from + at, bytes);
        pal_event((uint64_t)(to + at), HEAD(K_STORE, O_PLAIN, bytes), place);
        pal_copy(to + at, piece, bytes);
        at += bytes;
    }
}

static void move(char *to, const char *from, size_t size, uint64_t place)
{
    if (to <= from || to >= from + size) {
        copy(to, from, size, place);
        return;
    }
    if (pal.quiet || pal_is_alone()) {
        range((uint64_t)from, size, HEAD(K_LOAD, O_PLAIN, 0), place);
        range((uint64_t)to, size, HEAD(K_STORE, O_PLAIN, 0), place);
        for (size_t at = size; at > 0; at--) {
            *(volatile char *)(to + at - 1) = from[at - 1];
        }
        return;
    }
    /* Piece by piece like any copy, from the end. */
    for (size_t left = size; left > 0;) {
        size_t unit = size <= SHORT ? WORD : LINE, over = (uint64_t)(to + left) % unit;
        size_t bytes = over ? over : unit;
        bytes = bytes < left ? bytes : left;
        left -= bytes;
        pal_event((uint64_t)(from + left), HEAD(K_LOAD, O_PLAIN, bytes), place);
        char piece[LINE];
        pal_copy(piece, from + left, bytes);
        pal_event((uint64_t)(to + left), HEAD(K_STORE, O_PLAIN, bytes), place);
        pal_copy(to + left, piece, bytes);
    }
}

static void fill(char *to, int byte, size_t size, uint64_t place)
{
    if (pal.quiet || pal_is_alone()) {
        range((uint64_t)to, size, HEAD(K_STORE, O_PLAIN, 0), place);
        pal_fill(to, byte, size);
        return;
    }
    for (size_t at = 0; at < size;) {
        size_t bytes = part((uint64_t)(to + at), size - at, size);
        pal_event((uint64_t)(to + at), HEAD(K_STORE, O_PLAIN, bytes), place);
        pal_fill(to + at, byte, bytes);
        at += bytes;
    }
}

void pal_copy_for(void *to, const void *from, size_t size, uint64_t place)
{
    copy(to, from, size, place);
}

void pal_move_for(void *to, const void *from, size_t size, uint64_t place)
{
    move(to, from, size, place);
}

void pal_fill_for(void *to, int byte, size_t size, uint64_t place)
{
    fill(to, byte, size, place);
}

EXPORT void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    copy(to, from, size, CALLER);
    return to;
}

EXPORT void *__tsan_memmove(void *to, const void *from, size_t size)
{
    move(to, from, size, CALLER);
    return to;
}

EXPORT void *__tsan_memset(void *to, int byte, size_t size)
{
    fill(to, byte, size, CALLER);
    return to;
}

EXPORT void *memcpy(void *to, const void *from, size_t size)
{
    copy(to, from, size, CALLER);
    return to;
}

EXPORT void *memmove(void *to, const void *from, size_t size)
{
    move(to, from, size, CALLER);
    return to;
}

EXPORT void *memset(void *to, int byte, size_t size)
{
    fill(to, byte, size, CALLER);
    return to;
}
