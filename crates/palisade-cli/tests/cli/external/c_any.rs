//! Any number of threads in C programs.
//!
//! The judge is the same program with a few threads: what is safe with any number is safe with two and three, and a bug
//! with any number is one with the number of threads that its run has.

use crate::common::Scratch;

const HEAD: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#ifndef THREADS
#define THREADS 2
#endif
";

/// `main`, with threads that run these functions, as many of each as there are threads, or one.
fn main_with(functions: &[(&str, &str)]) -> String {
    let mut text = "int main(void)\n{\n    pthread_t threads[8];\n    int n = 0;\n".to_owned();
    for (function, count) in functions {
        text += &format!(
            "    for (int i = 0; i < {count}; i++)\n        pthread_create(&threads[n++], 0, {function}, 0);\n"
        );
    }
    text + "    for (int i = 0; i < n; i++)\n        pthread_join(threads[i], 0);\n    return 0;\n}\n"
}

const MODELS: [&str; 2] = ["tso", "pso"];

/// The verdict with any number, which agrees with that for a few.
#[track_caller]
fn check(name: &str, body: &str, functions: &[(&str, &str)], flags: &[&str], expected: &str) {
    check_under(&MODELS, name, body, functions, flags, expected);
}

#[track_caller]
fn check_under(
    models: &[&str],
    name: &str,
    body: &str,
    functions: &[(&str, &str)],
    flags: &[&str],
    expected: &str,
) {
    let text = format!("{HEAD}{body}{}", main_with(functions));
    let scratch = Scratch::new(&format!("c_any_{name}")).file("p.c", text);
    for model in models {
        let mut args = vec!["check", "p.c", "--threads", "any", "--model", model, "--timeout", "60"];
        let certificate = ["--certificate", "proof.json"];
        if expected == "safe" {
            args.extend(certificate);
        }
        args.push("--");
        args.extend(flags);
        let ran = scratch.run(&args);
        assert!(
            ran.stdout.starts_with(&format!("{expected}  p.c")),
            "{name} {model}: {}{}",
            ran.stdout,
            ran.stderr
        );
        let threads = match expected {
            "safe" => {
                assert!(ran.stdout.contains("any number of threads run `"), "{name}: {}", ran.stdout);
                assert!(
                    ran.stdout.contains("after these threads have been joined"),
                    "{name}: {}",
                    ran.stdout
                );
                let certified = scratch.run(&["certify", "proof.json"]).exits(0);
                assert!(certified.stdout.contains("with any number of the threads"), "{}", certified.stdout);
                ["-DTHREADS=2", "-DTHREADS=3"].as_slice()
            }
            // More threads do not take a run away.
            _ => ["-DTHREADS=3"].as_slice(),
        };
        for threads in threads {
            let mut args =
                vec!["check", "-q", "p.c", "--model", model, "--timeout", "60", "--no-races", "--", threads];
            args.extend(flags);
            let fixed = scratch.run(&args).stdout;
            assert!(fixed.starts_with(&format!("{expected}  p.c")), "{name} {model} {threads}: {fixed}");
        }
    }
}

const SECTION: &str = "\
    assert(inside == 0);
    inside = 1;
    inside = 0;
";

#[test]
fn test_and_set() {
    let lock = format!(
        "static atomic_int taken;
static int inside;
static void *work(void *nothing)
{{
    while (atomic_exchange_explicit(&taken, 1, memory_order_acquire))
        WAIT;
#ifdef BROKEN
    atomic_store_explicit(&taken, 0, memory_order_release);
#endif
{SECTION}    atomic_store_explicit(&taken, 0, memory_order_release);
    return nothing;
}}
"
    );
    let tas = lock.replace("        WAIT", "        ");
    check("tas", &tas, &[("work", "THREADS")], &[], "safe");
    check("tas_broken", &tas, &[("work", "THREADS")], &["-DBROKEN"], "unsafe");
    let ttas =
        lock.replace("WAIT", "while (atomic_load_explicit(&taken, memory_order_relaxed))\n            ");
    check("ttas", &ttas, &[("work", "THREADS")], &[], "safe");
}

const TICKET: &str = "\
static atomic_uint next, serving;
static int inside;
static void *work(void *nothing)
{
    unsigned mine = atomic_fetch_add(&next, 1);
    while (atomic_load_explicit(&serving, memory_order_acquire) DIFFERS mine)
        ;
    assert(inside == 0);
    inside = 1;
    inside = 0;
    atomic_store_explicit(&serving, mine + 1, memory_order_release);
    return nothing;
}
";

