/* Store buffers.
 *
 * Under TSO and PSO, a store waits in the buffer of its thread before it reaches memory. The thread itself
 * reads its newest pending store; all others read memory. One thread runs at a time, so memory can show what
 * the running thread sees: while thread T runs, its pending stores are laid over memory. When another thread
 * runs, or a store reaches memory, they are removed again.
 *
 * Each pending store keeps one copy of its bytes. While the buffer is shown, that copy has the bytes that the
 * store has covered, and memory has its value. While it is not, it is the other way round. So both directions
 * are exchanges: from the oldest to the newest store to show a buffer, and back to hide it. The value of a
 * store need not be known when it is recorded, which is just before the program makes it. Code that is not
 * instrumented sees the view of its thread too, and what it changes in a covered place belongs to the
 * covering store.
 *
 * Under PSO, stores to different places may reach memory in any order. Stores that overlap stay in order, and
 * so do stores before and after a store-store fence.
 *
 * A frame of a stack that was left is not covered any more: our own frames may be there now. No thread can see
 * what was stored there, except by an error. */

#include "palisade.h"

struct pending {
    uint64_t first, second;  /* as in the record of the store */
    uint32_t next, previous; /* the stores after and before it; 0 for none */
    uint32_t epoch;          /* how many store-store fences came before it */
    uint32_t asleep, is_dead, is_held, wakes;
    unsigned char bytes[64];
};

/* Stores that may be pending at the same time, and how many of one thread before the oldest one has to reach
 * memory. A search has no limit per thread. */
enum { MAX_PENDING = 1 << 15, MAX_OF_THREAD = 32, RESTLESS_STEPS = 16 };

static struct pending pool[MAX_PENDING];
static uint32_t unused = 1; /* those from here on were never used */
static uint32_t free_list;

static uint64_t address_of(const struct pending *store)
{
    return store->first & ADDRESS_BITS;
}

static uint64_t size_of(const struct pending *store)
{
    return store->first >> 48 & 0xff;
}

static int overlaps(const struct pending *a, const struct pending *b)
{
    return address_of(a) < address_of(b) + size_of(b) && address_of(b) < address_of(a) + size_of(a);
}

/* Whether a store is in a frame that was left. If it is, it covers nothing from now on. */
static int is_dead(struct pending *store)
{
    uint64_t address = address_of(store);
    if (likely(address - STACKS >= STACK_RANGE * MAX_THREADS) || store->is_dead) {
        return store->is_dead;
    }
    const struct thread *thread = pal.by_number[(address - STACKS) / STACK_RANGE];
    /* A program may run its threads on stacks of its own. Then nothing is known about frames on the usual ones. */
    int is_left = thread && address < (uint64_t)thread->frame && pal_is_on_stack(thread, (uint64_t)thread->frame);
    store->is_dead = !thread || thread->finished || is_left;
    return store->is_dead;
}

static void exchange(struct pending *store)
{
    if (unlikely(is_dead(store))) {
        return;
    }
    char *memory = (char *)address_of(store);
    uint64_t size = size_of(store);
    if (size == 8) {
        uint64_t now = *(volatile uint64_t *)memory;
        *(volatile uint64_t *)memory = *(uint64_t *)store->bytes;
        *(uint64_t *)store->bytes = now;
    } else if (size == 4) {
        uint32_t now = *(volatile uint32_t *)memory;
        *(volatile uint32_t *)memory = *(uint32_t *)store->bytes;
        *(uint32_t *)store->bytes = now;
    } else {
        char now[sizeof store->bytes];
        pal_copy(now, memory, size);
        pal_copy(memory, store->bytes, size);
        pal_copy(store->bytes, now, size);
    }
}

static void drop(struct thread *owner, uint32_t index)
{
    struct pending *store = &pool[index];
    *(store->previous ? &pool[store->previous].next : &owner->oldest) = store->next;
    *(store->next ? &pool[store->next].previous : &owner->newest) = store->previous;
    store->next = free_list;
    free_list = index;
    if (--owner->pending == 0) {
        struct thread *moved = pal.loaded[--pal.loaded_count];
        pal.loaded[owner->loaded_at] = moved;
        moved->loaded_at = owner->loaded_at;
    }
}

