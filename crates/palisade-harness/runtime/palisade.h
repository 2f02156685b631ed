/* Definitions that the parts of the runtime share.
 *
 * The runtime replaces that of ThreadSanitizer in a program whose memory accesses call `__tsan_*`. It lets
 * one thread run at a time, decides before every event which thread continues, and logs what happened. It
 * contains no locks, because only one thread runs at a time.
 *
 * - access.c, atomic.c: memory accesses; audit.c: accesses for which the compiler makes no call; strings.c,
 *   stdio.c: accesses that the C library makes for the program;
 * - schedule.c: which thread continues, and what to do if none can; attack.c: schedules in which one thread delays its
 *   stores; buffer.c: store buffers;
 * - spin.c: threads in loops that change nothing; endless.c: executions that never end;
 * - switch.c: switching to another thread, either by coroutines on one kernel thread or by a token that
 *   kernel threads pass on;
 * - thread.c, lock.c, robust.c, wait.c, c11.c: threads and what they wait for;
 * - misuse.c: accesses to memory that was freed or left; leave.c: leaving a frame that others touch; fresh.c: reads of
 *   memory that was never written;
 * - site.c: which part of the program has called a library's code;
 * - verifier.c: assumptions and nondeterministic values;
 * - memory.c, heap.c, clock.c, random.c: addresses, memory, time and random numbers that depend only on the
 *   program's own steps, so that a schedule can be repeated;
 * - order.c: steps that touch no memory, and whose order matters;
 * - limits.c: what cannot be followed; hidden.c: memory that can change without an access; library.c: code
 *   that is not followed;
 * - reap.c: processes that an execution leaves behind;
 * - restore.c: undoing an execution; resident.c: a process that runs many executions;
 * - server.c: one execution after the other; watch.c: executions that do not end. */

#ifndef PALISADE_H
#define PALISADE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "log.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CALLER ((uint64_t)__builtin_return_address(0))

enum { MAX_THREADS = 4096, MAX_CHANGES = 64, MAX_LOOKS = 512, MAX_SHARED = 1 << 14 };

struct thread;
typedef int ready_fn(struct thread *);

struct cleanup {
    void (*call)(void *);
    void *argument;
    struct cleanup *next;
};

/* What a thread that only reads has seen: its state before an access, and the value that it read. */
struct look {
    uint64_t state, address, place, value;
    unsigned size;
    int is_new;
};

/* An access that the compiler has announced by a call and that has not happened yet. For a short access,
 * `left` has the bytes that were not accessed yet. */
struct announced {
    uint64_t address, size, left;
    enum kind kind;
};
enum { MAX_ANNOUNCED = 4, MAX_ONCE = 4, MAX_FRAMES = 64 };

/* A function of a library that a thread is in: where its return address is on the stack, that address, and the code
 * of the function. */
struct entered {
    uint64_t slot, caller, from, size;
};
enum { MAX_ENTERED = 32 };

