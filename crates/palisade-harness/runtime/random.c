/* Random numbers. The operating system would return different ones every time, and no schedule could be
 * repeated. Here, the numbers of a thread depend only on how many it has used. `rand` and similar functions
 * use a state that all threads share and that the C library protects by a lock, so these calls are steps at
 * one address. */

#include "palisade.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

static uint64_t next_number(void)
{
    struct thread *self = pal.self ? pal.self : pal_first_thread();
    uint64_t state = (((uint64_t)self->number << 40) + ++self->random_numbers) * 0x9e3779b97f4a7c15ull;
    state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9ull;
    state = (state ^ state >> 27) * 0x94d049bb133111ebull;
    return state ^ state >> 31;
}

void pal_random_bytes(void *to, size_t size)
{
    unsigned char *bytes = to;
    for (size_t at = 0; at < size; at++) {
        bytes[at] = (unsigned char)(next_number() >> 56);
    }
}

EXPORT ssize_t getrandom(void *to, size_t size, unsigned flags)
{
    (void)flags;
    pal_accesses(to, size, 1, CALLER);
    pal_random_bytes(to, size);
    return (ssize_t)size;
}

EXPORT int getentropy(void *to, size_t size)
{
    if (size > 256) {
        errno = EIO;
        return -1;
    }
    pal_accesses(to, size, 1, CALLER);
    pal_random_bytes(to, size);
    return 0;
}

EXPORT uint32_t arc4random(void)
{
    return (uint32_t)(next_number() >> 32);
}

EXPORT void arc4random_buf(void *to, size_t size)
{
    pal_accesses(to, size, 1, CALLER);
    pal_random_bytes(to, size);
}

EXPORT uint32_t arc4random_uniform(uint32_t bound)
{
    return (uint32_t)((next_number() >> 32) * bound >> 32);
}

static char state;

#define SHARED_STATE(type, name, parameters, ...)                                                  \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        static __typeof__(name) *next;                                                             \
        if (!next) {                                                                               \
            next = pal_next(#name);                                                                \
        }                                                                                          \
        pal_event((uint64_t)&state, HEAD(K_LOCKED, O_ACQ_REL, 1), CALLER);                         \
        return next(__VA_ARGS__);                                                                  \
    }

SHARED_STATE(int, rand, (void))
SHARED_STATE(long, random, (void))
SHARED_STATE(double, drand48, (void))
SHARED_STATE(long, lrand48, (void))
SHARED_STATE(long, mrand48, (void))
SHARED_STATE(void, srand, (unsigned seed), seed)
SHARED_STATE(void, srandom, (unsigned seed), seed)
SHARED_STATE(void, srand48, (long seed), seed)