const READERS_AND_WRITERS: &str = "\
static atomic_int state;
static int left, right;
static void *reader(void *nothing)
{
    for (;;) {
        int now = atomic_load_explicit(&state, memory_order_relaxed);
        if (now >= 0 && now < MOST && atomic_compare_exchange_strong(&state, &now, now + 1))
            break;
    }
    assert(left == right);
#ifdef BROKEN
    atomic_fetch_sub(&state, 1);
    assert(left == right);
#else
    atomic_fetch_sub(&state, 1);
#endif
    return nothing;
}
static void *writer(void *nothing)
{
    int free = 0;
    while (!atomic_compare_exchange_strong(&state, &free, -1))
        free = 0;
    left ^= 1;
    right ^= 1;
    atomic_store_explicit(&state, 0, memory_order_release);
    return nothing;
}
";

/// A reader-writer lock for a few readers at a time: the values of its counter are guessed, and the guess is proved.
#[test]
fn reader_writer_lock() {
    let threads = [("reader", "THREADS"), ("writer", "THREADS")];
    check_under(&["tso"], "readers", READERS_AND_WRITERS, &threads, &["-DMOST=2"], "safe");
    check("readers_broken", READERS_AND_WRITERS, &threads, &["-DMOST=2", "-DBROKEN"], "unsafe");
}

/// A reader that reads again if a writer was there, and one writer.
#[test]
fn seqlock_readers() {
    let seqlock = "\
static atomic_uint sequence;
static atomic_int left, right;
static void *reader(void *nothing)
{
    for (;;) {
        unsigned before = atomic_load_explicit(&sequence, memory_order_acquire);
        int a = atomic_load_explicit(&left, memory_order_relaxed);
        int b = atomic_load_explicit(&right, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        unsigned after = atomic_load_explicit(&sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            assert(a == b);
            return nothing;
        }
    }
}
static void *writer(void *nothing)
{
#ifndef BROKEN
    atomic_store_explicit(&sequence, 1, memory_order_relaxed);
#endif
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&left, 1, memory_order_relaxed);
    atomic_store_explicit(&right, 1, memory_order_relaxed);
    atomic_store_explicit(&sequence, 2, memory_order_release);
    return nothing;
}
";
    let threads = [("reader", "THREADS"), ("writer", "1")];
    check("seqlock", seqlock, &threads, &[], "safe");
    check("seqlock_broken", seqlock, &threads, &["-DBROKEN"], "unsafe");
}

/// Counters that grow with the number of threads: the answer says up to how many it holds, and that is checked.
#[test]
fn the_number_up_to_which_it_holds() {
    let unbounded = READERS_AND_WRITERS.replace(" && now < MOST", "");
    let programs = [
        ("ticket", TICKET.replace("DIFFERS", "!="), vec![("work", "THREADS")]),
        ("readers", unbounded, vec![("reader", "THREADS"), ("writer", "THREADS")]),
    ];
    for (name, body, functions) in programs {
        let text = format!("{HEAD}{body}{}", main_with(&functions));
        let scratch = Scratch::new(&format!("c_any_number_{name}")).file("p.c", text);
        let json = scratch.run(&["check", "--format", "json", "p.c", "--threads", "any"]).exits(3).stdout;
        let found: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        let known = found["known_threads"].as_u64().unwrap_or_else(|| panic!("{name}: {json}"));
        assert!(known >= 4, "{name}: {json}");
        let phrase =
            format!("no bad state with up to {known} threads of each kind of which any number is allowed");
        assert!(found["reason"].as_str().is_some_and(|reason| reason.ends_with(&phrase)), "{name}: {json}");
        let fixed = scratch.run(&["check", "-q", "p.c", "--no-races", "--", "-DTHREADS=3"]).exits(0);
        assert!(fixed.stdout.starts_with("safe"), "{name}: {}", fixed.stdout);
    }
}

/// A bug that takes more threads than the source starts is found, and its run replays.
#[test]
fn a_bug_with_many_threads() {
    let body = "\
static atomic_uint next;
static void *work(void *nothing)
{
    assert(atomic_fetch_add(&next, 1) < 5);
    return nothing;
}
";
    let text = format!("{HEAD}{body}{}", main_with(&[("work", "THREADS")]));
    let scratch = Scratch::new("c_any_many").file("p.c", text);
    let ran = scratch.run(&["check", "p.c", "--threads", "any", "--witness", "run.json"]).exits(1);
    assert!(ran.stdout.starts_with("unsafe  p.c: with 7 threads, "), "{}", ran.stdout);
    scratch.run(&["replay", "run.json"]).exits(0);
    let broken = format!("{HEAD}{}{}", TICKET.replace("DIFFERS", ">"), main_with(&[("work", "THREADS")]));
    let scratch = scratch.file("ticket.c", broken);
    let ran = scratch.run(&["check", "ticket.c", "--threads", "any", "--no-races"]).exits(1);
    assert!(ran.stdout.contains("assertion failed"), "{}", ran.stdout);
}