struct thread {
    /* For switch.c. */
    void *stack_pointer;
    uint64_t fs_base;
    uint32_t token;
    uint32_t released;
    int is_prepared; /* its kernel thread exists only in the server */
    void *kernel_stack_pointer;
    /* Its number, shifted to its position in records. */
    uint64_t tag;
    /* For site.c: how many functions of libraries it is in, of those in `entered`. */
    uint32_t entered_count;
    uint32_t number;
    /* The thread that started it, its index among that thread's children, and how many threads it has
     * started. */
    uint32_t parent, sibling, children;
    /* How many threads it has not joined, of those that it started or inherited from threads it has
     * joined. */
    uint32_t unjoined;
    /* Its index in the list of threads that can run, or -1. */
    int place;
    /* What it will do when it is chosen. */
    uint64_t first, second;
    /* What it waits for, and whether the wait is over. */
    const void *object;
    ready_fn *ready;
    const void *waits_at; /* the condition variable that can wake it */
    uint64_t sequence;
    uint64_t value;
    int woken, timed_out;
    /* When its wait ends by a timeout; 0 for never. */
    uint64_t deadline;
    int finished, joined, detached, is_c11;
    int ended; /* for threads that join it; the first thread may have to wait for others after that */
    int priority;
    uint32_t idle;
    /* Its stack: the lowest address, the end of its own frames, and the size if the stack is one of ours. */
    char *stack_low, *stack_end;
    size_t stack_size;
    void *given_stack; /* the lowest address of a stack that the program provides */
    /* For spin.c: what it has read since it last changed something, the position in the log when it was last
     * chosen, and whether it has changed anything since. */
    struct look *looks;
    unsigned look_count, round_from;
    uint64_t log_mark;
    int has_written;
    unsigned silent; /* how many of its locked instructions since then have written what was there */
    int spins, asleep;
    int is_excluded; /* in a search, by an assumption that is false */
    uint64_t values; /* how many values it has asked for that are not determined */
    /* For audit.c: what was announced and whether any of it has happened; what to do about an access that was
     * not announced; whether its stack is marked, and the lowest mark. */
    struct announced announced[MAX_ANNOUNCED];
    uint64_t held; /* where the struct goes that it is about to copy */
    enum order held_order;
    unsigned announced_count;
    int announced_used;
    unsigned char audit_load, audit_store;
    int has_marks, is_touched; /* by other threads, in this execution */
    uint64_t lowest_mark;
    /* For leave.c: frames whose addresses may be known elsewhere, how many there were, and how many of these are not
     * known any more; the frame that is being left. */
    uint64_t frames[MAX_FRAMES];
    uint32_t frame_count, frames_lost;
    uint64_t leaves, live_from, left_low, left_high;
    uint64_t random_numbers; /* how many it has used */
    /* For asm.c: objects of Rust's `Once` whose functions it is in. */
    uint64_t once[MAX_ONCE];
    unsigned once_count;
    uint64_t own_steps;
    /* All that its next step accesses, if that is more than `first` says. */
    struct announced ranges[2];
    unsigned range_count;
    /* Whether its next step writes only under a condition. If that is that memory holds a number: the number, and
     * its size in bytes; otherwise the size is 0. */
    int is_conditional;
    uint64_t expected, expected_size;
    /* For buffer.c: its pending stores, how many they are, how many store-store fences it has executed, its
     * index in the list of threads with pending stores, and whether its next step waits until the buffer is empty. */
    uint32_t oldest, newest, pending, epoch;
    int loaded_at, buffer_priority, drains;
    int has_stored; /* for attack.c */
    int restless; /* in how many steps it may soon stop running, because a store was held back */
    const void *frame; /* while it does not run, the end of the frames on its stack that it has not left */
    const uint64_t *state_from; /* for endless.c: where its registers and frames begin on its stack */
    pthread_t pthread;
    int kernel_id;
    void *(*start)(void *);
    void *argument;
    void *result;
    struct cleanup *cleanups;
    void *cancel_buffers;
    struct once_call *once_calls; /* for wait.c */
    struct mutex *robust;         /* for robust.c: the robust mutexes that it holds */
    struct thread *next;
    char park_stack[1024] __attribute__((aligned(16)));
    struct entered entered[MAX_ENTERED];
    /* The last call of a precompiled function of the C++ library: its return address, and where that is on the stack. */
    uint64_t outside, outside_slot;
};

/* State that the server and the execution share. */
struct shared {
    volatile uint64_t at;      /* bytes of the log buffer in use */
    volatile uint64_t flushed; /* how often the buffer was emptied */
    volatile uint32_t writing; /* the buffer is being emptied */
    volatile uint32_t reason;
    volatile uint64_t steps;
    volatile uint64_t crash_place, crash_address, crash_thread;
    volatile uint32_t exited;
    volatile uint32_t running; /* the kernel thread that runs now */
    volatile uint32_t accesses; /* whether any instrumented access was seen */
    volatile uint32_t late;           /* the execution has to end as soon as its log is written */
    volatile uint32_t replaced;       /* the program was replaced by another one */
    volatile uint32_t forked_threads; /* a process that it forked wanted to start threads */
    /* For spin.c: words of stacks that threads other than the owner have touched, in any execution, and which bytes
     * of them. A set by hashing. */
    uint64_t shared_words[MAX_SHARED];
    uint32_t shared_count;
    uint32_t is_sharing_new;                  /* the current execution has found some of them */
    uint32_t names;                           /* threads that have a number */
    uint32_t parents[MAX_THREADS], siblings[MAX_THREADS];
};

