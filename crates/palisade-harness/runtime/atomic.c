/* Atomic accesses, which compilers leave to the runtime. Only one thread runs at a time, so plain operations
 * are enough.
 *
 * On x86, a sequentially consistent store is an `xchg`, so it is a locked instruction here. For the hardware,
 * other stores are plain stores, and other fences are no instructions at all. Their memory order is logged
 * for two reasons: it determines happens-before of the language, and it matters on machines that do not keep
 * stores in order. */

#include "palisade.h"

typedef unsigned char a8;
typedef unsigned short a16;
typedef unsigned int a32;
typedef unsigned long long a64;
typedef __uint128_t a128 __attribute__((aligned(16)));

static const unsigned char orders[8] = {O_RELAXED, O_ACQUIRE, O_ACQUIRE, O_RELEASE, O_ACQ_REL, O_SEQ_CST, O_SEQ_CST, O_SEQ_CST};

static inline uint64_t order(int memory_order)
{
    return orders[memory_order & 7];
}

/* Decides now and logs later, because whether a compare-and-swap writes is known only once it has been
 * chosen. */
static inline void decide(const volatile void *address, uint64_t expected, uint64_t size, uint64_t head, uint64_t place)
{
    if (!pal_is_quiet(place)) {
        pal_writes_if(expected, size);
        pal_decide(((uint64_t)address & ADDRESS_BITS) | head, pal_at(place) | F_CHOSEN);
    }
}

/* What was read may never have been written. */
static inline void loads(const volatile void *address, uint64_t head, uint64_t place)
{
    if (pal_may_be_fresh((uint64_t)address)) {
        pal_loads_atomic(((uint64_t)address & ADDRESS_BITS) | head, place);
    }
}

static inline void log_as(const volatile void *address, uint64_t head, uint64_t place)
{
    if (likely(!pal.quiet)) {
        uint64_t first = ((uint64_t)address & ADDRESS_BITS) | head, second = pal_at(place) | F_CHOSEN;
        pal_check_access(first, second);
        pal_log(first, second);
        loads(address, head, place);
    }
}

/* A compare-and-swap accesses the expected value plainly, in steps of their own. If it is on the thread's own
 * stack, as it usually is, it belongs to the state of the thread like the compiler's other accesses there. */
static inline void expected_event(const void *expected, enum kind kind, size_t size, uint64_t place)
{
    if (likely(!pal.quiet) && !pal_is_on_stack(pal.self, (uint64_t)expected)) {
        pal_event((uint64_t)expected, HEAD(kind, O_PLAIN, size), place);
    }
}

#define STORE_KIND(memory_order) ((memory_order & 7) >= 5 ? K_LOCKED : K_STORE)

#define RMW(bits, name, expression)                                                                \
    EXPORT a##bits __tsan_atomic##bits##_##name(volatile a##bits *a, a##bits v, int mo)            \
    {                                                                                              \
        pal_event((uint64_t)a, HEAD(K_LOCKED, order(mo), sizeof *a), CALLER);                      \
        loads(a, HEAD(K_LOCKED, order(mo), sizeof *a), CALLER);                                    \
        a##bits old = *a, new = (a##bits)(expression);                                              \
        *a = new;                                                                                  \
        pal.self->silent += old == new;                                                            \
        return old;                                                                                \
    }

#define CAS(bits, strength)                                                                        \
    EXPORT int __tsan_atomic##bits##_compare_exchange_##strength(volatile a##bits *a, a##bits *c,  \
                                                                 a##bits v, int mo, int fail)      \
    {                                                                                              \
        expected_event(c, K_LOAD, sizeof *c, CALLER);                                              \
        a##bits expected = *c;                                                                     \
        decide(a, (uint64_t)expected, sizeof *a, HEAD(K_LOCKED, order(mo), sizeof *a), CALLER);    \
        a##bits old = *a;                                                                          \
        if (old == expected) {                                                                     \
            log_as(a, HEAD(K_LOCKED, order(mo), sizeof *a), CALLER);                               \
            *a = v;                                                                                \
            pal.self->silent += old == v;                                                          \
            return 1;                                                                              \
        }                                                                                          \
        log_as(a, HEAD(K_LOCKED_LOAD, order(fail), sizeof *a), CALLER);                            \
        expected_event(c, K_STORE, sizeof *c, CALLER);                                             \
        *c = old;                                                                                  \
        return 0;                                                                                  \
    }

