/* Loops that change nothing, for a search through all executions.
 *
 * If a thread returns to an earlier state and has written nothing in between, it would loop forever unless
 * another thread changes what it reads. An execution in which it leaves the loop later is equivalent to one
 * in which it reads later, which the search covers anyway. So the thread ends here.
 *
 * The state of a thread is its registers and those bytes of its stack that no other thread touches in any
 * execution of the search. All memory that others can see is written through the runtime, and such a write
 * counts as a change. The bytes of a stack that others touch are such memory. They must not belong to the state:
 * whether the thread ends here may depend only on what it has done and read. If another thread is seen to touch
 * a byte for the first time, the search starts again with that knowledge. Up to MAX_SHARED / 2 words with such bytes are kept, so
 * this ends. If there are more, writes to stacks count as changes, and a search may find that the program does not
 * repeat itself.
 *
 * Two kinds of writes change nothing:
 *   - a compare-and-swap that fails. The value that it stores as the expected one is on the stack of the
 *     thread, or counts as a change;
 *   - a locked instruction that writes the value that is there already, as when a thread tries to take a lock
 *     that is taken. Without such an iteration, memory and the state of the thread are the same. So all that
 *     happens afterwards can happen in an execution without it as well.
 */

#include "palisade.h"

enum { WORD = 8 };

/* Where a word of a stack is in the set of shared words, or where it would be. */
static uint64_t *slot_of(uint64_t word)
{
    uint64_t *set = pal.shared->shared_words, at = word * 0x9e3779b97f4a7c15ull >> 50;
    while (set[at] && set[at] >> WORD != word) {
        at = (at + 1) % MAX_SHARED;
    }
    return &set[at];
}

/* The bytes of a word that are known to be shared, one bit each. */
static uint64_t shared_bytes(uint64_t word)
{
    return *slot_of(word) & ((1 << WORD) - 1);
}

/* The bytes of a word that an access touches, one bit each. */
static uint64_t touched_bytes(uint64_t first, uint64_t word)
{
    uint64_t size = first >> 48 & 0xff, from = first & ADDRESS_BITS, to = from + (size ? size : 1), bytes = 0;
    for (uint64_t i = 0; i < WORD; i++) {
        uint64_t at = word * WORD + i;
        bytes |= (uint64_t)(at >= from && at < to) << i;
    }
    return bytes;
}

static uint64_t first_word(uint64_t first)
{
    return (first & ADDRESS_BITS) / WORD;
}

static uint64_t last_word(uint64_t first)
{
    uint64_t size = first >> 48 & 0xff;
    return ((first & ADDRESS_BITS) + (size ? size : 1) - 1) / WORD;
}

/* What belongs to the state of the owner. */
static uint64_t private_part(const uint64_t *from)
{
    uint64_t value = *from, shared = shared_bytes((uint64_t)from / WORD);
    for (uint64_t i = 0; shared && i < WORD; i++) {
        value &= shared >> i & 1 ? ~(0xffull << 8 * i) : ~0ull;
    }
    return value;
}

static inline uint64_t mixed(uint64_t state, uint64_t value)
{
    __uint128_t product = (__uint128_t)(state ^ value) * 0xa0761d6478bd642full;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Four states side by side take less time than one: the processor need not wait for a product to begin the next. */
static uint64_t hash(const uint64_t *from, const uint64_t *to)
{
    enum { SIDE_BY_SIDE = 4 };
    uint64_t states[SIDE_BY_SIDE] = {0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull, 0x94d049bb133111ebull, 0xd6e8feb86659fd93ull};
    int shares = pal.shared->shared_count != 0;
    for (; to - from >= SIDE_BY_SIDE; from += SIDE_BY_SIDE) {
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            states[i] = mixed(states[i], unlikely(shares) ? private_part(from + i) : from[i]);
        }
    }
    for (; from < to; from++) {
        states[0] = mixed(states[0], unlikely(shares) ? private_part(from) : *from);
    }
    for (int i = 1; i < SIDE_BY_SIDE; i++) {
        states[0] = mixed(states[0], states[i]);
    }
    return states[0];
}