enum strategy { S_RANDOM, S_PCT, S_STAY, S_ROUND };

struct command {
    uint64_t magic;
    uint64_t strategy;
    uint64_t seed;
    uint64_t depth;   /* for PCT */
    uint64_t length;  /* the expected length of executions, for PCT */
    uint64_t steps;   /* the maximum number of steps */
    uint64_t stall;   /* the maximum number of milliseconds without any event */
    uint64_t time;    /* the maximum number of milliseconds in total */
    uint64_t flags;   /* EXPLORE, REPEAT, or nothing */
    uint64_t model;   /* whose store buffers threads have */
    uint64_t choices; /* how many pairs of actor and count follow; count 0: the actor is asleep */
    uint64_t addresses; /* how many addresses follow, by which a search under PSO names stores */
    uint64_t names;     /* in a search: how many threads are known from other executions, each by its parent and index */
    uint64_t sharing;   /* in a search: how many words of stacks are known to be shared, as in `shared_words` */
    uint64_t compared;  /* in a search: how many addresses are known at which memory is compared; see K_VALUE */
};
#define COMMAND_MAGIC 0x31444e414d4d4f43ull
/* For a search through all executions: footprints are logged, turns are followed strictly, threads whose
 * loops change nothing are ended, and time stands still. With REPEAT, the turns are those that such an execution has
 * taken. They are followed as far as possible, and stores are named by their positions. */
enum { EXPLORE = 1, REPEAT = 2 };

/* M_SC: none. */
enum model { M_SC, M_TSO, M_PSO };

/* Who takes a step: a thread, or its buffer, from which a pending store reaches memory. */
struct actor {
    struct thread *thread;
    uint32_t pending; /* the store; 0 for the thread itself */
};

/* An actor in a schedule is the number of its thread. For a buffer, the position of the store in it, plus 1,
 * is above that number. In a search under PSO, it is the position of the store's address in a list. */
enum { ACTOR_BITS = 12 };
/* What is above the number of a thread that gets a value, plus that value. */
#define VALUES (1u << 17)

struct choice {
    uint32_t actor;
    uint32_t count;
};

struct runtime {
    struct thread *self;
    struct shared *shared;
    char *log, *log_end;
    uint64_t random;
    uint64_t steps, next_check;
    /* How many threads can run. */
    int ready_count;
    /* The program is not followed at the moment: before the start, in a signal handler, or after a fork. */
    int quiet;
    /* Whether every decision goes through `pal_choose`. */
    int careful;
    enum strategy strategy;
    struct command command;
    struct choice *choices;
    const uint64_t *addresses, *compared;
    uint64_t choice_at, choice_used;
    uint32_t given_value; /* with which the chosen thread goes on, plus 1; 0 if none is given */
    int thread_count, live;
    int token_mode;
    int log_fd;
    uint64_t clock_ahead; /* nanoseconds by which the clock is ahead of the steps */
    uint64_t tickets;
    uint32_t streak;
    struct actor last;
    int lowest;
    uint64_t changes[MAX_CHANGES];
    int change_at, change_count;
    int diverged;
    uint64_t chosen;
    struct thread *zombies; /* detached threads that have ended */
    int is_served;          /* started by `palisade run` */
    int in_handler;         /* signal handlers that are running */
    int is_forked;          /* a process that the program forked */
    int buffers;            /* threads have store buffers */
    uint32_t holds;         /* of a random schedule: one in this many stores is held back */
    int attacks;            /* of a random schedule: one thread delays its stores (attack.c) */
    struct thread *shown;   /* the thread whose buffer lies over memory */
    int loaded_count;       /* threads with pending stores */
    int tries_endless;      /* all take turns, to see whether the execution ends */
    uint64_t next_try;
    int stickiness;         /* of a random schedule: how long threads keep running */
    uint64_t fresh_first, fresh_second; /* a load of memory that was never written; 0 if there is none (fresh.c) */
    /* At the end, so that everything else is on one page. */
    struct thread *threads[MAX_THREADS];
    struct thread *ready[MAX_THREADS];
    struct thread *loaded[MAX_THREADS];
    struct thread *by_number[MAX_THREADS];
};