/* Memory is what all threads see. */
void pal_hide(void)
{
    if (pal.shown) {
        for (uint32_t at = pal.shown->newest; at; at = pool[at].previous) {
            exchange(&pool[at]);
        }
    }
    pal.shown = NULL;
}

/* Memory is what a thread sees. */
void pal_show(struct thread *thread)
{
    if (pal.shown == thread) {
        return;
    }
    pal_hide();
    for (uint32_t at = thread->oldest; at; at = pool[at].next) {
        exchange(&pool[at]);
    }
    pal.shown = thread;
}

/* Whether a step waits until all stores of its thread have reached memory. */
int pal_drains(uint64_t first)
{
    switch (KIND_OF(first)) {
    case K_LOCKED:
    case K_LOCKED_LOAD:
    case K_START:
    case K_JOIN:
    case K_ENDED:
    case K_PAUSE: /* system calls that let others run */
        return 1;
    case K_FENCE:
        return first >> 61 == O_SEQ_CST;
    default:
        return 0;
    }
}

/* Whether a pending store can reach memory next. */
static int can_update(const struct thread *owner, uint32_t index)
{
    if (pal.command.model != M_PSO) {
        return index == owner->oldest;
    }
    for (uint32_t at = owner->oldest; at != index; at = pool[at].next) {
        if (pool[at].epoch != pool[index].epoch || overlaps(&pool[at], &pool[index])) {
            return 0;
        }
    }
    return 1;
}

/* A pending store of a thread that can reach memory next, by its position among those. Position 0 always
 * exists. */
uint32_t pal_update_at(const struct thread *owner, uint64_t position)
{
    for (uint32_t at = owner->oldest; at; at = pool[at].next) {
        if (can_update(owner, at) && !position--) {
            return at;
        }
    }
    return 0;
}

/* How many stores of a thread can reach memory next. */
uint64_t pal_updates(const struct thread *owner)
{
    if (pal.command.model != M_PSO) {
        return owner->pending != 0;
    }
    uint64_t count = 0;
    for (uint32_t at = owner->oldest; at; at = pool[at].next) {
        count += (uint64_t)can_update(owner, at);
    }
    return count;
}

/* A store that can reach memory next and is not held back; 0 if there is none. */
uint32_t pal_not_held(const struct thread *owner)
{
    for (uint32_t at = owner->oldest; at; at = pool[at].next) {
        if (!pool[at].is_held && can_update(owner, at)) {
            return at;
        }
        if (pal.command.model != M_PSO) {
            return 0;
        }
    }
    return 0;
}

/* The store at a position in the buffer, if it can reach memory next; 0 if not. */
uint32_t pal_pending_at(const struct thread *owner, uint32_t position)
{
    uint32_t at = owner->oldest;
    while (at && position--) {
        at = pool[at].next;
    }
    return at && can_update(owner, at) ? at : 0;
}

/* The oldest store to an address, if it can reach memory next; 0 if not. */
uint32_t pal_pending_to(const struct thread *owner, uint64_t address)
{
    for (uint32_t at = owner->oldest; at; at = pool[at].next) {
        if (address_of(&pool[at]) == address) {
            return can_update(owner, at) ? at : 0;
        }
    }
    return 0;
}

uint64_t pal_pending_first(uint32_t index)
{
    return pool[index].first;
}

uint32_t *pal_pending_asleep(uint32_t index)
{
    return &pool[index].asleep;
}

/* What a thread waits for may have happened. */
static void look_again(struct thread *thread)
{
    int was_ready = thread->place >= 0;
    pal_ready(thread, pal_can_run(thread));
    if (thread == pal.self && was_ready != (thread->place >= 0)) {
        pal_announce_step(thread);
    }
}

static int covers(const struct thread *thread, const struct pending *store)
{
    for (uint32_t at = thread->oldest; at; at = pool[at].next) {
        if (overlaps(&pool[at], store)) {
            return 1;
        }
    }
    return 0;
}

/* The bytes of a store reach memory. If the buffer of its thread is shown, they are there already: what younger
 * stores have covered is the value of this one. If another buffer is shown, and covers them, it is hidden. */
static void write_out(const struct thread *owner, struct pending *store)
{
    if (unlikely(pal.tries_endless)) {
        pal_hide();
        pal_note_written(owner, address_of(store), size_of(store));
    }
    if (pal.shown == owner) {
        return;
    }
    if (pal.shown && covers(pal.shown, store)) {
        pal_hide();
    }
    exchange(store);
}