static uint64_t value_at(uint64_t address, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size && i < 8; i++) {
        value |= (uint64_t)((const volatile unsigned char *)address)[i] << 8 * i;
    }
    return value;
}

int pal_is_on_stack(const struct thread *thread, uint64_t address)
{
    return address < (uint64_t)thread->stack_end && address >= (uint64_t)thread->stack_low;
}

/* If a thread touches another one's stack, these bytes are no longer private, and the search has to start again. */
static void note_sharing(const struct thread *self, uint64_t first)
{
    struct shared *shared = pal.shared;
    for (int i = 0; i < pal.thread_count; i++) {
        const struct thread *thread = pal.threads[i];
        if (thread == self || !pal_is_on_stack(thread, first & ADDRESS_BITS)) {
            continue;
        }
        for (uint64_t word = first_word(first); word <= last_word(first); word++) {
            uint64_t bytes = touched_bytes(first, word), *slot = slot_of(word);
            if (!(bytes & ~*slot) || (!*slot && shared->shared_count >= MAX_SHARED / 2)) {
                continue;
            }
            shared->shared_count += !*slot;
            *slot |= word << WORD | bytes;
            shared->is_sharing_new = 1;
            if (pal.is_served) {
                uint64_t what = N_SHARED_STACK | (*slot & ((1 << WORD) - 1)) << NOTE_BITS;
                pal_log(what | HEAD(K_NOTE, O_PLAIN, 0), (word * WORD & ADDRESS_BITS) | self->tag);
            }
        }
    }
}

/* A barrier is used by more threads than it waits for: the search has to start again (wait.c). */
void pal_note_shared(uint64_t address)
{
    struct shared *shared = pal.shared;
    uint64_t word = address / WORD, *slot = slot_of(word);
    if (*slot) {
        return;
    }
    if (shared->shared_count >= MAX_SHARED / 2) {
        pal_stop(R_UNSUPPORTED, "too many stack variables and barriers are shared for a search");
    }
    shared->shared_count++;
    *slot = word << WORD | ((1 << WORD) - 1);
    shared->is_sharing_new = 1;
    if (pal.is_served) {
        uint64_t what = N_SHARED_STACK | (*slot & ((1 << WORD) - 1)) << NOTE_BITS;
        pal_log(what | HEAD(K_NOTE, O_PLAIN, 0), (word * WORD & ADDRESS_BITS) | pal.self->tag);
    }
}

int pal_is_known_shared(uint64_t address)
{
    return pal.shared->shared_count && *slot_of(address / WORD);
}

/* The part of a stack, within a frame, that is known to be shared. Returns 0 if there is none. */
int pal_shared_part(uint64_t low, uint64_t high, uint64_t *from, uint64_t *to)
{
    *from = *to = 0;
    if (pal.shared->shared_count) {
        /* Large frames have more words than the set. */
        int by_set = (high - low) / WORD > MAX_SHARED;
        uint64_t first = by_set ? 0 : low / WORD, last = by_set ? MAX_SHARED : (high + WORD - 1) / WORD;
        for (uint64_t at = first; at < last; at++) {
            uint64_t entry = by_set ? pal.shared->shared_words[at] : *slot_of(at), word = (entry >> WORD) * WORD;
            if (entry && word + WORD > low && word < high) {
                *from = *from && *from < word ? *from : word;
                *to = *to > word + WORD ? *to : word + WORD;
            }
        }
    }
    *from = *from < low ? low : *from;
    *to = *to > high ? high : *to;
    return *to != 0;
}

/* An execution begins, and this is what is known. */
void pal_know_sharing(const uint64_t *words, uint64_t count)
{
    struct shared *shared = pal.shared;
    if (shared->is_sharing_new || shared->shared_count != count) {
        for (uint64_t at = 0; at < MAX_SHARED && shared->shared_count; at++) {
            shared->shared_words[at] = 0;
        }
        shared->shared_count = 0;
        for (uint64_t i = 0; i < count && i < MAX_SHARED / 2; i++) {
            *slot_of(words[i] >> WORD) = words[i];
            shared->shared_count++;
        }
    } else {
        for (uint64_t i = 0; i < count; i++) {
            *slot_of(words[i] >> WORD) = words[i];
        }
    }
    shared->is_sharing_new = 0;
}