extern struct runtime pal;

/* schedule.c */
void pal_choose(uint64_t first, uint64_t second);
void pal_timed(uint64_t place);
void pal_await(const void *object, ready_fn *ready, uint64_t first, uint64_t place);
void pal_changed(const void *object);
void pal_ready(struct thread *thread, int is_ready);
void pal_add_thread(struct thread *thread);
void pal_leave(void);
void pal_check(void);
void pal_yield(void);
void pal_begin_schedule(void);
int pal_can_run(struct thread *thread);
void pal_announce_step(struct thread *thread);
void pal_log_replaced(const struct thread *thread, uint64_t first, const void *old);
uint64_t pal_random(void);
int pal_always(struct thread *);
int pal_never(struct thread *);
uint64_t pal_now(void);

/* buffer.c */
void pal_buffer(uint64_t first, uint64_t second);
void pal_hide(void);
void pal_show(struct thread *thread);
int pal_drains(uint64_t first);
void pal_drain(void);
void pal_update(struct thread *owner, uint32_t store);
uint64_t pal_updates(const struct thread *owner);
uint32_t pal_update_at(const struct thread *owner, uint64_t index);
uint32_t pal_not_held(const struct thread *owner);
uint32_t pal_pending_at(const struct thread *owner, uint32_t position);
uint32_t pal_pending_to(const struct thread *owner, uint64_t address);
uint64_t pal_pending_first(uint32_t store);
uint32_t *pal_pending_asleep(uint32_t store);
int pal_is_full(const struct thread *thread);
uint64_t pal_mix_pending(const struct thread *owner, uint64_t state, uint64_t (*mix)(uint64_t, uint64_t));
void pal_make_room(void);
void pal_wakes(void);

/* site.c */
uint64_t pal_site_of(uint64_t place);
uint64_t pal_outside(uint64_t place);
uint64_t pal_crash_at(uint64_t place);

/* attack.c */
void pal_begin_attack(uint64_t random);
int pal_is_delayed(struct thread *self);
struct thread *pal_attack(int is_private, int is_idle);

/* endless.c */
void pal_begin_endless(void);
void pal_changes_outside(void);
void pal_try_endless(void);
void pal_look_for_loop(struct actor next);
void pal_note_step(uint64_t first, uint64_t second);
void pal_note_written(const struct thread *writer, uint64_t address, uint64_t size);

/* memory.c */
int pal_map(uint64_t address, size_t size, int flags);
__attribute__((noreturn)) void pal_address_in_use(const char *what, uint64_t address);
int pal_make_thread(uint32_t number, size_t size, struct thread **made);
enum { USUALLY_PREPARED = 4, MAX_PREPARED = 64 };
extern struct thread *pal_prepared[MAX_PREPARED + 1];
void pal_unmake_thread(struct thread *thread);
void pal_empty_stack(struct thread *thread);
size_t pal_stack_size(size_t requested);
void pal_first_stack(struct thread *thread, char **arguments);

/* spin.c */
int pal_is_spinning(struct thread *self, uint64_t first, const uint64_t *stack);
const struct look *pal_loop_of(const struct thread *thread);
int pal_spins_forever(struct thread *thread);
int pal_is_on_stack(const struct thread *thread, uint64_t address);
void pal_note_writes(struct thread *self);
int pal_shared_part(uint64_t low, uint64_t high, uint64_t *from, uint64_t *to);
void pal_note_shared(uint64_t address);
int pal_is_known_shared(uint64_t address);
void pal_know_sharing(const uint64_t *words, uint64_t count);

/* server.c */
struct thread *pal_first_thread(void);
void pal_flush(void);
void pal_text(enum text what, const char *text, size_t length);
__attribute__((noreturn)) void pal_stop(enum reason reason, const char *message);
void pal_note(enum note note, uint64_t place);
void pal_note_about(enum note note, uint64_t about, uint64_t place);

