/* Which thread continues.
 *
 * The strategies are:
 * - uniformly at random among the threads that can run;
 * - PCT (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with probabilistic
 *   guarantees of finding bugs", ASPLOS 2010): the thread with the highest priority runs, and at depth - 1
 *   random steps the running thread falls below all others;
 * - staying with the running thread;
 * - taking turns.
 *
 * Each may begin with given choices.
 *
 * With store buffers, the buffer of a thread is another actor: its steps let pending stores reach memory. In some
 * random schedules, that is as likely as any other step. In others, some stores are held back for as long as
 * possible, and the rest reach memory at once: what goes wrong usually needs few reorderings and long delays. In every
 * second one, one thread delays its stores (attack.c).
 * Schedules also differ in how long threads keep running. Soon after a store was held back, another thread is
 * likely to continue. For PCT, a buffer has a priority of its own.
 *
 * Under strategies other than the random one, threads that only read and never change anything would run
 * forever. They have to let others run after a while. */

#include "palisade.h"
#include <string.h>
#include <stdio.h>

struct runtime pal = {.quiet = 1, .next_check = UINT64_MAX};

enum {
    MAX_IDLE = 64,      /* events without a write before others have a turn */
    MAX_STREAK = 20000, /* events in total */
    MAX_PART = 128,      /* bytes of a range in one record */
    NANOSECONDS = 1000,  /* the duration of a step */
    NEVER = 0,           /* for `pal.holds` */
    RELEASE = 256,       /* one in this many steps releases a store that is held back */
    PRIVATE = 16,        /* one in this many steps on the own stack is an ordinary one */
    RESTLESS = 8         /* how long a thread keeps running after a store was held back */
};

int pal_always(struct thread *thread)
{
    (void)thread;
    return 1;
}

int pal_never(struct thread *thread)
{
    return thread->timed_out;
}

uint64_t pal_random(void)
{
    return pal_next_random();
}

