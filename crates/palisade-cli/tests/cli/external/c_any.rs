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

/// The verdict with any number, which agrees with that for a few.
#[track_caller]
fn check(name: &str, body: &str, functions: &[(&str, &str)], flags: &[&str], expected: &str) {
    let text = format!("{HEAD}{body}{}", main_with(functions));
    let scratch = Scratch::new(&format!("c_any_{name}")).file("p.c", text);
    for model in ["tso", "pso"] {
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
    let one = main_with(&[("work", "1")]);
    refused("one", &format!("{work}{one}"), "does not start several threads");
    let scratch = Scratch::new("c_any_number").file("p.c", format!("{HEAD}{work}{one}"));
    let ran = scratch.run(&["check", "p.c", "--threads", "3"]).exits(2);
    assert!(ran.stderr.contains("--threads does not apply to C programs"), "{}", ran.stderr);
}
