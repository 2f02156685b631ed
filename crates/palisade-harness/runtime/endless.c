/* Runs that never end.
 *
 * A random schedule cannot distinguish a loop that will end from one that will not. So from time to time, when an
 * execution has become long, all threads and buffers take turns for a while. If the whole state returns to what
 * it was, with the same actor next, then the same steps follow again, and the program never ends under this
 * schedule, which treats all threads fairly and lets every store reach memory.
 *
 * The state is
 *   - the stacks and registers of all threads, and what each is about to do;
 *   - pending stores;
 *   - all memory that was written since the state with which it is compared. Words are kept with the value they
 *     had then.
 * What code that is not instrumented writes elsewhere is not compared: it belongs to the C library. Executions in
 * which a thread waits until a certain time, or in which threads use futexes meanwhile, are not judged.
 *
 * The state to compare with is taken anew after 1, 2, 4, ... rounds, so loops of any length are found (Brent, "An
 * improved Monte Carlo factorization algorithm", BIT 20, 1980).
 *
 * If threads wrote nothing but their own stacks in between, all of them wait in loops, and the execution is
 * stuck. Otherwise it is a livelock. */

#include "palisade.h"

/* When to try first, how much later each time, and for how many steps. */
enum { FIRST_TRY = 4096, LATER = 8, TRY_STEPS = 1 << 14 };
/* How many words may be written in a loop, and how many of them a step covers at most. */
enum { MAX_WORDS = 1 << 12, LOCK_WORDS = 3 };

static struct {
    uint64_t word, value; /* the address divided by 8; 0 for none */
} words[2 * MAX_WORDS];
static unsigned word_count;

static uint64_t end, rounds, next_base, base_state;
static struct actor base;
static int is_based, has_written, gives_up;

void pal_begin_endless(void)
{
    pal.next_try = pal.command.flags & EXPLORE || !pal.is_served ? UINT64_MAX : FIRST_TRY;
}

static void forget(void)
{
    for (unsigned i = 0; i < 2 * MAX_WORDS; i++) {
        words[i].word = 0;
    }
    word_count = 0;
    has_written = 0;
}

/* Called by `pal_check` when it is time. */
void pal_try_endless(void)
{
    pal.tries_endless = 1;
    pal.careful = 1;
    pal_wipes = 1;
    end = pal.steps + TRY_STEPS;
    rounds = 0;
    next_base = 1;
    is_based = gives_up = 0;
    pal.next_try = pal.next_try * LATER + TRY_STEPS;
    for (int i = 0; i < pal.ready_count; i++) {
        pal.ready[i]->state_from = NULL;
    }
    forget();
}

static void stop_trying(void)
{
    pal.tries_endless = 0;
    pal_wipes = 0;
    pal.careful = pal.strategy != S_RANDOM || pal.command.choices || pal.command.flags || pal.buffers;
}

/* Memory is about to be written. */
void pal_note_written(const struct thread *writer, uint64_t address, uint64_t size)
{
    if (!is_based) {
        return;
    }
    has_written |= !pal_is_on_stack(writer, address);
    for (uint64_t word = address / 8; word <= (address + size - 1) / 8; word++) {
        uint64_t slot = word * 0x9e3779b97f4a7c15ull >> 40;
        while (words[slot %= 2 * MAX_WORDS].word && words[slot].word != word) {
            slot++;
        }
        if (!words[slot].word) {
            if (++word_count > MAX_WORDS) {
                gives_up = 1;
                return;
            }
            words[slot].word = word;
            words[slot].value = *(volatile uint64_t *)(word * 8);
        }
    }
}

/* The calling thread has changed something that is not in memory: the position in a file, or a key. */
void pal_changes_outside(void)
{
    gives_up = 1;
    if (pal.self) {
        pal.self->has_written = 1;
    }
}

/* A step is being logged: it happens when this returns. */
void pal_note_step(uint64_t first, uint64_t second)
{
    uint64_t address = first & ADDRESS_BITS, size = first >> 48 & 0xff;
    switch (KIND_OF(first)) {
    case K_STORE:
        if (!(second & F_BUFFERED)) {
            pal_note_written(pal.self, address, size);
        }
        break;
    case K_LOCKED:
        /* The runtime keeps its own data in locks, too. */
        pal_note_written(pal.self, address, size == 4 ? 8 * LOCK_WORDS : size);
        break;
    case K_LOAD:
    case K_LOCKED_LOAD:
    case K_PAUSE:
    case K_UPDATE:
    case K_STORE_FENCE:
    case K_SITE:
    case K_VALUE:
        break;
    case K_FENCE:
        gives_up |= size != 0;
        break;
    default:
        gives_up = 1;
    }
}

static uint64_t mix(uint64_t state, uint64_t value)
{
    __uint128_t product = (__uint128_t)(state ^ value) * 0xa0761d6478bd642full;
    return (uint64_t)(product >> 64) ^ (uint64_t)product ^ value;
}

/* The state of threads and buffers, without memory. No buffer is shown. Returns 0 if it is not known. */
static uint64_t state_now(void)
{
    uint64_t state = 1;
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->finished) {
            continue;
        }
        if (!thread->state_from || thread->deadline) {
            return 0;
        }
        state = mix(mix(mix(state, thread->number), thread->first), thread->second);
        state = mix(state, thread->place >= 0);
        for (const uint64_t *at = thread->state_from; at < (const uint64_t *)thread->stack_end; at++) {
            state = mix(state, *at);
        }
        state = pal_mix_pending(thread, state, mix);
    }
    return state ? state : 1;
}

static int is_memory_as_before(void)
{
    for (unsigned i = 0; i < 2 * MAX_WORDS; i++) {
        if (words[i].word && *(volatile uint64_t *)(words[i].word * 8) != words[i].value) {
            return 0;
        }
    }
    return 1;
}

/* Called before each decision while all take turns. `next` is the actor whose turn it is. */
void pal_look_for_loop(struct actor next)
{
    if (pal.steps > end || gives_up) {
        stop_trying();
        return;
    }
    if (is_based && (next.thread != base.thread || (next.pending != 0) != (base.pending != 0))) {
        return;
    }
    pal_hide();
    uint64_t state = state_now();
    if (!state) {
        return;
    }
    if (is_based && state == base_state && is_memory_as_before()) {
        for (int i = 0; i < pal.thread_count; i++) {
            struct thread *thread = pal.threads[i];
            if (!thread->finished) {
                uint64_t how = thread->place >= 0 ? STUCK_SPINS : STUCK_DEADLOCK;
                pal_log((thread->first & ADDRESS_BITS) | HEAD(K_STUCK, O_PLAIN, how),
                        (thread->second & ADDRESS_BITS) | thread->tag);
            }
        }
        pal_stop(has_written ? R_LIVELOCK : R_SPUN, "");
    }
    if (++rounds >= next_base || !is_based) {
        next_base = 2 * rounds;
        base_state = state;
        base = next;
        is_based = 1;
        forget();
    }
}
