//! C programs that get stuck, programs that cannot finish, and those that only look like it.

use crate::common::{Ran, Scratch};

const HEAD: &str = "\
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
void __VERIFIER_assume(int);
";

/// Checks a program with these options. The first line must contain the words.
#[track_caller]
fn check(name: &str, code: &str, options: &[&str], exit: i32, words: &[&str]) -> Ran {
    let scratch = Scratch::new(&format!("c_finish_{name}")).file("p.c", format!("{HEAD}{code}"));
    let mut args = vec!["check", "p.c", "-q"];
    args.extend(options);
    let ran = scratch.run(&args);
    let first = ran.stdout.lines().next().unwrap_or_default().to_owned();
    for word in words {
        assert!(first.contains(word), "{name}: {word}\n{}{}", ran.stdout, ran.stderr);
    }
    ran.exits(exit)
}

const FINISHES: &[&str] = &["safe  p.c: free of deadlocks, `main` can always finish"];

/// Two mutexes, taken in the order of the caller.
const TWO_MUTEXES: &str = "
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *nothing)
{
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return nothing;
}
static void *second(void *nothing)
{
    pthread_mutex_lock(SECOND_1);
    pthread_mutex_lock(SECOND_2);
    pthread_mutex_unlock(SECOND_2);
    pthread_mutex_unlock(SECOND_1);
    return nothing;
}
int main(void)
{
    pthread_t t1, t2;
    pthread_create(&t1, 0, first, 0);
    pthread_create(&t2, 0, second, 0);
    pthread_join(t1, 0);
    pthread_join(t2, 0);
    return 0;
}
";

#[test]
fn mutexes_in_two_orders() {
    let in_order = ["--", "-DSECOND_1=&a", "-DSECOND_2=&b"];
    check("ordered", TWO_MUTEXES, &in_order, 0, FINISHES);
    let words = [
        "unsafe  p.c: deadlock: main waits at line 31: pthread_join(",
        "(for first and second to end)",
        "first waits at line 12: pthread_mutex_lock(&b) (for mutex b, which second holds)",
        "second waits at line 20: pthread_mutex_lock(SECOND_2) (for mutex a, which first holds)",
    ];
    let crossed = ["--", "-DSECOND_1=&b", "-DSECOND_2=&a"];
    check("crossed", TWO_MUTEXES, &crossed, 1, &words);
    let off = ["--no-deadlock", "--", "-DSECOND_1=&b", "-DSECOND_2=&a"];
    let ran = check("off", TWO_MUTEXES, &off, 0, &[]);
    assert_eq!(ran.stdout, "safe  p.c\n");
}

#[test]
fn runs_to_a_deadlock_are_replayed() {
    let scratch = Scratch::new("c_finish_replay").file("p.c", format!("{HEAD}{TWO_MUTEXES}"));
    let args = ["check", "-q", "p.c", "--witness", "w.json", "--", "-DSECOND_1=&b", "-DSECOND_2=&a"];
    scratch.run(&args).exits(1);
    let replayed = scratch.run(&["replay", "-q", "w.json"]).exits(0);
    assert!(replayed.stdout.contains("deadlock: main waits"), "{}", replayed.stdout);
    assert!(scratch.read("w.json").contains("\"finish\": true"));
}

/// A sleeper that says so before it looks, and a waker that looks after its store.
const LOST: &str = "
static atomic_int ready, asleep, woken;
static void *sleeper(void *nothing)
{
    atomic_store_explicit(&asleep, 1, memory_order_relaxed);
    FENCE;
    if (atomic_load_explicit(&ready, memory_order_relaxed))
        return nothing;
    while (!atomic_load_explicit(&woken, memory_order_acquire))
        ;
    return nothing;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, sleeper, 0);
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    FENCE;
    if (atomic_load_explicit(&asleep, memory_order_relaxed))
        atomic_store_explicit(&woken, 1, memory_order_release);
    pthread_join(t, 0);
    return 0;
}
";

/// The same, with a sleeper that does something while it waits.
fn polls() -> String {
    let polls = LOST.replace("        ;\n", "        polls = !polls;\n");
    polls.replace("asleep, woken", "asleep, woken, polls")
}

