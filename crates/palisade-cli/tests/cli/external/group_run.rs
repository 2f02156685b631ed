//! Several processes that share the executions of a program.

use super::programs::{BUFFERING, RACE, compiled};
use crate::common;

use common::groups::{children, is_alive, runs_threads, send, start_group};
use common::{Ran, Scratch};
use serde_json::Value;

/// What must not depend on the number of processes.
fn essence(ran: &Ran) -> Value {
    let mut answer: Value =
        serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout));
    for key in ["seconds", "peak_memory_bytes"] {
        answer[key].take();
    }
    answer
}

/// The threads take several steps each, so that there are many partial orders.
const ORDERS: &str = "\
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int x, y, seen;
static void *p(void *a) { for (int i = 1; i < 3; i++) { atomic_store_explicit(&x, i, 0); seen += atomic_load_explicit(&y, 0); } return a; }
static void *q(void *a) { for (int i = 1; i < 3; i++) { atomic_store_explicit(&y, i, 0); seen += atomic_load_explicit(&x, 0); } return a; }
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, p, 0);
    pthread_create(&t[1], 0, q, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    printf(\"%d\\n\", seen);
    assert(seen != 4);
    return 0;
}
";

fn check(scratch: &Scratch, args: &[&str], code: i32) {
    let args = [&["run", "-q", "--format", "json", "--no-save"], args].concat();
    let one = scratch.run(&[args.as_slice(), &["--", "./t"]].concat()).exits(code);
    for processes in ["1", "2", "3"] {
        let several = scratch.run(&[args.as_slice(), &["--processes", processes, "--", "./t"]].concat());
        let several = several.exits(code);
        assert_eq!(essence(&several), essence(&one), "{args:?}, {processes} processes");
        assert_eq!(several.stderr, one.stderr, "{args:?}, {processes} processes");
    }
}

#[test]
fn the_same_findings_from_any_number_of_processes() {
    let scratch = compiled("group_run", BUFFERING);
    check(&scratch, &["--robust", "--schedules", "300"], 1);
    check(&scratch, &["--robust", "--strategy", "pct", "--schedules", "200", "--seed", "7"], 1);
    check(&scratch, &["--robust", "--strategy", "exhaustive"], 1);
    check(&compiled("group_run_race", RACE), &["--schedules", "200"], 5);
}

#[test]
fn the_same_search_from_any_number_of_processes() {
    let scratch = compiled("group_run_orders", ORDERS);
    check(&scratch, &["--schedules", "400", "--model", "pso"], 4);
    check(&scratch, &["--strategy", "exhaustive", "--model", "sc"], 4);
    check(&scratch, &["--strategy", "exhaustive", "--schedules", "500"], 4);
    check(&scratch, &["--strategy", "exhaustive", "--preemptions", "1"], 4);
}

/// A loop that never ends, and changes something.
const ENDLESS: &str = "\
#include <pthread.h>
volatile int never, rounds;
static void *run(void *nothing) { while (!never) rounds++; return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    return 0;
}
";

/// Executions that do not end by themselves. All processes are at work on one.
#[cfg(target_os = "linux")]
fn endless(scratch: &Scratch) -> (std::process::Child, Vec<u32>) {
    let args = ["run", "--no-save", "--max-steps", "100000000000", "--patience", "1000"];
    let (child, others) = start_group(scratch, &args, 3, &["--", "./t"]);
    while !others.iter().all(|&other| runs_threads(other)) {
        std::thread::yield_now();
    }
    (child, others)
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_process_ends_the_executions() {
    let scratch = compiled("group_run_killed", ENDLESS);
    let (child, others) = endless(&scratch);
    send(others[1], "-KILL");
    let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
    assert!(ran.stdout.contains(" was lost: it has ended; this report covers "), "{}", ran.stdout);
    assert!(others.iter().all(|&other| !is_alive(other)), "no process is left");
}

#[test]
#[cfg(target_os = "linux")]
fn control_c_in_any_process_stops_the_executions() {
    let scratch = compiled("group_run_interrupted", ENDLESS);
    for first in [true, false] {
        let (child, others) = endless(&scratch);
        let programs: Vec<u32> = others.iter().flat_map(|&other| children(other)).collect();
        send(if first { child.id() } else { others[0] }, "-INT");
        let ran = Ran::new(child.wait_with_output().expect("the group ends")).exits(3);
        assert!(ran.stdout.contains("The run was stopped"), "{}", ran.stdout);
        assert!(others.iter().all(|&other| !is_alive(other)), "no process is left");
        while programs.iter().any(|&program| is_alive(program)) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn programs_that_differ_are_not_run_together() {
    let scratch = compiled("group_run_differs", BUFFERING).file("hosts", common::groups::hosts(2));
    let there = compiled("group_run_differs_there", &BUFFERING.replace("x = 1", "x = 2"));
    std::fs::copy(scratch.path("hosts"), there.path("hosts")).expect("the file can be copied");
    let command = |scratch: &Scratch, index: &str| {
        let args = ["run", "--no-save", "--hosts", "hosts", "--process", index, "--", "./t"];
        let mut command = scratch.command(&args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    };
    let other = command(&there, "1").spawn().expect("the command can be started");
    let first = Ran::new(command(&scratch, "0").output().expect("the command can be started")).exits(3);
    assert!(first.stdout.contains("process 1 was lost: it was asked something else"), "{}", first.stdout);
    other.wait_with_output().expect("it ends, too");
}