uint64_t pal_now(void)
{
    /* In a search, what a thread sees must not depend on the number of steps that others have taken. */
    if (pal.command.flags & EXPLORE) {
        return pal.self->own_steps * NANOSECONDS + pal.clock_ahead;
    }
    return pal.steps * NANOSECONDS + pal.clock_ahead;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void log_value(const struct thread *thread, uint64_t value, uint64_t size, uint64_t flags)
{
    pal_log((value & ADDRESS_BITS) | HEAD(K_VALUE, O_PLAIN, size), value >> 48 | thread->tag | flags);
}

/* Whether it is known that memory is compared at an address. It can be read, then. */
static int is_compared(uint64_t address)
{
    for (uint64_t i = 0; i < pal.command.compared; i++) {
        if (pal.compared[i] == address) {
            return 1;
        }
    }
    return 0;
}

/* In a search: what the next step of a thread replaces in memory. */
void pal_log_replaced(const struct thread *thread, uint64_t first, const void *old)
{
    uint64_t size = first >> 48 & 0xff, value = 0;
    if (size <= sizeof value && is_compared(first & ADDRESS_BITS)) {
        pal_copy(&value, old, size);
        log_value(thread, value, size, 0);
    }
}

void pal_announce_step(struct thread *thread)
{
    if (pal.command.flags & EXPLORE && !thread->finished && !thread->spins) {
        int may_wait = thread->ready || (KIND_OF(thread->first) == K_STORE && pal.buffers && (thread->number || thread->unjoined));
        uint64_t flags = F_PENDING | (thread->place < 0 ? F_WAITS : 0) | (may_wait ? F_MAY_WAIT : 0);
        pal_log(thread->first, (thread->second & ~F_CHOSEN) | flags);
        if (thread->is_conditional) {
            log_value(thread, thread->expected, thread->expected_size, F_PENDING | F_CHOSEN);
        }
        for (unsigned i = 0; i < thread->range_count && i < 2; i++) {
            struct announced *range = &thread->ranges[i];
            if (range->kind == K_FREE) {
                pal_log((range->address & ADDRESS_BITS) | HEAD(K_FREE, O_PLAIN, 0), (range->size & ADDRESS_BITS) | thread->tag | F_PENDING | F_CHOSEN);
                continue;
            }
            for (uint64_t at = 0, part; at < range->size; at += part) {
                part = range->size - at < MAX_PART ? range->size - at : MAX_PART;
                uint64_t first = ((range->address + at) & ADDRESS_BITS) | HEAD(range->kind, O_PLAIN, part);
                pal_log(first, (thread->second & ~F_CHOSEN) | F_PENDING | F_CHOSEN);
            }
        }
    }
}

void pal_begin_schedule(void)
{
    pal.random = pal.command.seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    pal.strategy = (enum strategy)pal.command.strategy;
    pal.buffers = pal.command.model != M_SC;
    pal.careful = pal.strategy != S_RANDOM || pal.command.choices || pal.command.flags || pal.buffers;
    if (pal.buffers) {
        static const uint32_t holds[] = {NEVER, 1, 4, 16};
        static const int stickiness[] = {1, 8, 64, 256};
        uint64_t random = pal_next_random() >> 32;
        pal.holds = holds[random % 4];
        pal.stickiness = stickiness[random / 4 % 4];
        pal.attacks = pal.strategy == S_RANDOM && random >> 4 & 1;
        pal_begin_attack(random >> 5);
    }
    uint64_t length = pal.command.length ? pal.command.length : 1000;
    uint64_t depth = pal.command.depth < MAX_CHANGES ? pal.command.depth : MAX_CHANGES;
    pal.change_count = depth > 1 ? (int)depth - 1 : 0;
    for (int i = 0; i < pal.change_count; i++) {
        pal.changes[i] = 1 + pal_next_random() % length;
    }
    /* These are only a few numbers, so insertion sort is enough. */
    for (int i = 1; i < pal.change_count; i++) {
        for (int j = i; j > 0 && by_size(&pal.changes[j - 1], &pal.changes[j]) > 0; j--) {
            uint64_t swap = pal.changes[j];
            pal.changes[j] = pal.changes[j - 1];
            pal.changes[j - 1] = swap;
        }
    }
    pal.lowest = -MAX_CHANGES;
    pal_begin_endless();
    pal_check();
}

void pal_ready(struct thread *thread, int is_ready)
{
    if (is_ready == (thread->place >= 0)) {
        return;
    }
    if (is_ready) {
        thread->place = pal.ready_count;
        pal.ready[pal.ready_count++] = thread;
    } else {
        struct thread *moved = pal.ready[--pal.ready_count];
        pal.ready[thread->place] = moved;
        moved->place = thread->place;
        thread->place = -1;
    }
    if (thread != pal.self) {
        pal_announce_step(thread);
    }
}

void pal_add_thread(struct thread *thread)
{
    thread->place = -1;
    thread->priority = (int)(1 + (pal_next_random() >> 40));
    if (pal.buffers) {
        thread->buffer_priority = (int)(1 + (pal_next_random() >> 40));
    }
    pal.threads[pal.thread_count++] = thread;
    pal.by_number[thread->number] = thread;
    pal.live++;
    pal_ready(thread, 1);
}

/* Whether a thread can take its next step. In a search, stores reach memory by steps of their own. */
int pal_can_run(struct thread *thread)
{
    if (thread->drains && thread->pending && pal.command.flags & EXPLORE) {
        return 0;
    }
    return !thread->ready || thread->ready(thread);
}

/* Threads that wait for an object check whether they still have to. */
void pal_changed(const void *object)
{
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->object == object && !thread->finished) {
            pal_ready(thread, pal_can_run(thread));
        }
    }
    pal_wipe();
}

/* The timeout of a thread has expired. */
static void time_out(struct thread *thread)
{
    thread->deadline = 0;
    thread->timed_out = 1;
    pal_ready(thread, pal_can_run(thread));
    if (thread == pal.self) {
        pal_announce_step(thread);
    }
}

