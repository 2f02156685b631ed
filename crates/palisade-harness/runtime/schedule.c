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
 * Under strategies other than the random one, threads that only read and never change anything would run
 * forever. They have to let others run after a while. */

#include "palisade.h"
#include <string.h>
#include <stdio.h>

struct runtime pal = {.quiet = 1, .next_check = UINT64_MAX};

enum {
    MAX_IDLE = 64,      /* events without a write before others have a turn */
    MAX_STREAK = 20000, /* events in total */
    NANOSECONDS = 1000   /* the duration of a step */
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

static void announce(struct thread *thread)
{
    if (pal.command.flags & EXPLORE && !thread->finished && !thread->spins) {
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

/* Threads that wait for an object check whether they still have to. */
void pal_changed(const void *object)
{
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->object == object && !thread->finished) {
            pal_ready(thread, thread->ready(thread));
        }
    }
    pal_wipe();
}

/* The timeout of a thread has expired. */
static void time_out(struct thread *thread)
{
    thread->deadline = 0;
    thread->timed_out = 1;
    pal_ready(thread, thread->ready(thread));
}

/* Called when something is due: the step limit, or a deadline. */
void pal_check(void)
{
    pal.shared->steps = pal.steps;
    pal.next_check = UINT64_MAX;
    if (pal.command.flags & EXPLORE) {
        return;
    }
    if (pal.command.steps) {
        if (pal.steps >= pal.command.steps && !pal.quiet) {
            pal_stop(R_STEPS, "");
        }
        pal.next_check = pal.command.steps;
    }
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
            pal_log((thread->first & ADDRESS_BITS) | HEAD(K_STUCK, O_PLAIN, size),
                    (thread->second & ADDRESS_BITS) | thread->tag);
        }
    }
    pal_stop(spin ? R_SPUN : R_DEADLOCK, "");
}

/* No thread can run. If a thread waits for a deadline, time advances to it. */
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
    int awake = 0;
    for (int i = 0; i < pal.ready_count; i++) {
        awake |= !pal.ready[i]->asleep;
    }
    for (int i = 0; i < pal.ready_count; i++) {
        struct thread *thread = pal.ready[i];
        if (awake && thread->asleep) {
            continue;
        }
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

/* Whether a thread has had its turn: it has only read for a long time, or has run for a very long time. */
static int had_its_turn(struct thread *thread)
{
    return thread->idle > MAX_IDLE || pal.streak > MAX_STREAK;
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

static struct thread *given(void)
{
    while (pal.choice_at < pal.command.choices) {
        struct choice *choice = &pal.choices[pal.choice_at];
        if (!choice->count) {
            for (int i = 0; i < pal.thread_count; i++) {
                pal.threads[i]->asleep |= pal.threads[i]->number == choice->thread;
            }
        }
        if (pal.choice_used < choice->count) {
            for (int i = 0; i < pal.ready_count; i++) {
                if (pal.ready[i]->number == choice->thread) {
                    pal.choice_used++;
                    return pal.ready[i];
                }
            }
            if (pal.command.flags & EXPLORE) {
                pal_stop(R_TURNS, "");
            }
            /* It cannot run at this point. The rest of its turn is skipped. */
            if (!pal.diverged) {
                pal.diverged = 1;
                log_stray(choice->thread);
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
        if (self->place < 0 || self->asleep || had_its_turn(self)) {
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
    case K_LOCKED:
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

/* Sleeping threads wake up when another thread takes a step that conflicts with theirs. */
static void wake(const struct thread *chosen)
{
    uint64_t from, to, other_from, other_to;
    int how = touches(chosen->first, &from, &to);
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *thread = pal.threads[i];
        if (thread->asleep) {
            int other = touches(thread->first, &other_from, &other_to);
            if (how + other > 2 && how && other && from < other_to && other_from < to) {
                thread->asleep = 0;
            }
        }
    }
}

static struct thread *choose_and_count(void)
{
    if (!(pal.command.flags & EXPLORE)) {
        return choose();
    }
    if (pal.command.steps && pal.chosen >= pal.command.steps) {
        pal_stop(R_STEPS, "");
    }
    pal.chosen++;
    struct thread *next = choose();
    next->asleep = 0;
    wake(next);
    next->own_steps++;
    next->log_mark = pal.shared->at;
    next->has_written = 0;
    return next;
}

/* The general form of a decision. It is entered with the callee-saved registers on the stack. */
__attribute__((used)) void pal_choose_with(uint64_t first, uint64_t second, const uint64_t *stack)
{
    struct thread *self = pal.self;
    self->first = first;
    self->second = second;
    if (pal.command.flags & EXPLORE && pal_is_spinning(self, first, stack)) {
        self->spins = 1;
        self->ready = pal_never;
        pal_ready(self, 0);
        pal_log(HEAD(K_ENDED, O_PLAIN, 0), self->tag | F_PENDING);
    }
    announce(self);
    if (unlikely(!pal.ready_count)) {
        idle();
    }
    enum kind kind = KIND_OF(first);
    int looks = kind == K_LOAD || kind == K_LOCKED_LOAD || kind == K_PAUSE;
    self->idle = looks || (kind == K_STORE && pal_is_on_stack(self, first & ADDRESS_BITS)) ? self->idle + 1 : 0;
    struct thread *next = choose_and_count();
    pal.streak = next == pal.last ? pal.streak + 1 : 0;
    pal.last = next;
    if (next != self) {
        pal_switch(next);
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

/* The calling thread does something for which it may have to wait. Returns when it has been chosen and can do
 * it. */
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
        if (pal.command.flags & EXPLORE) {
            /* The wait ends only when no other thread can run. Other ways in which it could end are not
             * tried. */
            pal_note(N_TIME, place);
        } else {
            pal_check();
        }
    }
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
    if (!pal.ready_count) {
        idle();
    }
    struct thread *next = choose_and_count();
    pal.last = next;
    pal.streak = 0;
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