/* switch.c */
void pal_switch(struct thread *to);
__attribute__((noreturn)) void pal_switch_forever(struct thread *to);
void pal_prepare_threads(uint32_t count);
int pal_start_kernel_thread(struct thread *thread, const pthread_attr_t *attributes);
void pal_release_kernel_thread(struct thread *thread);
void pal_wait_token(struct thread *thread);
void pal_begin_threads(void);
void pal_wipe(void);
extern char pal_wipes;
long pal_syscall(long number, long a, long b, long c, long d, long e, long f);

/* thread.c */
__attribute__((noreturn)) void pal_thread_main(struct thread *thread);
struct thread *pal_thread_of(pthread_t pthread);
void pal_forget_stack(struct thread *thread);
int pal_create(pthread_t *pthread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument, int is_c11, uint64_t place);
int pal_join(pthread_t pthread, void **result, uint64_t deadline, uint64_t place);
__attribute__((noreturn)) void pal_end_thread(void *result, uint64_t place);

void pal_begin_unwinding(void);

/* limits.c */
__attribute__((noreturn)) void pal_fails(const char *what, uint64_t place);

/* asm.c */
int pal_is_once(uint64_t object);

/* A mutex; the first fields are those of the C library. */
struct mutex {
    int locked;
    unsigned count;
    uint32_t owner; /* number of the thread, plus 1 */
    unsigned protects; /* what it protects, for robust.c; the C library's initialisers are 0 */
    int kind;
    unsigned spins;
    uint64_t destroyed_at; /* where, and by which thread */
    struct mutex *next;    /* for robust.c */
};
/* The kind of a mutex that was destroyed, as in the C library. Initialising it again changes this. */
enum { MUTEX_DESTROYED = -1 };
enum { P_CONSISTENT, P_INCONSISTENT, P_LOST };

/* lock.c */
int pal_lock(pthread_mutex_t *mutex, uint64_t deadline, uint64_t place);
int pal_try_lock(pthread_mutex_t *mutex, uint64_t place);
int pal_unlock(pthread_mutex_t *mutex, uint64_t place);

/* robust.c */
int pal_is_robust(const struct mutex *mutex);
int pal_takes(struct mutex *mutex);
void pal_gives_up_robust(struct mutex *mutex);
void pal_dies_holding(uint64_t place);

/* wait.c */
void pal_leaves_once(const void *cancel_buffers);
int pal_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline, uint64_t place);
int pal_cond_wake(pthread_cond_t *cond, int all, uint64_t place);
void pal_once(int *once, void (*call)(void), uint64_t place);

/* clock.c */
uint64_t pal_deadline(clockid_t clock, const struct timespec *time);
void pal_sleep(uint64_t nanoseconds, uint64_t place);

/* random.c */
void pal_random_bytes(void *to, size_t size);

/* access.c */
void pal_copy(void *to, const void *from, size_t size);
void pal_fill(void *to, int byte, size_t size);
void pal_copy_for(void *to, const void *from, size_t size, uint64_t place);
void pal_move_for(void *to, const void *from, size_t size, uint64_t place);
void pal_fill_for(void *to, int byte, size_t size, uint64_t place);

/* library.c */
typedef void pal_tell_fn(const char *name, void *to);
void pal_not_compiled(pal_tell_fn *tell, void *to);
void pal_calls(pal_tell_fn *tell, void *to);
int pal_is_in_library(uint64_t place);
extern int pal_looks_up;
extern int pal_is_c_only;

/* limits.c */
void pal_begin_limits(void);
void *pal_next(const char *name);
/* A function of the C library that is replaced here. */
#define NEXT(name) ({ \
    static __typeof__(&name) found; \
    if (!found) { \
        found = pal_next(#name); \
    } \
    found; \
})
void pal_leaves_handler(const char *message);
void pal_refuse_thread(void);
int pal_limit_syscall(long number, const long *arguments, uint64_t place, long *result);

/* hidden.c */
void pal_maps(long protection, long flags, int fd, uint64_t place);
void pal_maps_twice(uint64_t place);
void pal_replaces(uint64_t place);
void pal_report_early(void);
void pal_after_exit(uint64_t place);
int pal_hidden_syscall(long number, const long *arguments, uint64_t place, long *result);

