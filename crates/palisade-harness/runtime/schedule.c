/* Who goes on.
 *
 * Strategies: uniformly at random among those that can go on; PCT (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with probabilistic guarantees of
 * finding bugs", ASPLOS 2010): the highest priority goes on, and at depth - 1 random steps whoever runs falls below all others; staying with
 * whoever runs; taking turns. Any of them may begin with choices that are given.
 *
 * Threads that only look and never change anything would be run for ever by strategies other than the random one. They have to let others go on after a while. */

#include "palisade.h"
#include <string.h>
#include <stdio.h>

struct runtime pal = {.quiet = 1, .next_check = UINT64_MAX};

enum {
    MOST_IDLE = 64,      /* events without a write, then others have a turn */
    MOST_STREAK = 20000, /* events at all */
    NANOSECONDS = 1000   /* that a step takes */
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
    return pal.steps * NANOSECONDS + pal.clock_ahead;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void announce(struct thread *thread)
{
    if (pal.command.flags & WITH_FOOTPRINTS && !thread->finished) {
        uint64_t flags = F_PENDING | (thread->place < 0 ? F_WAITS : 0) | (thread->ready ? F_MAY_WAIT : 0);
        pal_log(thread->first, (thread->second & ~F_CHOSEN) | flags);
    }
}

void pal_begin_schedule(void)
{
    pal.random = pal.command.seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    pal.strategy = (enum strategy)pal.command.strategy;
    pal.careful = pal.strategy != S_RANDOM || pal.command.choices || pal.command.flags;
    uint64_t length = pal.command.length ? pal.command.length : 1000;
    uint64_t depth = pal.command.depth < MOST_CHANGES ? pal.command.depth : MOST_CHANGES;
    pal.change_count = depth > 1 ? (int)depth - 1 : 0;
    for (int i = 0; i < pal.change_count; i++) {
        pal.changes[i] = 1 + pal_next_random() % length;
    }
    /* A few numbers: sorted by insertion. */
    for (int i = 1; i < pal.change_count; i++) {
        for (int j = i; j > 0 && by_size(&pal.changes[j - 1], &pal.changes[j]) > 0; j--) {
            uint64_t swap = pal.changes[j];
            pal.changes[j] = pal.changes[j - 1];
            pal.changes[j - 1] = swap;
        }
    }
    pal.lowest = -MOST_CHANGES;
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
        announce(thread);
    }
}

void pal_add_thread(struct thread *thread)
{
    thread->place = -1;
    thread->priority = (int)(1 + (pal_next_random() >> 40));
    pal.threads[pal.thread_count++] = thread;
    pal.live++;
    pal_ready(thread, 1);
}

/* Things that wait for an object look whether they still have to. */
void pal_changed(const void *object)
{
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->object == object && !thread->finished) {
            pal_ready(thread, thread->ready(thread));
        }
    }
}

/* Somebody's time is up. */
static void time_out(struct thread *thread)
{
    thread->deadline = 0;
    thread->timed_out = 1;
    pal_ready(thread, thread->ready(thread));
}

/* Called when something is due: the limit of steps, or a deadline. */
void pal_check(void)
{
    pal.shared->steps = pal.steps;
    if (pal.command.steps && pal.steps >= pal.command.steps && !pal.quiet) {
        pal_stop(R_STEPS, "");
    }
    uint64_t now = pal_now();
    pal.next_check = pal.command.steps ? pal.command.steps : UINT64_MAX;
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
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (!thread->finished) {
            uint64_t size = STUCK_DEADLOCK;
            pal_log((thread->first & ADDRESS_BITS) | HEAD(K_STUCK, O_PLAIN, size),
                    (thread->second & ADDRESS_BITS) | thread->tag);
        }
    }
    pal_stop(R_DEADLOCK, "");
}

