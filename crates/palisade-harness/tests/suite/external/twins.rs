//! Known bugs of the C corpus are found in 1,000 random schedules with the store buffers of TSO, and nothing is reported
//! about programs without bugs.

use crate::common::{compile_with, failures, program, random, run_until};
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;
use std::path::Path;

/// Runs random schedules until something is found.
fn run(name: &str, flags: &[&str], schedules: u64) -> Findings {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/c").join(name);
    let path = compile_with("gcc", &source.display().to_string(), flags);
    let options = Options { model: Model::Tso, first_only: true, ..random(schedules) };
    run_until(&program(&path), &options, |_| false)
}

/// A program, and the flags with which it has a bug.
type Twin = (&'static str, &'static [&'static [&'static str]]);

fn all_are_found(twins: &[Twin]) {
    let mut missed = Vec::new();
    for &(name, variants) in twins {
        for &flags in variants {
            let findings = run(name, flags, 1000);
            if findings.failures.is_empty() && findings.races.is_empty() {
                missed.push((name, flags));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

const ONE: &[&str] = &["-DBROKEN_1"];
const TWO: &[&str] = &["-DBROKEN_2"];
const THREE: &[&str] = &["-DBROKEN_3"];
const BOUNDED_ONE: &[&str] = &["-DBROKEN_1", "-DBOUNDED"];
const BOUNDED_TWO: &[&str] = &["-DBROKEN_2", "-DBOUNDED"];

#[test]
fn broken_locks() {
    all_are_found(&[
        ("dekker.c", &[ONE, TWO]),
        ("peterson.c", &[ONE, THREE]),
        ("bakery.c", &[ONE, TWO, THREE]),
        ("szymanski.c", &[ONE, TWO, THREE]),
        ("burns.c", &[ONE, TWO]),
        ("lamport_fast.c", &[ONE, TWO, THREE]),
        ("biased_lock.c", &[ONE, TWO]),
    ]);
}

#[test]
fn lost_wake_ups_and_queues() {
    all_are_found(&[
        ("chase_lev.c", &[ONE, THREE]),
        ("jdk_parker.c", &[ONE, BOUNDED_ONE, TWO]),
        ("kthread_sleep.c", &[ONE, BOUNDED_ONE]),
        ("postgres_latch.c", &[ONE, BOUNDED_ONE]),
        ("musl_unlock.c", &[ONE, BOUNDED_ONE]),
        ("edk2_ring.c", &[ONE, BOUNDED_ONE, TWO, BOUNDED_TWO]),
    ]);
}

#[test]
fn programs_without_bugs() {
    for name in
        ["dekker.c", "peterson.c", "bakery.c", "szymanski.c", "chase_lev.c", "jdk_parker.c", "spsc_ring.c"]
            .into_iter()
            .chain(["seqlock.c", "treiber.c", "mcs.c", "rcu_publish.c", "burns.c", "lamport_fast.c"])
            .chain(["biased_lock.c", "kthread_sleep.c", "postgres_latch.c", "musl_unlock.c"])
    {
        let findings = run(name, &[], 300);
        assert_eq!((failures(&findings), findings.races.len()), (vec![], 0), "{name}");
    }
}