/* Called when something is due: the step limit, or a deadline. */
void pal_check(void)
{
    pal.shared->steps = pal.steps;
    pal.next_check = UINT64_MAX;
    if (unlikely(pal.fresh_first) && !pal.quiet) {
        pal_misused_fresh(pal.fresh_first, pal.fresh_second);
    }
    if (pal.command.flags & EXPLORE) {
        return;
    }
    if (pal.command.steps) {
        if (pal.steps >= pal.command.steps && !pal.quiet) {
            pal_stop(R_STEPS, "");
        }
        pal.next_check = pal.command.steps;
    }
    if (pal.steps >= pal.next_try && !pal.quiet) {
        pal_try_endless();
    }
    pal.next_check = pal.next_try < pal.next_check ? pal.next_try : pal.next_check;
    uint64_t now = pal_now();
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->deadline && !thread->finished && thread->place < 0) {
            if (thread->deadline <= now) {
                time_out(thread);
            } else {
                uint64_t due = pal.steps + (thread->deadline - now + NANOSECONDS - 1) / NANOSECONDS;
                if (due < pal.next_check) {
                    pal.next_check = due;
                }
            }
        }
    }
}

static __attribute__((noreturn)) void deadlock(void)
{
    int spin = 0, forever = 1;
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (!thread->finished && thread->is_excluded) {
            pal_stop(R_ASSUMED, "");
        }
        if (!thread->finished && thread->spins) {
            spin = 1;
            forever &= pal_spins_forever(thread);
        }
    }
    if (spin && !forever) {
        /* In an execution in which that thread reads later, it continues. */
        pal_stop(R_SPUN, "");
    }
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (!thread->finished) {
            uint64_t size = thread->spins ? STUCK_SPINS : STUCK_DEADLOCK;
            const struct look *look = pal_loop_of(thread);
            uint64_t address = look ? look->address : thread->first & ADDRESS_BITS;
            uint64_t place = look ? look->place : thread->second & ADDRESS_BITS;
            pal_log(address | HEAD(K_STUCK, O_PLAIN, size), place | thread->tag);
        }
    }
    pal_stop(spin ? R_SPUN : R_DEADLOCK, "");
}

/* No thread can run. If a thread waits for a deadline, time advances to it. */
static void idle(void)
{
    while (!pal.ready_count && !pal.loaded_count) {
        struct thread *first = NULL;
        for (int i = 0; i < pal.thread_count; i++) {
            struct thread *thread = pal.threads[i];
            if (!thread->finished && thread->deadline && (!first || thread->deadline < first->deadline)) {
                first = thread;
            }
        }
        if (!first) {
            deadlock();
        }
        uint64_t now = pal_now();
        if (first->deadline > now) {
            pal.clock_ahead += first->deadline - now;
        }
        time_out(first);
    }
}

/* A buffer from which a store can reach memory, or none. */
static struct actor buffer_of(struct thread *thread)
{
    uint64_t count = pal_updates(thread);
    uint64_t index = count > 1 && !(pal.command.flags & EXPLORE) ? pal_next_random() % count : 0;
    return (struct actor){thread, pal_update_at(thread, index)};
}

/* In a search: the first store that is not asleep. */
static struct actor awake_buffer_of(struct thread *thread)
{
    uint64_t count = pal_updates(thread);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t store = pal_update_at(thread, i);
        if (!*pal_pending_asleep(store)) {
            return (struct actor){thread, store};
        }
    }
    return (struct actor){NULL, 0};
}

/* The next actor after another, by the numbers of threads, each with its buffer after it. Those that are asleep
 * come only if all are. */
static struct actor in_turn(struct actor after)
{
    struct actor next = {NULL, 0}, smallest = {NULL, 0};
    uint64_t next_key = UINT64_MAX, smallest_key = UINT64_MAX, from = 2 * (uint64_t)after.thread->number + (after.pending != 0);
    for (int sleepers = 0; sleepers < 2 && !smallest.thread; sleepers++) {
        for (int i = 0; i < pal.ready_count + pal.loaded_count; i++) {
            int is_buffer = i >= pal.ready_count;
            struct thread *thread = is_buffer ? pal.loaded[i - pal.ready_count] : pal.ready[i];
            if (!is_buffer && !sleepers && thread->asleep) {
                continue;
            }
            struct actor actor = !is_buffer ? (struct actor){thread, 0} : sleepers ? buffer_of(thread) : awake_buffer_of(thread);
            uint64_t key = 2 * (uint64_t)thread->number + (uint64_t)is_buffer;
            if (!actor.thread) {
                continue;
            }
            if (key < smallest_key) {
                smallest_key = key;
                smallest = actor;
            }
            if (key > from && key < next_key) {
                next_key = key;
                next = actor;
            }
        }
    }
    return next.thread ? next : smallest;
}