/* Whether a write of a thread to its own stack is part of its state. */
static int is_private(uint64_t first)
{
    for (uint64_t word = first_word(first); word <= last_word(first); word++) {
        if (pal.shared->shared_count >= MAX_SHARED / 2 || shared_bytes(word) & touched_bytes(first, word)) {
            return 0;
        }
    }
    return 1;
}

/* Records whether the thread has changed anything since it was last chosen, according to its log records.
 * Also called when the log is emptied. */
void pal_note_writes(struct thread *self)
{
    struct shared *shared = pal.shared;
    uint64_t at = shared->at;
    for (uint64_t from = self->log_mark; from < at; from += 16) {
        const uint64_t *record = (const uint64_t *)(pal.log + from);
        enum kind kind = KIND_OF(record[0]);
        if (record[1] & F_PENDING || kind == K_LOAD || kind == K_LOCKED_LOAD || kind == K_PAUSE || kind == K_FENCE || kind == K_SITE || kind == K_VALUE) {
            continue;
        }
        /* A frame that is entered and left is as it was. */
        if (kind == K_FREE && pal_is_on_stack(self, record[0] & ADDRESS_BITS)) {
            continue;
        }
        if ((kind == K_STORE || kind == K_LOCKED) && pal_is_on_stack(self, record[0] & ADDRESS_BITS) && is_private(record[0])) {
            continue;
        }
        if (kind == K_LOCKED && self->silent) {
            self->silent--;
            continue;
        }
        self->has_written = 1;
    }
    self->log_mark = at;
    self->silent = 0;
}

int pal_is_spinning(struct thread *self, uint64_t first, const uint64_t *stack)
{
    if (KIND_OF(first) <= K_LOCKED_LOAD) {
        note_sharing(self, first);
    }
    pal_note_writes(self);
    if (self->has_written || self->look_count == MAX_LOOKS) {
        self->look_count = 0;
    }
    if (self->look_count && self->looks[self->look_count - 1].is_new) {
        /* No other thread has run since it read, so this is the value that it saw. */
        struct look *last = &self->looks[self->look_count - 1];
        last->value = last->size ? value_at(last->address, last->size) : 0;
        last->is_new = 0;
    }
    enum kind kind = KIND_OF(first);
    if (kind != K_LOAD && kind != K_LOCKED && kind != K_LOCKED_LOAD && kind != K_PAUSE) {
        return 0;
    }
    struct look look = {.state = hash(stack, (const uint64_t *)self->stack_end), .address = first & ADDRESS_BITS, .place = self->second & ADDRESS_BITS, .is_new = 1};
    look.size = kind == K_PAUSE ? 0 : first >> 48 & 0xff;
    for (unsigned i = 0; i < self->look_count; i++) {
        if (self->looks[i].state == look.state) {
            self->round_from = i;
            return 1;
        }
    }
    self->looks[self->look_count++] = look;
    return 0;
}

/* The step of a loop that stands for the whole loop: the one with the lowest place. Where a thread is found to have
 * returned to an earlier state depends on what it has read. NULL if the thread is not in a loop. */
const struct look *pal_loop_of(const struct thread *thread)
{
    const struct look *first = NULL;
    for (unsigned i = thread->round_from; thread->spins && !thread->is_excluded && i < thread->look_count; i++) {
        const struct look *look = &thread->looks[i];
        first = first && first->place <= look->place ? first : look;
    }
    return first;
}

/* Whether the values that the thread saw in its last iteration are still there. */
int pal_spins_forever(struct thread *thread)
{
    for (unsigned i = thread->round_from; i < thread->look_count; i++) {
        struct look *look = &thread->looks[i];
        if (look->size && value_at(look->address, look->size) != look->value) {
            return 0;
        }
    }
    return 1;
}