#[test]
fn a_lost_wake_up_by_store_buffering() {
    let fence = "-DFENCE=atomic_thread_fence(memory_order_seq_cst)";
    check("fenced", LOST, &["--", fence], 0, FINISHES);
    check("lost_sc", LOST, &["--model", "sc", "--", "-DFENCE"], 0, FINISHES);
    check("lost", LOST, &["--", "-DFENCE"], 1, &["deadlock: main waits", "sleeper waits"]);
    // Polling that does more than wait is no deadlock, but nothing comes of it.
    let polls = polls();
    let words = ["unsafe  p.c: `main` can no longer finish: main ", "; sleeper is at line 15: while ("];
    check("polls", &polls, &["--", "-DFENCE"], 1, &words);
    check("polls_fenced", &polls, &["--", fence], 0, FINISHES);
}

#[test]
fn runs_after_which_main_cannot_finish_are_replayed() {
    let polls = polls();
    let scratch = Scratch::new("c_finish_replay_polls").file("p.c", format!("{HEAD}{polls}"));
    scratch.run(&["check", "-q", "p.c", "--witness", "w.json", "--", "-DFENCE"]).exits(1);
    let replayed = scratch.run(&["replay", "-q", "w.json"]).exits(0);
    assert!(replayed.stdout.contains("`main` can no longer finish: main waits"), "{}", replayed.stdout);
}

#[test]
fn a_flag_that_nobody_sets() {
    let code = "static atomic_int stop;\n\
                static void *f(void *p) { while (!stop) ; return p; }\n\
                int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }\n";
    check("unset", code, &[], 1, &["unsafe  p.c: `main` can never finish: main is at line 9"]);
    let set = code.replace("pthread_join", "stop = 1; pthread_join");
    check("set", &set, &[], 0, FINISHES);
}

/// A flag with a condition variable. The waker changes it with the mutex or without.
const CONDITION: &str = "
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static atomic_int ready;
static void *waiter(void *nothing)
{
    pthread_mutex_lock(&m);
    while (!ready)
        WAIT;
    pthread_mutex_unlock(&m);
    return nothing;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, waiter, 0);
    LOCK(&m);
    ready = 1;
    UNLOCK(&m);
    pthread_cond_signal(&c);
    pthread_join(t, 0);
    return 0;
}
";

#[test]
fn a_signal_without_the_mutex_is_lost() {
    let wait = "-DWAIT=pthread_cond_wait(&c, &m)";
    let locks = ["-DLOCK=pthread_mutex_lock", "-DUNLOCK=pthread_mutex_unlock"];
    check("locked", CONDITION, &["--", wait, locks[0], locks[1]], 0, FINISHES);
    let words = ["deadlock: main waits", "waiter waits at line 15: WAIT (for a signal of c)"];
    let unlocked = ["-DLOCK(m)=", "-DUNLOCK(m)="];
    check("unlocked", CONDITION, &["--", wait, unlocked[0], unlocked[1]], 1, &words);
    // A wait with a time limit ends by itself.
    let timed = "-DWAIT=do { struct timespec t = {0, 0}; pthread_cond_timedwait(&c, &m, &t); } while (0)";
    check("timed", CONDITION, &["--", timed, unlocked[0], unlocked[1]], 0, FINISHES);
}

/// A thread that waits for something that never happens, and what `main` does meanwhile.
fn with_daemon(rest: &str) -> String {
    format!(
        "static sem_t s;\nstatic atomic_int x;\n\
         static void *daemon(void *nothing) {{ for (;;) sem_wait(&s); return nothing; }}\n\
         static void *waits(void *nothing) {{ sem_wait(&s); return nothing; }}\n\
         static void *sets(void *nothing) {{ x = 1; return nothing; }}\n\
         static void *leaves(void *nothing) {{ x = 1; EXIT; return nothing; }}\n\
         int main(void)\n{{\n    pthread_t t, u;\n    sem_init(&s, 0, 0);\n    {rest}\n    return 0;\n}}\n"
    )
}