/* A pending store reaches memory. */
static void update(struct thread *owner, uint32_t index, uint64_t flags)
{
    struct pending *store = &pool[index];
    uint64_t first = store->first, second = store->second;
    int wakes = store->wakes;
    pal_check_update(owner, (first & ~HEAD(31, 0, 0)) | HEAD(K_UPDATE, 0, 0), (second & ~F_CHOSEN) | flags);
    write_out(owner, store);
    if (unlikely(pal.command.compared) && !is_dead(store)) {
        pal_log_replaced(owner, first, store->bytes);
    }
    drop(owner, index);
    first = (first & ~HEAD(31, 0, 0)) | HEAD(K_UPDATE, 0, 0);
    pal_log(first, (second & ~(F_CHOSEN | F_BUFFERED)) | flags);
    if (unlikely(wakes)) {
        for (int i = 0; i < pal.thread_count; i++) {
            struct thread *thread = pal.threads[i];
            if (!thread->finished && (uint64_t)thread->object == (first & ADDRESS_BITS)) {
                look_again(thread);
            }
        }
    }
    if (owner->drains && !owner->pending) {
        look_again(owner);
    }
}

/* A store reaches memory, as a step of its own. */
void pal_update(struct thread *owner, uint32_t index)
{
    update(owner, index, F_CHOSEN);
}

/* All stores of the running thread reach memory, as part of its step. */
void pal_drain(void)
{
    struct thread *self = pal.self;
    while (self->oldest) {
        update(self, self->oldest, 0);
    }
    pal_show(self);
}

/* Threads wait for the last store of the running thread. */
void pal_wakes(void)
{
    if (pal.self->pending) {
        pool[pal.self->newest].wakes = 1;
    }
}

/* The calling thread is about to store. */
void pal_buffer(uint64_t first, uint64_t second)
{
    struct thread *self = pal.self;
    uint64_t order = first >> 61;
    self->epoch += KIND_OF(first) == K_STORE_FENCE || order == O_RELEASE || order == O_ACQ_REL;
    if (KIND_OF(first) != K_STORE) {
        return;
    }
    uint32_t index = free_list;
    if (index) {
        free_list = pool[index].next;
    } else if (unused < MAX_PENDING) {
        index = unused++;
    } else {
        pal_stop(R_UNSUPPORTED, "more than 32767 stores are pending in store buffers, which cannot be followed");
    }
    struct pending *store = &pool[index];
    store->first = first;
    store->second = second;
    store->next = 0;
    store->previous = self->newest;
    store->epoch = self->epoch;
    store->asleep = store->is_dead = store->wakes = 0;
    int may_hold = pal.strategy == S_RANDOM && !pal_is_on_stack(self, first & ADDRESS_BITS);
    store->is_held = may_hold && (pal.attacks ? pal_is_delayed(self)
                                              : pal.holds && (pal.holds == 1 || pal_random() % pal.holds == 0));
    if (store->is_held) {
        self->restless = RESTLESS_STEPS;
    }
    pal_copy(store->bytes, (const void *)(first & ADDRESS_BITS), size_of(store));
    *(self->newest ? &pool[self->newest].next : &self->oldest) = index;
    if (!self->pending++) {
        self->loaded_at = pal.loaded_count;
        pal.loaded[pal.loaded_count++] = self;
    }
    self->newest = index;
}

/* Whether the oldest store of a thread has to reach memory before its next step. */
int pal_is_full(const struct thread *thread)
{
    return thread->pending >= MAX_OF_THREAD && !(pal.command.flags & EXPLORE);
}

/* The oldest store of the running thread reaches memory, as part of its last step. */
void pal_make_room(void)
{
    update(pal.self, pal.self->oldest, 0);
}

/* Adds the pending stores of a thread to a hash. No buffer is shown. */
uint64_t pal_mix_pending(const struct thread *owner, uint64_t state, uint64_t (*mix)(uint64_t, uint64_t))
{
    for (uint32_t at = owner->oldest; at; at = pool[at].next) {
        const struct pending *store = &pool[at];
        state = mix(mix(state, store->first), store->epoch - owner->epoch);
        for (uint64_t i = 0; i < size_of(store); i++) {
            state = mix(state, store->bytes[i]);
        }
    }
    return state;
}
