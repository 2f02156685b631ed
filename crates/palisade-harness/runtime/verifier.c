/* What verification tools understand in C programs: assumptions, nondeterministic values, and assertions.
 *
 * An execution in which an assumption is false does not count. In a search through all executions, only the thread
 * with that assumption ends: what others do afterwards may conflict with what it has read, and the search has to see
 * that. Whatever goes wrong in another thread afterwards also goes wrong in an execution in which this thread has not
 * got that far.
 *
 * Getting a nondeterministic value is a step. In random schedules, values depend on the seed of the schedule, on
 * the thread, and on how many values it has asked for, but not on the order of threads. Half of them are small, and a
 * quarter are values at which programs often change what they do: the smallest and the largest ones, and constants that
 * the program compares something with. A search through all executions tries every value of `_Bool`, of `char` and of a
 * range that the program gives (`__VERIFIER_nondet_range`). Of wider types it tries those values, and reports that these
 * are not all. A schedule may give the value.
 *
 * src/constants.rs puts the constants into the program.
 *
 * A program may define these functions itself. */

#include "palisade.h"

#define WEAK EXPORT __attribute__((weak))

enum { MAX_RANGE = 1 << 16, MAX_CONSTANTS = 16, FEW = 8 };

/* Constants of the program, each once. */
extern const int64_t __start_palisade_constants[] __attribute__((weak, visibility("hidden")));
extern const int64_t __stop_palisade_constants[] __attribute__((weak, visibility("hidden")));
static int64_t constants[MAX_CONSTANTS];
static int constant_count;

__attribute__((constructor)) static void find_constants(void)
{
    for (const int64_t *at = __start_palisade_constants; at && at < __stop_palisade_constants && constant_count < MAX_CONSTANTS; at++) {
        int is_known = 0;
        for (int i = 0; i < constant_count; i++) {
            is_known |= constants[i] == *at;
        }
        constants[constant_count] = *at;
        constant_count += !is_known;
    }
}

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

/* One of `count` values, by its index; -1 if it is any value, which depends on the seed. */
static int64_t choice(uint64_t count, uint64_t place)
{
    if (pal_is_quiet(place)) {
        return -1;
    }
    uint64_t first = count | HEAD(K_CHOICE, O_PLAIN, 0), second = pal_at(place) | F_CHOSEN;
    pal_decide(first, second);
    int64_t which = (int64_t)pal.given_value - 1;
    if (pal.command.flags & EXPLORE && which < 0) {
        which = 0;
    }
    if (which >= (int64_t)count) {
        pal_stop(R_TURNS, "");
    }
    pal_log(which < 0 ? HEAD(K_CHOICE, O_PLAIN, 0) : first | (uint64_t)which << 24, second);
    return which;
}

static uint64_t draw(void)
{
    struct thread *self = pal.self;
    return mix(mix(pal.command.seed + 0x9e3779b97f4a7c15ull) + ((uint64_t)self->number << 32) + ++self->values);
}

static uint64_t any(void)
{
    uint64_t random = draw();
    return random & 1 ? (random >> 1) % 4 : mix(random);
}

static uint64_t below(uint64_t count, uint64_t place)
{
    int64_t which = choice(count, place);
    return which >= 0 ? (uint64_t)which : any() % count;
}

/* Values of a type at which programs often change what they do: small ones, the smallest and the largest one, and
 * constants. Returns how many there are. */
static uint64_t telling(int is_signed, unsigned bits, uint64_t *values)
{
    uint64_t top = 1ull << (bits - 1), all = top | (top - 1), count = FEW;
    const uint64_t signed_values[FEW] = {0, 1, 2, 3, 4, all, top, top - 1};
    const uint64_t unsigned_values[FEW] = {0, 1, 2, 3, 4, 5, top, all};
    for (int i = 0; i < FEW; i++) {
        values[i] = (is_signed ? signed_values : unsigned_values)[i];
    }
    for (int i = 0; i < constant_count; i++) {
        uint64_t value = (uint64_t)constants[i] & all;
        int64_t low = is_signed ? -(int64_t)(top - 1) - 1 : 0, high = is_signed ? (int64_t)(top - 1) : bits < 64 ? (int64_t)all : INT64_MAX;
        int is_new = constants[i] >= low && constants[i] <= high;
        for (uint64_t j = 0; j < count; j++) {
            is_new &= values[j] != value;
        }
        if (is_new) {
            values[count++] = value;
        }
    }
    return count;
}

static uint64_t wide(int is_signed, unsigned bits, uint64_t place)
{
    uint64_t values[FEW + MAX_CONSTANTS], count = telling(is_signed, bits, values);
    int64_t which = choice(count, place);
    if (which < 0) {
        uint64_t random = draw(), rest = random >> 2;
        return random & 1 ? rest % 4 : random & 2 ? values[rest % count] : mix(random);
    }
    if (pal.command.flags & EXPLORE) {
        pal_note(N_VALUE, place);
    }
    return values[which];
}

#define NONDET(type, name)                                                                         \
    WEAK type __VERIFIER_nondet_##name(void)                                                       \
    {                                                                                              \
        return (type)wide((type)-1 < (type)1, 8 * sizeof(type), CALLER);                           \
    }
#define NONDET_BYTE(type, name)                                                                    \
    WEAK type __VERIFIER_nondet_##name(void)                                                       \
    {                                                                                              \
        int64_t which = choice(256, CALLER);                                                       \
        return (type)(which < 0 ? any() : (uint64_t)which);                                        \
    }
NONDET_BYTE(char, char)
NONDET_BYTE(signed char, schar)
NONDET_BYTE(unsigned char, uchar)
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
    return below(2, CALLER);
}

WEAK _Bool __VERIFIER_nondet__Bool(void)
{
    return below(2, CALLER);
}

/* A value from `low` to `high`. */
WEAK long __VERIFIER_nondet_range(long low, long high)
{
    if (low > high || (uint64_t)high - (uint64_t)low >= MAX_RANGE) {
        pal_stop(R_UNSUPPORTED, "__VERIFIER_nondet_range is called with an empty range, or with one of more than 65536 values");
    }
    return (long)((uint64_t)low + below((uint64_t)high - (uint64_t)low + 1, CALLER));
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
