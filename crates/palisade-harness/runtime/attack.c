/* Random schedules in which one thread delays its stores.
 *
 * If a program behaves differently with the store buffers of TSO, it does so in an execution in which a single thread
 * delays stores (Bouajjani, Derevenetc and Meyer, "Checking and enforcing robustness against TSO", ESOP 2013). They
 * call this thread the attacker and the others helpers. What goes wrong there usually takes three parts: the attacker
 * stores, reads, and is left with its stores pending; helpers run and do not see these stores; and the attacker
 * continues, perhaps while a helper is in the middle of something. Schedules with random switches seldom have all
 * three.
 *
 * So some of the random schedules look for exactly this. From a random store on, the stores of one thread are held
 * back, and those of all others reach memory at once. While the attacker has pending stores, it is left with a
 * certain probability. Then the others run for a random number of steps, or as long as they can. Then the attacker
 * runs until its buffer is empty, and everything starts over. All of these numbers are drawn anew for every schedule.
 *
 * Only steps that other threads can see count, not those on the thread's own stack. In most of these schedules,
 * threads are left only before steps that write. Others then see the same memory as if the thread had been left before
 * the reads that precede the write, but when the thread continues it has already read: this is where updates get
 * lost. */

#include "palisade.h"

enum part { BEFORE, HELPERS, AFTER };

/* How long a part may take, and all together: whatever threads wait for happens eventually. */
enum { LONGEST_PART = 256, LONGEST = 1 << 14 };

static enum part part;
static struct thread *attacker;
static uint32_t stores_before; /* how many threads store before the attacker does */
static uint32_t begins;        /* it begins to hold stores back at one of this many stores */
static uint32_t leaves;        /* the attacker is left in one of this many steps */
static uint32_t most;          /* how many steps helpers take; 0 for as many as they can */
static uint32_t left;          /* how many steps are left that helpers may take */
static uint32_t part_steps;    /* how many steps of any kind the part has taken */
static uint32_t stays;         /* other threads are left in one of this many steps */
static int at_writes;          /* only steps that write count */

void pal_begin_attack(uint64_t random)
{
    static const uint32_t beginning[] = {1, 2, 4, 4}, leaving[] = {2, 2, 4, 8}, staying[] = {4, 16, 64, 256};
    static const uint32_t lengths[] = {0, 4, 8, 32}, writes[] = {0, 0, 4, 8}, threads[] = {0, 0, 0, 0, 1, 1, 1, 2};
    part = BEFORE;
    attacker = NULL;
    at_writes = (random & 3) != 0;
    leaves = leaving[random >> 2 & 3];
    most = (at_writes ? writes : lengths)[random >> 4 & 3];
    stays = staying[random >> 6 & 3];
    stores_before = threads[random >> 8 & 7];
    begins = beginning[random >> 11 & 3];
}

/* A thread stores for the first time, where others can see it. */
static int is_attacker(struct thread *self)
{
    if (!attacker && !self->has_stored) {
        self->has_stored = 1;
        attacker = stores_before-- ? NULL : self;
    }
    return self == attacker;
}

/* Whether a store of the calling thread is held back. Those before it in the buffer have to reach memory first, so
 * it matters which one is the first. */
int pal_is_delayed(struct thread *self)
{
    return is_attacker(self) && (self->pending || pal_random() % begins == 0);
}

static struct thread *any_but(const struct thread *not)
{
    int is_excluded = not && not->place >= 0, count = pal.ready_count - is_excluded;
    if (count <= 0) {
        return NULL;
    }
    int index = (int)(pal_random() % (uint64_t)count);
    return pal.ready[index + (is_excluded && index >= not->place)];
}

static int counts(const struct thread *self)
{
    enum kind kind = KIND_OF(self->first);
    return !at_writes || (kind != K_LOAD && kind != K_LOCKED_LOAD && kind != K_PAUSE);
}

/* The thread that continues. `is_private`: the next step of the running thread is on its own stack. `is_idle`: it
 * only waits. There are threads that can run. */
struct thread *pal_attack(int is_private, int is_idle)
{
    struct thread *self = pal.self, *next = NULL;
    int can_run = self->place >= 0, may_leave = counts(self);
    if (can_run && is_private) {
        return self;
    }
    int is_attacking = attacker && attacker->pending;
    if (!is_attacking) {
        part = BEFORE;
    }
    part_steps = part == BEFORE ? 0 : part_steps + 1;
    if (pal.steps > LONGEST || part_steps > 2 * LONGEST_PART || (part == AFTER && is_idle)) {
        /* From now on, stores reach memory as in other schedules. */
        pal.attacks = 0;
    }
    if (part == BEFORE && is_attacking && self == attacker && may_leave && pal_random() % leaves == 0) {
        next = any_but(attacker);
        if (next) {
            part = HELPERS;
            part_steps = 0;
            left = most ? 1 + (uint32_t)(pal_random() % most) : LONGEST_PART;
            return next;
        }
    }
    if (part == HELPERS) {
        left -= may_leave && left;
        if ((!left || is_idle || part_steps > LONGEST_PART) && attacker->place >= 0) {
            part = AFTER;
            part_steps = 0;
            return attacker;
        }
        int stay = can_run && !is_idle && self != attacker && (!may_leave || pal_random() % stays);
        next = stay ? self : any_but(attacker);
        return next ? next : attacker;
    }
    int stay = can_run && !is_idle && (part == AFTER || !may_leave || pal_random() % stays);
    return stay ? self : any_but(can_run && pal.ready_count > 1 ? self : NULL);
}