/// What is not asked about any number of threads is asked about as many as the source starts.
#[test]
fn threads_of_the_source() {
    let check = |name: &str, body: &str, options: &[&str], exit: i32, words: &[&str]| {
        let scratch = Scratch::new(&format!("c_any_source_{name}")).file("p.c", format!("{HEAD}{body}"));
        let mut args = vec!["check", "p.c", "--threads", "any"];
        args.extend(options);
        let ran = scratch.run(&args).exits(exit);
        words.iter().for_each(|words| assert!(ran.stdout.contains(words), "{name}: {}", ran.stdout));
    };
    let counted = format!(
        "static atomic_int done;\nstatic void *work(void *nothing) {{ done = done + 1; return nothing; }}\n{}",
        main_with(&[("work", "THREADS")])
    );
    let after = counted.replace("    return 0;\n}\n", "    assert(done == 2);\n    return 0;\n}\n");
    check("after_join", &after, &[], 1, &["unsafe  p.c: assertion failed in main"]);
    let added = after.replace("done = done + 1", "atomic_fetch_add(&done, 1)");
    let only = [
        "free of deadlocks and `main` can always finish with as many threads as the source starts",
        "after these threads have been joined is checked only with as many as the source starts",
        "whether the program can finish, are checked only with as many threads as the source starts",
    ];
    // The counter grows with the number of threads, but nothing depends on it before they have been joined.
    let limited = added.replace("atomic_fetch_add(&done, 1)", "atomic_store(&done, 2)");
    check("joined", &limited, &[], 0, &only);
    let not = ["deadlocks, and whether the program can finish, are not checked for any number of threads"];
    check("named", &limited, &["--engine", "dual"], 0, &not);
    let stuck = limited.replace("atomic_store(&done, 2)", "done = 2; while (done != 1) ;");
    check("stuck", &stuck, &[], 1, &["unsafe  p.c: "]);
}

/// Fences and robustness for any number of threads.
#[test]
fn fences_and_robustness() {
    let lock = "\
static atomic_int flag, turn, taken;
static int inside;
static void *work(void *nothing)
{
    while (atomic_exchange(&taken, 1))
        ;
    assert(inside == 0);
    inside = 1;
    inside = 0;
    atomic_store_explicit(&taken, 0, memory_order_release);
    return nothing;
}
";
    let text = format!("{HEAD}{lock}{}", main_with(&[("work", "THREADS")]));
    let scratch = Scratch::new("c_any_fences").file("p.c", text);
    let ran = scratch.run(&["robust", "p.c", "--threads", "any"]).exits(0);
    assert!(ran.stdout.starts_with("robust  p.c"), "{}", ran.stdout);
    assert!(ran.stdout.contains("any number of threads run `work`"), "{}", ran.stdout);
    scratch.run(&["fences", "p.c", "--threads", "any"]).exits(0);
    // Two sides, each with any number of threads: at most one side may enter.
    let sides = "\
static atomic_int a, b, in_a, in_b;
static void *left(void *nothing)
{
    atomic_store_explicit(&a, 1, memory_order_release);
    if (!atomic_load_explicit(&b, memory_order_acquire)) {
        atomic_store_explicit(&in_a, 1, memory_order_release);
        assert(!in_b);
    }
    return nothing;
}
static void *right(void *nothing)
{
    atomic_store_explicit(&b, 1, memory_order_release);
    if (!atomic_load_explicit(&a, memory_order_acquire)) {
        atomic_store_explicit(&in_b, 1, memory_order_release);
        assert(!in_a);
    }
    return nothing;
}
";
    let text = format!("{HEAD}{sides}{}", main_with(&[("left", "THREADS"), ("right", "THREADS")]));
    let scratch = scratch.file("q.c", text);
    let ran = scratch.run(&["robust", "q.c", "--threads", "any"]).exits(1);
    assert!(ran.stdout.starts_with("not-robust  q.c"), "{}", ran.stdout);
    for model in ["tso", "pso"] {
        let args = ["fences", "q.c", "--threads", "any", "--no-deadlock", "--model", model, "--write", "w.c"];
        let ran = scratch.run(&args).exits(0);
        assert!(ran.stdout.starts_with("repairable  q.c: safe with "), "{}", ran.stdout);
        let args = ["check", "w.c", "--threads", "any", "--model", model, "--certificate", "w.json"];
        scratch.run(&args).exits(0);
        scratch.run(&["certify", "w.json"]).exits(0);
        scratch.run(&["check", "q.c", "--threads", "any", "--model", model]).exits(1);
    }
}