/* stdio.c */
void pal_reads_text(const char *text, size_t most, uint64_t place);

/* server.c, for the processes in which executions run */
struct choice;
void pal_write_all(int fd, const void *bytes, size_t size);
int pal_read_command(void *bytes, size_t size);
int pal_is_input(uint64_t address);
size_t pal_choice_bytes(void);
void pal_set_choices(struct choice *choices);
void pal_settle(void);
void pal_begin_log(void);
void pal_begin_execution(void);
void pal_report_end(int status, const char *printed, size_t printed_bytes);
void pal_crashed(int signal, void *about, void *context);

/* watch.c */
struct stopwatch {
    struct timespec start;
    int64_t last_change;
    uint64_t seen;
};
pid_t pal_wait_for(pid_t child, pid_t parent, int *status, void (*end)(pid_t));
void pal_start_watch(struct stopwatch *stopwatch);
enum reason pal_is_too_long(struct stopwatch *stopwatch, const struct command *command);
void pal_current_call(int process, char *text, size_t size);
int pal_watch(int child);

/* restore.c */
extern char pal_restores;
long pal_own_syscall(long number, long a, long b, long c, long d, long e, long f);
int pal_begin_restoring(void);
void pal_each_execution(void (*begin)(void));
void pal_unmap_restorable(uint64_t from, uint64_t to);
int pal_map_restorable(uint64_t address, size_t size, int flags);
void pal_hands_on(void);
void pal_unrestorable(void);
__attribute__((noreturn)) void pal_give_up(void);
__attribute__((noreturn)) void pal_end_execution(int status);
__attribute__((noreturn)) void pal_exit_process(int code);

/* resident.c */
void pal_begin_residents(const char *mode);
int pal_wants_resident(void);
int pal_run_resident(int (*make_process)(void));
struct choice *pal_given_up_choices(void);
int pal_is_resident_memory(uint64_t address);
void pal_resident_gives_up(void);
void pal_resident_prints(const char *text, size_t size);
void pal_resident_reports(int status);

/* reap.c */
void pal_begin_reaping(void);
void pal_expect_children(void);
int pal_is_end_requested(void);
void pal_end_children(void);
void pal_reap(void);

/* heap.c: blocks, each with this in front of it. */
struct block {
    uint64_t size;              /* what the program asked for */
    uint64_t made_at, freed_at; /* place and thread; 0 if it was not freed */
    uint64_t distance;          /* for aligned memory: from the header of its whole room to this one */
    /* Only in the header of the whole room. */
    struct block *next;
    uint64_t class : 8, room : 56; /* the list that it belongs to, and how many bytes there are */
};

/* Addresses of the heaps of threads: 64 GiB each for the first threads, 4 GiB for the others. For the choice of
 * addresses, see memory.c. */
#define ARENAS 0x400000000000ull
#define ARENA_BYTES (1ull << 32)
#define LARGE_ARENAS 0x500000000000ull
#define LARGE_ARENA_BYTES (1ull << 36)
enum { MAX_LARGE = 64 };
#define HEAP_BYTES (LARGE_ARENAS - ARENAS + MAX_LARGE * LARGE_ARENA_BYTES)

/* One byte for every GRANULE bytes of the heap. Up to GRANULE: how many of them may be accessed, from the first
 * one. */
enum shadow { GRANULE = 16, S_NONE = 0, S_FREED = 17, S_LIVE_HEADER = 18, S_FREED_HEADER = 19 };
#define SHADOWS 0x180000000000ull
#define SHADOW_OF(address) ((unsigned char *)(((address) - ARENAS) / GRANULE + SHADOWS))

extern char pal_starts_thread;
int pal_is_heap(uint64_t address);
void *pal_allocate(size_t size, uint64_t place);
void pal_release(void *memory);
void pal_free_for(void *memory, uint64_t place);