#[test]
fn the_end_of_main_is_the_end_of_all_threads() {
    let exit = ["--", "-DEXIT=exit(0)"];
    let daemon = with_daemon("pthread_create(&t, 0, daemon, 0); x = 1;");
    check("daemon", &daemon, &exit, 0, FINISHES);
    let waits = with_daemon("pthread_create(&t, 0, waits, 0); x = 1;");
    check("unjoined", &waits, &exit, 0, FINISHES);
    let joined = with_daemon("pthread_create(&t, 0, waits, 0); pthread_join(t, 0);");
    check(
        "joined",
        &joined,
        &exit,
        1,
        &["deadlock: main waits", "waits waits", "(for semaphore s, which is 0)"],
    );
    // Nobody expects a thread without an end to end.
    let forever =
        with_daemon("pthread_create(&t, 0, daemon, 0); sem_post(&s); sem_post(&s); pthread_join(t, 0);");
    check("by_design", &forever, &["--no-races", "--", "-DEXIT=exit(0)"], 1, &["deadlock: main waits"]);
}

#[test]
fn a_thread_can_end_the_program() {
    let code =
        with_daemon("pthread_create(&t, 0, waits, 0); pthread_create(&u, 0, leaves, 0); pthread_join(t, 0);");
    for exit in ["exit(0)", "_Exit(1)", "quick_exit(0)"] {
        check("exit", &code, &["--", &format!("-DEXIT={exit}")], 0, FINISHES);
    }
    check("no_exit", &code, &["--", "-DEXIT"], 1, &["deadlock: main waits", "(for waits to end)"]);
    check("abort", &code, &["--", "-DEXIT=abort()"], 1, &["unsafe  p.c: ", "abort"]);
}

#[test]
fn the_program_goes_on_after_pthread_exit_in_main() {
    let exit = ["--", "-DEXIT=exit(0)"];
    let ends = with_daemon("pthread_create(&t, 0, sets, 0); pthread_exit(0);");
    check("exit_main", &ends, &exit, 0, FINISHES);
    let stuck = with_daemon("pthread_create(&t, 0, waits, 0); pthread_exit(0);");
    check("exit_main_stuck", &stuck, &exit, 1, &["deadlock: main waits", "waits waits"]);
    let perhaps = with_daemon("if (x) pthread_create(&t, 0, waits, 0); pthread_exit(0);");
    check("exit_main_unstarted", &perhaps, &exit, 0, FINISHES);
}

#[test]
fn programs_that_run_forever_are_no_errors() {
    let server = with_daemon("pthread_create(&t, 0, daemon, 0); for (;;) x = !x;");
    let ran = check("server", &server, &["--no-races", "--", "-DEXIT"], 0, &[]);
    assert!(!ran.stdout.contains("finish"), "{}", ran.stdout);
}

#[test]
fn where_an_assumption_fails_nothing_is_judged() {
    let code = with_daemon("pthread_create(&t, 0, sets, 0); __VERIFIER_assume(x); pthread_join(t, 0);");
    let scratch = Scratch::new("c_finish_assume").file("p.c", format!("{HEAD}{code}"));
    let ran = scratch.run(&["check", "p.c", "--", "-DEXIT"]).exits(0);
    assert!(ran.stdout.starts_with(FINISHES[0]), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("where an assumption fails, the program counts as finished"),
        "{}",
        ran.stdout
    );
}

#[test]
fn threads_of_a_library_can_all_end() {
    let options = ["--thread", "first", "--thread", "second", "--"];
    let ordered: Vec<&str> = options.into_iter().chain(["-DSECOND_1=&a", "-DSECOND_2=&b"]).collect();
    let code = TWO_MUTEXES.replace("int main(void)", "int unused(void)");
    let words = ["safe  p.c: free of deadlocks, all threads can always end"];
    check("library", &code, &ordered, 0, &words);
    let crossed: Vec<&str> = options.into_iter().chain(["-DSECOND_1=&b", "-DSECOND_2=&a"]).collect();
    check("library_stuck", &code, &crossed, 1, &["deadlock: first waits"]);
}