/* Nobody can go on: time does, if somebody waits for it. */
static void idle(void)
{
    while (!pal.ready_count) {
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

static struct thread *in_turn(struct thread *after)
{
    struct thread *next = NULL, *smallest = NULL;
    for (int i = 0; i < pal.ready_count; i++) {
        struct thread *thread = pal.ready[i];
        if (!smallest || thread->number < smallest->number) {
            smallest = thread;
        }
        if (thread->number > after->number && (!next || thread->number < next->number)) {
            next = thread;
        }
    }
    return next ? next : smallest;
}

static struct thread *highest(void)
{
    struct thread *best = NULL;
    for (int i = 0; i < pal.ready_count; i++) {
        struct thread *thread = pal.ready[i];
        if (!best || thread->priority > best->priority ||
            (thread->priority == best->priority && thread->number < best->number)) {
            best = thread;
        }
    }
    return best;
}

/* Whether a thread has had its turn: it has looked around for long, or has run for very long. */
static int had_its_turn(struct thread *thread)
{
    return thread->idle > MOST_IDLE || pal.streak > MOST_STREAK;
}

static struct thread *given(void)
{
    while (pal.choice_at < pal.command.choices) {
        struct choice *choice = &pal.choices[pal.choice_at];
        if (pal.choice_used < choice->count) {
            for (int i = 0; i < pal.ready_count; i++) {
                if (pal.ready[i]->number == choice->thread) {
                    pal.choice_used++;
                    return pal.ready[i];
                }
            }
            /* It cannot go on here. What is left of its turn is left out. */
            if (!pal.diverged) {
                pal.diverged = 1;
                pal_note(N_DIVERGED, 0);
            }
        }
        pal.choice_at++;
        pal.choice_used = 0;
    }
    return NULL;
}

static struct thread *choose(void)
{
    struct thread *next = given(), *self = pal.self;
    if (next) {
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
        if (self->place < 0 || had_its_turn(self)) {
            self->idle = 0;
            return in_turn(self);
        }
        return self;
    case S_ROUND:
        return in_turn(self);
    default:
        return pal.ready[(pal_next_random() >> 32) * (uint64_t)pal.ready_count >> 32];
    }
}

/* The general form of a decision. */
void pal_choose(uint64_t first, uint64_t second)
{
    struct thread *self = pal.self;
    self->first = first;
    self->second = second;
    announce(self);
    if (unlikely(!pal.ready_count)) {
        idle();
    }
    enum kind kind = KIND_OF(first);
    self->idle = kind == K_LOAD || kind == K_LOCKED_LOAD || kind == K_PAUSE ? self->idle + 1 : 0;
    struct thread *next = choose();
    pal.streak = next == pal.last ? pal.streak + 1 : 0;
    pal.last = next;
    if (next != self) {
        pal_switch(next);
    }
}

void pal_yield(void)
{
    pal.self->idle = MOST_IDLE + 1;
}

/* The calling thread does something for which it may have to wait. Returns when it was chosen, and can do it. */
void pal_await(const void *object, ready_fn *ready, uint64_t first, uint64_t place)
{
    struct thread *self = pal.self;
    uint64_t second = place | self->tag | F_CHOSEN;
    self->object = object;
    self->ready = ready;
    if (unlikely(++pal.steps >= pal.next_check)) {
        pal_check();
    }
    pal_ready(self, ready(self));
    if (self->deadline && self->place < 0) {
        pal_check();
    }
    pal_choose(first, second);
    self->object = NULL;
    self->ready = NULL;
    self->deadline = 0;
}

/* The calling thread has ended: somebody else goes on. */
void pal_leave(void)
{
    struct thread *self = pal.self;
    self->finished = 1;
    pal.live--;
    pal_ready(self, 0);
    pal_changed(self);
    if (!pal.ready_count) {
        idle();
    }
    struct thread *next = choose();
    pal.last = next;
    pal.streak = 0;
    if (self->detached && !pal.token_mode) {
        /* Its stack is in use until somebody else runs. */
        self->next = pal.zombies;
        pal.zombies = self;
    }
    pal_switch_for_ever(next);
}