/* misuse.c */
void pal_check_heap(uint64_t first, uint64_t second);
void pal_check_stack(uint64_t first, uint64_t second, const void *frame);
void pal_check_update(const struct thread *owner, uint64_t first, uint64_t second);
void pal_check_free(uint64_t address, uint64_t place);
__attribute__((noreturn)) void pal_misused_fresh(uint64_t first, uint64_t second);
__attribute__((noreturn)) void pal_misused_lock(enum misuse what, const void *lock, uint32_t owner, uint64_t destroyed_at, uint64_t place);

/* audit.c */
void pal_accesses(const void *at, size_t size, int writes, uint64_t place);
void pal_touches_stack(uint64_t first, uint64_t second);
void pal_drop_marks(struct thread *thread);
int pal_touched_part(const struct thread *owner, uint64_t low, uint64_t high, uint64_t *from, uint64_t *to);

/* leave.c */
void pal_enter_frame(struct thread *self, uint64_t top, uint64_t function);
int pal_leaves_frame(struct thread *self, uint64_t low, uint64_t function);
void pal_leave_frame(struct thread *self, uint64_t low, uint64_t place);
/* In the size field of a K_FREE record: a frame is left, or it is a step of order.c. */
enum { LEAVES = 1, ORDERED = 2 };

/* order.c */
enum ordered { ORDERED_CLOCK, ORDERED_SYSTEM, ORDERED_AT_EXIT, ORDERED_KINDS };
void pal_in_order(enum ordered kind, uint64_t place);

/* Stacks are in one range of addresses (memory.c). */
#define STACKS 0x080000000000ull
#define STACK_RANGE (1ull << 31)

/* fresh.c */
void *pal_fresh(void *memory, size_t size);
void pal_loads_plain(uint64_t first, uint64_t place);
void pal_loads_atomic(uint64_t first, uint64_t place);

/* Whether a load from here may read memory that was never written. */
static inline int pal_may_be_fresh(uint64_t address)
{
    int is_here = address - ARENAS < HEAP_BYTES || address - STACKS < STACK_RANGE * MAX_THREADS;
    return unlikely(is_here) && !pal.quiet;
}

/* The next step of the calling thread accesses this range, more than can be given with the decision. */
static inline void pal_add_range(uint64_t address, uint64_t size, enum kind kind)
{
    struct thread *self = pal.self;
    if (pal.command.flags & EXPLORE) {
        self->ranges[self->range_count++ % 2] = (struct announced){.address = address, .size = size, .kind = kind};
    }
}

/* The calling thread is about to make this access itself. A new group of announcements begins once any access
 * of the previous group has happened. */
static inline __attribute__((always_inline)) void pal_announce(uint64_t address, uint64_t size, enum kind kind)
{
    struct thread *self = pal.self;
    if (self->announced_used) {
        self->announced_used = 0;
        self->announced_count = 0;
    }
    struct announced *to = &self->announced[self->announced_count % MAX_ANNOUNCED];
    self->announced_count++;
    to->address = address;
    to->size = size;
    to->left = ~0ull;
    to->kind = kind;
}

/* Whether the calling thread knows that it is the only one: it is the first thread, and has joined all
 * others. It must not matter whether other threads happen to have ended, because their end is not ordered
 * before the next step. */
static inline int pal_is_alone(void)
{
    return !pal.self->number && !pal.self->unjoined;
}

/* Replacements for functions of the C library, whose own names belong to the program (strings.c). */
static inline size_t pal_length(const char *text)
{
    size_t length = 0;
    while (text[length]) {
        length++;
    }
    return length;
}

