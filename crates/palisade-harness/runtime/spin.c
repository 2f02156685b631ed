/* Loops that change nothing, for a search through all executions.
 *
 * A thread that has come back to a state in which it was before, and has written nothing in between, would go round for ever unless somebody else changes what it looks at. An
 * execution in which it goes on later is the same as one in which it looks later, and the search has that one anyway; so the thread ends here.
 *
 * The state of a thread is its stack and its registers: all memory that others can see is written by way of the runtime, and would count as a change. Writes to its own stack are part of
 * the state; they count as changes too once anybody else has touched that stack. */

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

/* Somebody who touches another thread's stack: what that thread has there is not its own any more. */
static void note_sharing(const struct thread *self, uint64_t address)
{
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        struct shared *shared = pal.shared;
        if (thread != self && pal_is_on_stack(thread, address) && !shared->shares_stack[thread->number]) {
            shared->shares_stack[thread->number] = 1;
            if (shared->trusts_stack[thread->number]) {
                /* A round of a loop that did not count as a change would count now: the search has to begin again. */
                pal_note(N_SHARED_STACK, 0);
            }
        }
    }
}

/* Takes note of whether the thread has changed anything since it was chosen last, by what it has logged. Also called when the log is emptied. */
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
        if ((kind == K_STORE || kind == K_LOCKED) && pal_is_on_stack(self, record[0] & ADDRESS_BITS) && !shared->shares_stack[self->number]) {
            shared->trusts_stack[self->number] = 1;
            continue;
        }
        self->has_written = 1;
    }
    self->log_mark = at;
}

int pal_is_spinning(struct thread *self, uint64_t first, const uint64_t *stack)
{
    if (KIND_OF(first) <= K_LOCKED_LOAD) {
        note_sharing(self, first & ADDRESS_BITS);
    }
    pal_note_writes(self);
    if (self->has_written || self->look_count == MAX_LOOKS) {
        self->look_count = 0;
    }
    if (self->look_count && self->looks[self->look_count - 1].is_new) {
        /* Nobody has run since it looked: this is what it saw. */
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

/* Whether what the thread saw in its last round is still there. */
int pal_spins_for_ever(struct thread *thread)
{
    for (unsigned i = thread->round_from; i < thread->look_count; i++) {
        struct look *look = &thread->looks[i];
        if (look->size && value_at(look->address, look->size) != look->value) {
            return 0;
        }
    }
    return 1;
}