static struct actor highest(void)
{
    struct actor best = {NULL, 0};
    int priority = 0;
    for (int i = 0; i < pal.ready_count; i++) {
        struct thread *thread = pal.ready[i];
        if (!best.thread || thread->priority > priority ||
            (thread->priority == priority && thread->number < best.thread->number)) {
            best.thread = thread;
            priority = thread->priority;
        }
    }
    struct thread *owner = NULL;
    for (int i = 0; i < pal.loaded_count; i++) {
        struct thread *thread = pal.loaded[i];
        if ((!best.thread && !owner) || thread->buffer_priority > priority ||
            (owner && thread->buffer_priority == priority && thread->number < owner->number)) {
            owner = thread;
            priority = thread->buffer_priority;
        }
    }
    return owner ? buffer_of(owner) : best;
}

/* The step of a random schedule that lets a store reach memory, if that is the step to take. */
static struct actor random_update(void)
{
    uint64_t threads = (uint64_t)pal.ready_count, buffers = (uint64_t)pal.loaded_count;
    uint64_t random = pal_next_random();
    struct thread *owner = pal.loaded[(random >> 32) * buffers >> 32];
    if (pal.holds == NEVER && !pal.attacks) {
        int updates = !threads || pal_next_random() % (threads + buffers) >= threads;
        return updates ? buffer_of(owner) : (struct actor){NULL, 0};
    }
    /* Stores that are not held back have reached memory already, except those after the last step. */
    struct thread *last = pal.last.pending ? pal.last.thread : pal.self;
    uint32_t store = pal_not_held(last);
    if (store) {
        return (struct actor){last, store};
    }
    int releases = random % RELEASE == 0 && !pal.attacks;
    return !threads || releases ? buffer_of(owner) : (struct actor){NULL, 0};
}

/* Whether a thread has had its turn: it has only read for a long time, or has run for a very long time. */
static int had_its_turn(struct thread *thread)
{
    return thread->idle > MAX_IDLE || pal.streak > MAX_STREAK;
}

static struct actor any(void)
{
    struct thread *self = pal.self;
    if (pal.loaded_count) {
        struct actor update = random_update();
        if (update.thread) {
            return update;
        }
    }
    int is_private = KIND_OF(self->first) <= K_STORE && pal_is_on_stack(self, self->first & ADDRESS_BITS);
    if (pal.attacks) {
        int is_idle = had_its_turn(self);
        self->idle = is_idle ? 0 : self->idle;
        return (struct actor){pal_attack(is_private && !is_idle, is_idle), 0};
    }
    if (self->place >= 0 && is_private) {
        /* Others hardly ever look at this. */
        if (pal_next_random() % PRIVATE) {
            return (struct actor){self, 0};
        }
    }
    if (pal.stickiness > 1 && self->place >= 0) {
        int stays = self->restless && pal.stickiness > RESTLESS ? RESTLESS : pal.stickiness;
        self->restless -= self->restless > 0;
        if (pal_next_random() % (uint64_t)stays) {
            return (struct actor){self, 0};
        }
        if (stays == RESTLESS && pal.ready_count > 1) {
            /* Any other thread. */
            uint64_t index = (pal_next_random() >> 32) * (uint64_t)(pal.ready_count - 1) >> 32;
            self->restless = 0;
            return (struct actor){pal.ready[index + (index >= (uint64_t)self->place)], 0};
        }
    }
    return (struct actor){pal.ready[(pal_next_random() >> 32) * (uint64_t)pal.ready_count >> 32], 0};
}

/* Logs why a thread whose turn it is cannot run. */
static void log_stray(uint32_t number)
{
    enum { NOT_STARTED, WAITS, HAS_ENDED };
    uint64_t why = NOT_STARTED, place = 0;
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->number == number) {
            why = thread->finished ? HAS_ENDED : WAITS;
            place = thread->second & ADDRESS_BITS;
        }
    }
    if (pal.is_served) {
        pal_log((uint64_t)N_DIVERGED | HEAD(K_NOTE, O_PLAIN, why), place | (uint64_t)number << 48);
    }
}

