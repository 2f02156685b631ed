/* Loops that change nothing, for a search through all executions.
 *
 * If a thread returns to an earlier state and has written nothing in between, it would loop forever unless
 * another thread changes what it reads. An execution in which it leaves the loop later is equivalent to one
 * in which it reads later, which the search covers anyway. So the thread ends here.
 *
 * The state of a thread is its stack and its registers. All memory that others can see is written through the
 * runtime, and such a write counts as a change. Writes to its own stack are part of the state. They also
 * count as changes if another thread touches the same words, in any execution of the search. If that is found out
 * only later, the search starts again. The words of a stack that are ever shared are few, so this ends. Two kinds
 * of writes change nothing:
 *   - a compare-and-swap that fails. The value that it stores as the expected one is on the stack of the
 *     thread, or counts as a change;
 *   - a locked instruction that writes the value that is there already, as when a thread tries to take a lock
 *     that is taken. Without such an iteration, memory and the state of the thread are the same. So all that
 *     happens afterwards can happen in an execution without it as well.
 */

#include "palisade.h"

static uint64_t hash(const uint64_t *from, const uint64_t *to)
{
    uint64_t state = 0x9e3779b97f4a7c15ull;
    for (; from < to; from++) {
        __uint128_t product = (__uint128_t)(state ^ *from) * 0xa0761d6478bd642full;
        state = (uint64_t)(product >> 64) ^ (uint64_t)product;
    }
    return state;
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

/* Whether a set of words contains one. */
static int contains(const uint64_t *set, uint64_t word)
{
    for (uint64_t at = word * 0x9e3779b97f4a7c15ull >> 50;; at = (at + 1) % MAX_SHARED) {
        if (!set[at] || set[at] == word) {
            return set[at] == word;
        }
    }
}

/* Adds a word to a set. Returns whether there was room. */
static int add(uint64_t *set, uint32_t *count, uint64_t word)
{
    uint64_t at = word * 0x9e3779b97f4a7c15ull >> 50;
    while (set[at] && set[at] != word) {
        at = (at + 1) % MAX_SHARED;
    }
    if (!set[at]) {
        if (*count >= MAX_SHARED / 2) {
            return 0;
        }
        set[at] = word;
        ++*count;
    }
    return 1;
}

enum { WORD = 8 };

static uint64_t first_word(uint64_t first)
{
    return (first & ADDRESS_BITS) / WORD;
}

static uint64_t last_word(uint64_t first)
{
    uint64_t size = first >> 48 & 0xff;
    return ((first & ADDRESS_BITS) + (size ? size : 1) - 1) / WORD;
}

/* If a thread touches words of another one's stack, they are no longer private. */
static void note_sharing(const struct thread *self, uint64_t first)
{
    struct shared *shared = pal.shared;
    for (int i = 0; i < pal.thread_count; i++) {
        const struct thread *thread = pal.threads[i];
        if (thread == self || !pal_is_on_stack(thread, first & ADDRESS_BITS)) {
            continue;
        }
        for (uint64_t word = first_word(first); word <= last_word(first); word++) {
            if (contains(shared->shared_words, word)) {
                continue;
            }
            add(shared->shared_words, &shared->shared_count, word);
            if (contains(shared->private_words, word)) {
                /* An iteration that did not count as a change would count now. The search has to start
                 * again. */
                pal_note(N_SHARED_STACK, 0);
            }
        }
    }
}

/* Whether a write of a thread to its own stack is private. If it is, that is remembered. */
static int is_private(uint64_t first)
{
    struct shared *shared = pal.shared;
    for (uint64_t word = first_word(first); word <= last_word(first); word++) {
        if (shared->shared_count >= MAX_SHARED / 2 || contains(shared->shared_words, word)) {
            return 0;
        }
        if (!add(shared->private_words, &shared->private_count, word)) {
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
        if (record[1] & F_PENDING || kind == K_LOAD || kind == K_LOCKED_LOAD || kind == K_PAUSE || kind == K_FENCE) {
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
    struct look look = {.state = hash(stack, (const uint64_t *)self->stack_end), .address = first & ADDRESS_BITS, .is_new = 1};
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
