//! Programs that fail: each failure is detected and named, each program ends, and nothing hangs.

use crate::common::{compile, compile_with, failures, program, random, run, start};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options};
use std::sync::OnceLock;
use std::time::Duration;

fn run_as(how: &str, schedules: u64, scheduling: Scheduling) -> Findings {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let path = PROGRAM.get_or_init(|| compile("fails.c", &[]).display().to_string());
    let program = Program { command: vec![path.clone(), how.to_owned()], scheduling };
    // On a busy machine only those that are to stall are given up.
    let patience = match how {
        "stalled" | "blocked" => Duration::from_millis(300),
        _ => Duration::from_secs(60),
    };
    let options = Options { schedules, steps: 20_000, patience, ..Options::default() };
    run(&program, &options)
}

#[test]
fn each_in_its_own_way() {
    let check = |how: &str, schedules: u64, expected: &[&str]| {
        for scheduling in [Scheduling::Best, Scheduling::Token] {
            let findings = run_as(how, schedules, scheduling);
            assert_eq!(failures(&findings), expected, "{how} {scheduling:?}: {:#?}", findings.failures);
            assert_eq!(
                findings.executions, schedules,
                "{how}: a program that fails does not end the session"
            );
        }
    };
    check("", 2, &[]);
    check("deadlock", 30, &["deadlock"]);
    check("crash", 2, &["crash"]);
    check("assertion", 30, &["assertion"]);
    check("exit-code", 2, &["exit-code"]);
    check("leaked-threads", 5, &["leaked-threads"]);
    check("never-joined", 2, &["leaked-threads"]);
    check("never-ends", 2, &["deadlock"]);
    check("livelock", 2, &["livelock"]);
    check("step-limit", 2, &["step-limit"]);
    check("stalled", 1, &["stalled"]);
    check("blocked", 1, &["blocked"]);
    check("unsupported", 2, &["unsupported"]);
    check("output", 2, &[]);
    check("main-leaves", 5, &[]);
    check("fork", 2, &[]);
    check("signal", 2, &[]);
}

/// Reported for C programs with gcc: the value that a failed attempt stores is a change.
#[test]
fn compare_and_swap_loops_with_the_expected_value_in_memory_end() {
    for compiler in ["gcc", "clang"] {
        let path = compile_with(compiler, "expected.c", &[]);
        let mut search = start(&program(&path), &random(1));
        let searched = search.explore(None, 1_000, |_| true);
        assert!(searched.complete, "{compiler}: {searched:?}");
        assert_eq!(failures(&search.findings), [""; 0], "{compiler}");
        assert_eq!(search.findings.races.len(), 0, "{compiler}");
    }
}

#[test]
fn exits_from_other_threads() {
    let findings = run_as("early-exit", 10, Scheduling::Best);
    assert_eq!(failures(&findings), ["early-exit"]);
}

#[test]
fn what_cannot_be_followed_is_reported() {
    let unfollowed = |how: &str| {
        let findings = run_as(how, 2, Scheduling::Best);
        findings.unfollowed.keys().cloned().collect::<Vec<_>>()
    };
    let forked = unfollowed("fork");
    assert!(
        matches!(forked.as_slice(), [(Unfollowed::Fork, place)] if place.starts_with("fails.c:")),
        "{forked:?}"
    );
    let handled = unfollowed("signal");
    assert!(
        matches!(handled.as_slice(), [(Unfollowed::Handler, place)] if place.starts_with("fails.c:")),
        "{handled:?}"
    );
}

#[test]
fn failures_are_reported_with_their_places() {
    let findings = run_as("deadlock", 30, Scheduling::Best);
    let deadlock = &findings.failures[0].what;
    let places: Vec<&str> = deadlock.places.iter().map(|(place, _)| place.as_str()).collect();
    for function in ["in a_then_b", "in b_then_a", "in two"] {
        assert!(places.iter().any(|place| place.ends_with(function)), "{function}: {places:?}");
    }
    let findings = run_as("crash", 2, Scheduling::Best);
    let crash = &findings.failures[0].what;
    assert!(crash.message.contains("SIGSEGV"), "{crash:?}");
    assert!(crash.places[0].0.ends_with("in crashes"), "{crash:?}");
    let findings = run_as("assertion", 30, Scheduling::Best);
    assert!(findings.failures[0].what.message.contains("atomic_load(&sometimes) == 1"));
    let findings = run_as("output", 1, Scheduling::Best);
    assert_eq!(failures(&findings), [""; 0]);
}