/* A store as a schedule names it. */
static uint32_t pending_of(const struct thread *thread, uint32_t position)
{
    if (pal.command.model == M_PSO && pal.command.flags == EXPLORE) {
        return position < pal.command.addresses ? pal_pending_to(thread, pal.addresses[position]) : 0;
    }
    return pal_pending_at(thread, position);
}

/* The actor of a schedule, if it can take a step now. */
static struct actor named(uint32_t name)
{
    struct thread *thread = pal.by_number[name & ((1u << ACTOR_BITS) - 1)];
    uint32_t position = name >> ACTOR_BITS;
    if (!thread) {
        return (struct actor){NULL, 0};
    }
    if (!position || position >= VALUES) {
        pal.given_value = position ? position - VALUES + 1 : 0;
        return (struct actor){thread->place >= 0 ? thread : NULL, 0};
    }
    uint32_t store = pending_of(thread, position - 1);
    return (struct actor){store ? thread : NULL, store};
}

static void put_to_sleep(uint32_t name)
{
    struct thread *thread = pal.by_number[name & ((1u << ACTOR_BITS) - 1)];
    uint32_t position = name >> ACTOR_BITS;
    if (thread && !position) {
        thread->asleep = 1;
    } else if (thread) {
        uint32_t store = pending_of(thread, position - 1);
        if (store) {
            *pal_pending_asleep(store) = 1;
        }
    }
}

static struct actor given(void)
{
    while (pal.choice_at < pal.command.choices) {
        struct choice *choice = &pal.choices[pal.choice_at];
        if (!choice->count) {
            put_to_sleep(choice->actor);
        }
        if (pal.choice_used < choice->count) {
            struct actor actor = named(choice->actor);
            if (actor.thread) {
                pal.choice_used++;
                return actor;
            }
            if (pal.command.flags == EXPLORE) {
                pal_stop(R_TURNS, "");
            }
            /* It cannot run at this point. The rest of its turn is skipped. */
            if (!pal.diverged) {
                pal.diverged = 1;
                log_stray(choice->actor & ((1u << ACTOR_BITS) - 1));
            }
        }
        pal.choice_at++;
        pal.choice_used = 0;
    }
    return (struct actor){NULL, 0};
}

static struct actor choose(void)
{
    pal.given_value = 0;
    struct actor next = given();
    struct thread *self = pal.self;
    struct actor last = pal.last.pending ? pal.last : (struct actor){self, 0};
    if (unlikely(pal.tries_endless)) {
        struct actor turn = next.thread ? next : in_turn(last);
        pal_look_for_loop(turn);
        return turn;
    }
    if (next.thread) {
        return next;
    }
    switch (pal.strategy) {
    case S_PCT:
        while (pal.change_at < pal.change_count && pal.steps >= pal.changes[pal.change_at]) {
            self->priority = -(++pal.change_at);
        }
        if (had_its_turn(self) && self->place >= 0) {
            self->priority = pal.lowest--;
            self->idle = 0;
            pal.streak = 0;
        }
        return highest();
    case S_STAY:
        if (self->place < 0 || self->asleep || had_its_turn(self)) {
            self->idle = 0;
            return in_turn(last);
        }
        return (struct actor){self, 0};
    case S_ROUND:
        return in_turn(last);
    default:
        return any();
    }
}

/* What a step touches, as the first byte and one past the last. Returns 0 for nothing, 1 for reading and 2
 * for writing. */
static int touches(uint64_t first, uint64_t *from, uint64_t *to)
{
    uint64_t size = first >> 48 & 0xff;
    *from = first & ADDRESS_BITS;
    *to = *from + (size ? size : 1);
    switch (KIND_OF(first)) {
    case K_LOAD:
    case K_LOCKED_LOAD:
        return 1;
    case K_STORE:
        /* It reaches memory later. */
        return pal.buffers ? 0 : 2;
    case K_LOCKED:
    case K_UPDATE:
        return 2;
    case K_FENCE:
        return size ? 2 : 0;
    case K_JOIN:
    case K_ENDED:
        /* The end of a thread has its own address. */
        *from |= 1ull << 50;
        *to = *from + 1;
        return KIND_OF(first) == K_ENDED ? 2 : 1;
    case K_EXIT:
        *from = 0;
        *to = UINT64_MAX;
        return 2;
    default:
        return 0;
    }
}

