#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef VALUE value;

#if defined(__CPROVER__) || defined(VERIFIER)

/* For verifiers: a step is one of their atomic sections. Compile with -DVERIFIER for the tools of SV-COMP. */
#if defined(__CPROVER__)
#define __VERIFIER_atomic_begin() __CPROVER_atomic_begin()
#define __VERIFIER_atomic_end() __CPROVER_atomic_end()
#define __VERIFIER_assume(condition) __CPROVER_assume(condition)
#else
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
extern void __VERIFIER_assume(int);
#endif
extern value __VERIFIER_nondet_NONDET(void);

#define BEGIN() __VERIFIER_atomic_begin()
#define END() __VERIFIER_atomic_end()
#define WAIT_UNTIL(condition) BEGIN(); __VERIFIER_assume(condition)
#define STUCK() __VERIFIER_assume(0)
#define HALT() __VERIFIER_assume(0)
#define TICK() ((void)0)

static __attribute__((unused)) value choose(value least, value most)
{
    value chosen = __VERIFIER_nondet_NONDET();
    __VERIFIER_assume(least <= chosen && chosen <= most);
    return chosen;
}

static pthread_t run_threads[PROCESSES];
static int run_started = 0;

static void start(void *(*process)(void *), int me)
{
    pthread_create(&run_threads[run_started++], 0, process, (void *)(intptr_t)me);
}

static void run(void)
{
    for (int i = 0; i < INSTANCES; i++)
        pthread_join(run_threads[i], 0);
}

#else

/* For running: processes take turns of one step each. A random number generator chooses the order. Its seed
 * is the program's argument, so the same argument gives the same run. A run ends after STEPS steps, or when
 * every process has ended or is stuck. */
#ifndef STEPS
#define STEPS 10000
#endif

static pthread_mutex_t run_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t run_turn_passed = PTHREAD_COND_INITIALIZER;
static uint64_t run_seed = 1;
static long run_steps = STEPS;
static int run_turn = -1;            /* the process that may run */
static int run_started = 0;
static int run_alive[PROCESSES];
static int run_left = 0;             /* processes that are alive */
static struct { void *(*process)(void *); int me; } run_threads[PROCESSES];
static _Thread_local int run_self = -1;

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t run_random(void)
{
    uint64_t mixed = run_seed += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

/* With probability one half the process that has the turn keeps it. */
static void run_pass(void)
{
    if (run_self >= 0 && run_alive[run_self] && run_random() % 2 == 0)
        return;
    run_turn = -1;
    if (run_left > 0) {
        int next = (int)(run_random() % (uint64_t)run_left);
        for (int i = 0; i < run_started; i++)
            if (run_alive[i] && next-- == 0)
                run_turn = i;
    }
    pthread_cond_broadcast(&run_turn_passed);
}

static void run_tick(void)
{
    if (run_steps-- == 0)
        _Exit(0);
}

static void run_begin(void)
{
    pthread_mutex_lock(&run_mutex);
    while (run_turn != run_self)
        pthread_cond_wait(&run_turn_passed, &run_mutex);
    run_tick();
}

static void run_end(void)
{
    run_pass();
    pthread_mutex_unlock(&run_mutex);
}

static void run_leave(void)
{
    run_begin();
    run_alive[run_self] = 0;
    run_left--;
    run_end();
}

static inline __attribute__((unused)) void run_stuck(void)
{
    run_leave();
    pthread_exit(NULL);
}

#define BEGIN() run_begin()
#define END() run_end()
#define WAIT_UNTIL(condition) while (run_begin(), !(condition)) run_end()
#define STUCK() run_stuck()
#define HALT() _Exit(0)
#define TICK() run_tick()

static int __VERIFIER_nondet_int(void)
{
    return (int)run_random();
}

static inline __attribute__((unused)) value choose(value least, value most)
{
    uint64_t span = (uint64_t)most - (uint64_t)least + 1;
    uint64_t chosen = ((uint64_t)(uint32_t)__VERIFIER_nondet_int() << 32) | (uint32_t)__VERIFIER_nondet_int();
    return (value)((uint64_t)least + (span == 0 ? chosen : chosen % span));
}

static void *run_process(void *number)
{
    run_self = (int)(intptr_t)number;
    run_threads[run_self].process((void *)(intptr_t)run_threads[run_self].me);
    run_leave();
    return NULL;
}

static inline void start(void *(*process)(void *), int me)
{
    pthread_t thread;
    int number = run_started;
    if (number == PROCESSES)
        _Exit(0);
    run_threads[number].process = process;
    run_threads[number].me = me;
    run_alive[number] = 1;
    run_started++;
    run_left++;
    if (pthread_create(&thread, NULL, run_process, (void *)(intptr_t)number) != 0)
        _Exit(0);
    pthread_detach(thread);
}

static inline void run(void)
{
    pthread_mutex_lock(&run_mutex);
    run_pass();
    while (run_left > 0)
        pthread_cond_wait(&run_turn_passed, &run_mutex);
    pthread_mutex_unlock(&run_mutex);
}

#endif

/* A step, a step that waits for a condition, and a load as a step of its own. */
#define STEP(...) do { BEGIN(); __VA_ARGS__; END(); } while (0)
#define WHEN(condition, ...) do { WAIT_UNTIL(condition); __VA_ARGS__; END(); } while (0)
#define LOAD(place) load(&(place))

static inline __attribute__((unused)) value load(const value *place)
{
    value loaded;
    BEGIN();
    loaded = *place;
    END();
    return loaded;
}
