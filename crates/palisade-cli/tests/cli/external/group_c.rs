//! C programs that several processes check.

use crate::common::Scratch;
use serde_json::Value;

/// A spin lock, and a counter that it protects.
const LOCK: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int locked;
static int count;
static void *work(void *unused)
{
    (void)unused;
    while (atomic_exchange_explicit(&locked, 1, memory_order_acquire)) {}
    count++;
    atomic_store_explicit(&locked, 0, memory_order_release);
    return 0;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(count == EXPECTED);
    return 0;
}
";

fn essence(text: &str) -> Value {
    let mut answer: Value =
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"));
    for key in ["seconds", "peak_memory_bytes", "processes"] {
        answer[key].take();
    }
    answer["stats"]["table_bytes"].take();
    answer
}

#[test]
fn the_same_answer_about_c_from_any_number_of_processes() {
    let scratch = Scratch::new("group_c")
        .file("good.c", LOCK.replace("EXPECTED", "2"))
        .file("bad.c", LOCK.replace("EXPECTED", "3"));
    for (file, code) in [("good.c", 0), ("bad.c", 1)] {
        for model in ["tso", "pso"] {
            let run = |processes: &str| {
                let args =
                    ["check", "-q", file, "--model", model, "--format", "json", "--processes", processes];
                scratch.run(&args).exits(code)
            };
            let one = run("1");
            for processes in ["2", "3"] {
                let several = run(processes);
                assert_eq!(essence(&several.stdout), essence(&one.stdout), "{file}, {model}, {processes}");
                assert_eq!(several.stderr, one.stderr, "{file}, {model}, {processes}");
            }
        }
    }
    // Several models at once, too.
    let all = |processes: &str| {
        let ran = scratch.run(&["check", "bad.c", "--model", "all", "-q", "--processes", processes]).exits(1);
        (ran.stdout, ran.stderr)
    };
    assert_eq!(all("2"), all("1"));
}

/// Dekker's flags in C: a fence is missing in each thread.
const FLAGS: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y;
static int a, b;
static void *first(void *unused)
{
    (void)unused;
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    a = atomic_load_explicit(&y, memory_order_relaxed);
    return 0;
}
static void *second(void *unused)
{
    (void)unused;
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    b = atomic_load_explicit(&x, memory_order_relaxed);
    return 0;
}
int main(void)
{
    pthread_t p, q;
    pthread_create(&p, 0, first, 0);
    pthread_create(&q, 0, second, 0);
    pthread_join(p, 0);
    pthread_join(q, 0);
    assert(a || b);
    return 0;
}
";

#[test]
fn the_same_patch_from_two_processes() {
    let scratch = Scratch::new("group_c_fences").file("flags.c", FLAGS);
    let patch = |more: &[&str]| {
        let args = [&["fences", "flags.c", "--diff", "-q", "--engine", "explicit"], more].concat();
        scratch.run(&args).exits(0).stdout
    };
    assert_eq!(patch(&["--processes", "2"]), patch(&[]));
}