static inline int pal_is_text(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static inline char *pal_last(const char *text, char c)
{
    const char *found = NULL;
    for (; *text; text++) {
        found = *text == c ? text : found;
    }
    return (char *)found;
}

/* Writes a record. */
static inline __attribute__((always_inline)) void pal_log(uint64_t first, uint64_t second)
{
    struct shared *shared = pal.shared;
    uint64_t *record = (uint64_t *)(pal.log + shared->at);
    if (unlikely(pal.tries_endless)) {
        pal_note_step(first, second);
    }
    record[0] = first;
    record[1] = second;
    shared->at += 16;
    if (unlikely((char *)(record + 2) >= pal.log_end)) {
        pal_flush();
    }
}

/* A place of the calling thread, with its tag. No address of code has this bit. */
#define SITE (1ull << 47)
static inline __attribute__((always_inline)) uint64_t pal_at(uint64_t place)
{
    struct thread *self = pal.self;
    return (likely(!self->entered_count) ? place : pal_site_of(place)) | self->tag;
}

static inline __attribute__((always_inline)) uint64_t pal_next_random(void)
{
    uint64_t state = pal.random += 0xa0761d6478bd642full;
    __uint128_t product = (__uint128_t)state * (state ^ 0xe7037ed1a0b428dbull);
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* The calling thread is about to do this. Returns when it has been chosen. The caller has to log what happens
 * then. */
static inline __attribute__((always_inline)) void pal_decide(uint64_t first, uint64_t second)
{
    if (unlikely((first & ADDRESS_BITS) - STACKS < STACK_RANGE * MAX_THREADS)) {
        pal_touches_stack(first, second);
    }
    if (unlikely(++pal.steps >= pal.next_check)) {
        pal_check();
    }
    if (unlikely(pal.careful)) {
        pal.self->frame = __builtin_frame_address(0);
        pal_choose(first, second);
    } else if (pal.ready_count > 1) {
        uint64_t index = (pal_next_random() >> 32) * (uint64_t)pal.ready_count >> 32;
        struct thread *next = pal.ready[index];
        if (next != pal.self) {
            pal.self->first = first;
            pal.self->second = second;
            pal.self->frame = __builtin_frame_address(0);
            pal_switch(next);
        }
    }
}

/* What the calling thread is about to do writes only if memory holds a number. A size of 0 is for other conditions.
 * Otherwise it is logged as K_LOCKED_LOAD. */
static inline void pal_writes_if(uint64_t number, uint64_t size)
{
    struct thread *self = pal.self;
    self->is_conditional = 1;
    self->expected = number;
    self->expected_size = size <= sizeof number ? size : 0;
}

/* Whether the program is not followed at the moment. */
static inline __attribute__((always_inline)) int pal_is_quiet(uint64_t place)
{
    if (likely(!pal.quiet)) {
        return 0;
    }
    if (unlikely(pal.shared->exited)) {
        pal_after_exit(place);
    }
    return 1;
}

/* The calling thread has been chosen and accesses this now. */
static inline __attribute__((always_inline)) void pal_check_access(uint64_t first, uint64_t second)
{
    uint64_t address = first & ADDRESS_BITS;
    if (unlikely(address - ARENAS < HEAP_BYTES)) {
        pal_check_heap(first, second);
    } else if (unlikely(address - STACKS < STACK_RANGE * MAX_THREADS)) {
        pal_check_stack(first, second, __builtin_frame_address(0));
    }
}

/* The calling thread has been chosen and does this now. */
static inline __attribute__((always_inline)) void pal_happens(uint64_t first, uint64_t second)
{
    enum kind kind = KIND_OF(first);
    if (kind <= K_LOCKED_LOAD) {
        pal_check_access(first, second);
    }
    if (likely(!pal.buffers) || (kind != K_STORE && kind != K_FENCE && kind != K_STORE_FENCE) || pal_is_alone()) {
        pal_log(first, second);
    } else {
        second |= kind == K_STORE ? F_BUFFERED : 0;
        pal_log(first, second);
        pal_buffer(first, second);
    }
}

/* The calling thread does this once it is chosen. `address` may have any bits set. The bits of `head` are
 * above those of the address. */
static inline __attribute__((always_inline)) void pal_event(uint64_t address, uint64_t head, uint64_t place)
{
    if (pal_is_quiet(place)) {
        return;
    }
    uint64_t first = (address & ADDRESS_BITS) | head;
    uint64_t second = pal_at(place) | F_CHOSEN;
    pal_decide(first, second);
    pal_happens(first, second);
}

/* Another access of the same step. */
static inline void pal_also(uint64_t address, uint64_t head, uint64_t place)
{
    if (likely(!pal.quiet)) {
        uint64_t first = (address & ADDRESS_BITS) | head, second = pal_at(place);
        if (unlikely(address - STACKS < STACK_RANGE * MAX_THREADS)) {
            pal_touches_stack(first, second);
        }
        pal_happens(first, second);
    }
}

#endif