#define ATOMICS(bits)                                                                              \
    EXPORT a##bits __tsan_atomic##bits##_load(const volatile a##bits *a, int mo)                   \
    {                                                                                              \
        pal_event((uint64_t)a, HEAD(K_LOAD, order(mo), sizeof *a), CALLER);                        \
        loads(a, HEAD(K_LOAD, order(mo), sizeof *a), CALLER);                                      \
        /* clang leaves the load where it was as well, and does not use what it reads. */          \
        pal_announce((uint64_t)a, sizeof *a, K_LOAD);                                              \
        return *a;                                                                                 \
    }                                                                                              \
    EXPORT void __tsan_atomic##bits##_store(volatile a##bits *a, a##bits v, int mo)                \
    {                                                                                              \
        pal_event((uint64_t)a, HEAD(STORE_KIND(mo), order(mo), sizeof *a), CALLER);                \
        *a = v;                                                                                    \
    }                                                                                              \
    RMW(bits, exchange, v)                                                                         \
    RMW(bits, fetch_add, old + v)                                                                  \
    RMW(bits, fetch_sub, old - v)                                                                  \
    RMW(bits, fetch_and, old & v)                                                                  \
    RMW(bits, fetch_or, old | v)                                                                   \
    RMW(bits, fetch_xor, old ^ v)                                                                  \
    RMW(bits, fetch_nand, ~(old & v))                                                              \
    CAS(bits, strong)                                                                              \
    CAS(bits, weak)                                                                                \
    EXPORT a##bits __tsan_atomic##bits##_compare_exchange_val(volatile a##bits *a, a##bits c,      \
                                                              a##bits v, int mo, int fail)         \
    {                                                                                              \
        decide(a, (uint64_t)c, sizeof *a, HEAD(K_LOCKED, order(mo), sizeof *a), CALLER);           \
        a##bits old = *a;                                                                          \
        if (old == c) {                                                                            \
            log_as(a, HEAD(K_LOCKED, order(mo), sizeof *a), CALLER);                               \
            *a = v;                                                                                \
        } else {                                                                                   \
            log_as(a, HEAD(K_LOCKED_LOAD, order(fail), sizeof *a), CALLER);                        \
        }                                                                                          \
        return old;                                                                                \
    }

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)
ATOMICS(128)

static void fence(int mo, uint64_t place)
{
    if ((mo & 7) >= 5) {
        pal_event(0, HEAD(K_FENCE, O_SEQ_CST, 0), place);
    } else if ((mo & 7) > 0) {
        pal_also(0, HEAD(K_FENCE, order(mo), 0), place);
    }
}

EXPORT void __tsan_atomic_thread_fence(int mo)
{
    fence(mo, CALLER);
}

EXPORT void __tsan_atomic_signal_fence(int mo)
{
    (void)mo;
}

/* The generic form, which clang uses for sixteen bytes, is the only one whose size is not known at compile
 * time. */
EXPORT void pal_generic_load(size_t size, const volatile void *a, void *to, int mo) __asm__("__atomic_load");
EXPORT void pal_generic_store(size_t size, volatile void *a, void *from, int mo) __asm__("__atomic_store");
EXPORT void pal_generic_exchange(size_t size, volatile void *a, void *from, void *to, int mo) __asm__("__atomic_exchange");
EXPORT int pal_generic_compare_exchange(size_t size, volatile void *a, void *expected, void *desired, int mo,
                                        int fail) __asm__("__atomic_compare_exchange");

void pal_generic_load(size_t size, const volatile void *a, void *to, int mo)
{
    pal_event((uint64_t)a, HEAD(K_LOAD, order(mo), size), CALLER);
    pal_copy(to, (const void *)a, size);
}

void pal_generic_store(size_t size, volatile void *a, void *from, int mo)
{
    pal_event((uint64_t)a, HEAD(STORE_KIND(mo), order(mo), size), CALLER);
    pal_copy((void *)a, from, size);
}

void pal_generic_exchange(size_t size, volatile void *a, void *from, void *to, int mo)
{
    pal_event((uint64_t)a, HEAD(K_LOCKED, order(mo), size), CALLER);
    pal_copy(to, (const void *)a, size);
    pal_copy((void *)a, from, size);
}

int pal_generic_compare_exchange(size_t size, volatile void *a, void *expected, void *desired, int mo, int fail)
{
    expected_event(expected, K_LOAD, size, CALLER);
    char wanted[size], old[size];
    pal_copy(wanted, expected, size);
    decide(a, 0, 0, HEAD(K_LOCKED, order(mo), size), CALLER);
    pal_copy(old, (const void *)a, size);
    int same = 1;
    for (size_t i = 0; i < size; i++) {
        same &= old[i] == wanted[i];
    }
    log_as(a, HEAD(same ? K_LOCKED : K_LOCKED_LOAD, order(same ? mo : fail), size), CALLER);
    if (same) {
        pal_copy((void *)a, desired, size);
    } else {
        expected_event(expected, K_STORE, size, CALLER);
        pal_copy(expected, old, size);
    }
    return same;
}