/* Memory that a step touches. `how` is as for `touches`. */
struct span {
    uint64_t from, to;
    int how;
};
enum { MAX_SPANS = 3 };

/* Whether the next step of a thread is known to write nothing, because memory does not hold what it expects. It waits
 * for the empty buffer, so it sees memory. */
static int fails(const struct thread *thread)
{
    uint64_t address = thread->first & ADDRESS_BITS, value = 0;
    if (!thread->is_conditional || !thread->expected_size || !is_compared(address)) {
        return 0;
    }
    pal_hide();
    pal_copy(&value, (const void *)address, thread->expected_size);
    return value != thread->expected;
}

/* All that an actor's next step touches. Returns how many spans these are. */
static int spans(struct actor actor, struct span *list)
{
    uint64_t update = HEAD(K_UPDATE, 0, 0);
    uint64_t first = actor.pending ? (pal_pending_first(actor.pending) & ~HEAD(31, 0, 0)) | update : actor.thread->first;
    int count = 1;
    list->how = touches(first, &list->from, &list->to);
    if (!actor.pending && fails(actor.thread)) {
        list->how = 1;
    }
    for (unsigned i = 0; !actor.pending && i < actor.thread->range_count && i < 2; i++) {
        const struct announced *range = &actor.thread->ranges[i];
        int how = range->kind == K_LOAD ? 1 : range->kind == K_STORE && pal.buffers ? 0 : 2;
        list[count++] = (struct span){range->address, range->address + range->size, how};
    }
    return count;
}

static int conflict(const struct span *a, int count, const struct span *b, int other_count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < other_count; j++) {
            if (a[i].how && b[j].how && a[i].how + b[j].how > 2 && a[i].from < b[j].to && b[j].from < a[i].to) {
                return 1;
            }
        }
    }
    return 0;
}

/* Sleeping actors wake up when another one takes a step that conflicts with theirs. */
static void wake(struct actor chosen)
{
    struct span mine[MAX_SPANS], theirs[MAX_SPANS];
    int count = spans(chosen, mine);
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->asleep && conflict(mine, count, theirs, spans((struct actor){thread, 0}, theirs))) {
            thread->asleep = 0;
        }
        uint64_t updates = thread->pending ? pal_updates(thread) : 0;
        for (uint64_t j = 0; j < updates; j++) {
            uint32_t store = pal_update_at(thread, j);
            uint32_t *asleep = pal_pending_asleep(store);
            if (*asleep && conflict(mine, count, theirs, spans((struct actor){thread, store}, theirs))) {
                *asleep = 0;
            }
        }
    }
}

static struct actor choose_and_count(void)
{
    if (!(pal.command.flags & EXPLORE)) {
        return choose();
    }
    if (pal.command.steps && pal.chosen >= pal.command.steps) {
        pal_stop(R_STEPS, "");
    }
    pal.chosen++;
    struct actor next = choose();
    if (next.pending) {
        *pal_pending_asleep(next.pending) = 0;
        wake(next);
        return next;
    }
    struct thread *thread = next.thread;
    thread->asleep = 0;
    wake(next);
    thread->own_steps++;
    thread->log_mark = pal.shared->at;
    thread->has_written = 0;
    thread->silent = 0;
    return next;
}

/* Lets stores reach memory as long as these are the steps to take. Returns the thread that continues. */
static struct thread *next_thread(void)
{
    for (;;) {
        if (unlikely(!pal.ready_count)) {
            idle();
        }
        struct actor next = choose_and_count();
        pal.last = next;
        if (likely(!next.pending)) {
            return next.thread;
        }
        pal_update(next.thread, next.pending);
        if (unlikely(++pal.steps >= pal.next_check)) {
            pal_check();
        }
    }
}