/// A queue for one producer and one consumer has no threads of which there could be more, and breaks if there are.
#[test]
fn queue_for_one_producer() {
    let queue = "\
static atomic_uint head, tail;
static int slot[2];
static void *producer(void *nothing)
{
    unsigned at = atomic_load_explicit(&tail, memory_order_relaxed);
    while (at - atomic_load_explicit(&head, memory_order_acquire) == 2)
        ;
    slot[at % 2] = 7;
    atomic_store_explicit(&tail, at + 1, memory_order_release);
    return nothing;
}
static void *consumer(void *nothing)
{
    unsigned at = atomic_load_explicit(&head, memory_order_relaxed);
    while (atomic_load_explicit(&tail, memory_order_acquire) == at)
        ;
    assert(slot[at % 2] == 7);
    atomic_store_explicit(&head, at + 1, memory_order_release);
    return nothing;
}
";
    let text = |producers: &str| {
        format!("{HEAD}{queue}{}", main_with(&[("producer", producers), ("consumer", "1")]))
    };
    let scratch = Scratch::new("c_any_queue").file("one.c", text("1")).file("many.c", text("THREADS"));
    scratch.run(&["check", "-q", "one.c"]).exits(0);
    let ran = scratch.run(&["check", "one.c", "--threads", "any"]).exits(2);
    assert!(ran.stderr.contains("does not start several threads"), "{}", ran.stderr);
    let ran = scratch.run(&["check", "-q", "many.c", "--threads", "any"]).exits(1);
    assert!(ran.stdout.starts_with("unsafe  many.c: "), "{}", ran.stdout);
}

/// Whatever distinguishes threads is refused.
#[test]
fn threads_that_differ() {
    let refused = |name: &str, main: &str, words: &str| {
        let scratch = Scratch::new(&format!("c_any_{name}")).file("p.c", format!("{HEAD}{main}"));
        let ran = scratch.run(&["check", "p.c", "--threads", "any"]).exits(2);
        assert!(ran.stderr.contains(words), "{name}: {}", ran.stderr);
    };
    let work =
        "static atomic_int r;\nstatic void *work(void *argument) { r = (int)(long)argument; return 0; }\n";
    let arguments = main_with(&[("work", "THREADS")]).replace("work, 0)", "work, (void *)(long)i)");
    refused("arguments", &format!("{work}{arguments}"), "the threads that run `work` differ");
    // The two threads of the source have small numbers, and the next ones do not.
    let differ = "the threads that run `work` differ";
    for (name, condition) in [
        ("small", "(long)argument < THREADS"),
        ("handle", "(long)pthread_self() < 100"),
        ("null", "argument < (void *)8"),
    ] {
        let work = format!("static void *work(void *argument) {{ assert({condition}); return 0; }}\n");
        refused(name, &format!("{work}{arguments}"), differ);
    }
    let work = "static int cells[2];\nstatic void *work(void *argument)\n{\n    \
                assert(argument == &cells[0] || argument == &cells[1]);\n    return 0;\n}\n";
    let addresses = main_with(&[("work", "THREADS")]).replace("work, 0)", "work, &cells[i])");
    refused("addresses", &format!("{work}{addresses}"), differ);
    // What is not used makes no difference. The argument of another thread is known.
    let work = "static atomic_int x;\nstatic int one = 1;\nstatic void *work(void *argument) { x = 1; return 0; }\n\
                static void *other(void *argument) { assert(*(int *)argument == 1 && x <= 1); return 0; }\n";
    let main = main_with(&[("work", "THREADS"), ("other", "1")]);
    let main = main.replace("work, 0)", "work, (void *)(long)i)").replace("other, 0)", "other, &one)");
    assert!(main.contains("&one") && main.contains("(long)i"), "{main}");
    let scratch = Scratch::new("c_any_unused").file("p.c", format!("{HEAD}{work}{main}"));
    scratch.run(&["check", "-q", "p.c", "--threads", "any"]).exits(0);
    let work =
        "static atomic_int r;\nstatic void *work(void *argument) { r = (int)(long)argument; return 0; }\n";
    let one = main_with(&[("work", "1")]);
    refused("one", &format!("{work}{one}"), "does not start several threads");
    let scratch = Scratch::new("c_any_number").file("p.c", format!("{HEAD}{work}{one}"));
    let ran = scratch.run(&["check", "p.c", "--threads", "3"]).exits(2);
    assert!(ran.stderr.contains("--threads does not apply to C programs"), "{}", ran.stderr);
}
