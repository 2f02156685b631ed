/* What verification tools understand in C programs: assumptions, values that are not determined, and assertions.
 *
 * An execution in which an assumption is false does not count. In a search through all executions, only the thread
 * with that assumption ends: what others do afterwards may conflict with what it has read, and the search has to see
 * that. Whatever goes wrong in another thread afterwards also goes wrong in an execution in which this thread has not
 * got so far.
 *
 * Values depend on the seed of the schedule, on the thread, and on how many values it has asked for, but not on the
 * order of threads. Half of them are small. A search through all executions cannot try all values, so it refuses.
 *
 * A program may define these functions itself. */

#include "palisade.h"

#define WEAK EXPORT __attribute__((weak))

WEAK void __VERIFIER_assume(int condition)
{
    if (condition || pal.quiet) {
        return;
    }
    if (!(pal.command.flags & EXPLORE)) {
        pal_stop(R_ASSUMED, "an assumption is false");
    }
    pal.self->is_excluded = 1;
    pal_event(0, HEAD(K_PAUSE, O_PLAIN, 0), CALLER);
}

static uint64_t mix(uint64_t state)
{
    state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9ull;
    state = (state ^ state >> 27) * 0x94d049bb133111ebull;
    return state ^ state >> 31;
}

static uint64_t any(void)
{
    if (pal.command.flags & EXPLORE) {
        pal_stop(R_UNSUPPORTED, "the program asks for a value that is not determined (__VERIFIER_nondet_...), and an exhaustive search cannot try all of them; random schedules choose one");
    }
    struct thread *self = pal.self;
    uint64_t random = mix(mix(pal.command.seed + 0x9e3779b97f4a7c15ull) + ((uint64_t)self->number << 32) + ++self->values);
    return random & 1 ? (random >> 1) % 4 : mix(random);
}

#define NONDET(type, name)                                                                         \
    WEAK type __VERIFIER_nondet_##name(void)                                                       \
    {                                                                                              \
        return (type)any();                                                                        \
    }
NONDET(char, char)
NONDET(signed char, schar)
NONDET(unsigned char, uchar)
NONDET(short, short)
NONDET(unsigned short, ushort)
NONDET(int, int)
NONDET(unsigned, uint)
NONDET(unsigned, unsigned)
NONDET(unsigned, u32)
NONDET(long, long)
NONDET(unsigned long, ulong)
NONDET(long long, longlong)
NONDET(unsigned long long, ulonglong)
NONDET(size_t, size_t)

WEAK _Bool __VERIFIER_nondet_bool(void)
{
    return any() >> 1 & 1;
}

WEAK _Bool __VERIFIER_nondet__Bool(void)
{
    return any() >> 1 & 1;
}

WEAK void __VERIFIER_assert(int condition)
{
    if (!condition) {
        pal_fails("__VERIFIER_assert", CALLER);
    }
}

WEAK void __VERIFIER_error(void)
{
    pal_fails("__VERIFIER_error", CALLER);
}

WEAK void reach_error(void)
{
    pal_fails("reach_error", CALLER);
}