/* The general form of a decision. It is entered with the callee-saved registers on the stack. */
__attribute__((used)) void pal_choose_with(uint64_t first, uint64_t second, const uint64_t *stack)
{
    struct thread *self = pal.self;
    self->first = first;
    self->second = second;
    self->state_from = stack;
    if (pal.command.flags & EXPLORE && (pal_is_spinning(self, first, stack) || self->is_excluded)) {
        self->spins = 1;
        self->ready = pal_never;
        pal_ready(self, 0);
        pal_log(HEAD(K_ENDED, O_PLAIN, 0), self->tag | F_PENDING);
    }
    if (pal.buffers) {
        self->drains = pal_drains(first);
        if (self->drains && self->pending && pal.command.flags & EXPLORE) {
            pal_ready(self, 0);
        }
        if (unlikely(pal_is_full(self))) {
            pal_make_room();
        }
    }
    pal_announce_step(self);
    enum kind kind = KIND_OF(first);
    int looks = kind == K_LOAD || kind == K_LOCKED_LOAD || kind == K_PAUSE;
    self->idle = looks || ((kind == K_STORE || kind == K_FREE) && pal_is_on_stack(self, first & ADDRESS_BITS)) ? self->idle + 1 : 0;
    struct thread *last = pal.last.pending ? NULL : pal.last.thread, *next = next_thread();
    pal.streak = next == last ? pal.streak + 1 : 0;
    if (pal.buffers) {
        pal_show(next);
    }
    if (next != self) {
        pal_switch(next);
    }
    self->range_count = 0;
    self->is_conditional = 0;
    if (self->drains) {
        self->drains = 0;
        pal_drain();
    }
    if (unlikely(pal.command.compared) && (kind == K_LOCKED || (kind == K_STORE && !pal.buffers))) {
        pal_log_replaced(self, first, (const void *)(first & ADDRESS_BITS));
    }
}

__asm__(".text\n"
        ".hidden pal_choose\n"
        ".globl pal_choose\n"
        ".type pal_choose, @function\n"
        "pal_choose:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, %rdx\n"
        "    subq $8, %rsp\n"
        "    call pal_choose_with\n"
        "    call pal_wipe\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size pal_choose, .-pal_choose\n");

void pal_yield(void)
{
    pal.self->idle = MAX_IDLE + 1;
}

/* The calling thread may wait until a deadline. In a search, such a wait ends only when no other thread can run; other
 * ways in which it could end are not tried. Even if it need not wait now, it might have to in another order of the same
 * steps, and that order may never be run. */
void pal_timed(uint64_t place)
{
    if (pal.command.flags & EXPLORE && !pal_is_alone()) {
        pal_note(N_TIME, place);
    }
}

/* The calling thread does something for which it may have to wait. Returns when it has been chosen and can do
 * it. */
void pal_await(const void *object, ready_fn *ready, uint64_t first, uint64_t place)
{
    struct thread *self = pal.self;
    uint64_t second = pal_at(place) | F_CHOSEN;
    self->object = object;
    self->ready = ready;
    if (unlikely(++pal.steps >= pal.next_check)) {
        pal_check();
    }
    self->drains = pal.buffers && pal_drains(first);
    pal_ready(self, pal_can_run(self));
    if (self->deadline) {
        pal_timed(place);
        if (self->place < 0) {
            pal_check();
        }
    }
    self->frame = __builtin_frame_address(0);
    pal_choose(first, second);
    self->object = NULL;
    self->ready = NULL;
    self->deadline = 0;
}

/* The calling thread has ended. Another one continues. */
void pal_leave(void)
{
    struct thread *self = pal.self;
    self->finished = self->ended = 1;
    pal.live--;
    pal_ready(self, 0);
    pal_changed(self);
    struct thread *next = next_thread();
    pal.streak = 0;
    if (pal.buffers) {
        pal_show(next);
    }
    if (self->detached) {
        /* Another thread may get its stack soon, without an order between the two. */
        pal_forget_stack(self);
    }
    if (self->detached && !pal.token_mode) {
        /* Its stack is in use until another thread runs. */
        self->next = pal.zombies;
        pal.zombies = self;
    }
    pal_switch_forever(next);
}
