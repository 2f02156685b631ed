//! Programs that use threads correctly, in all ways that the C and C++ libraries offer. Nothing must be
//! reported, whatever the schedule, the strategy, the compiler and the way in which threads are switched.

use crate::common::{compile, compile_with, failures, program, random, run};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::Strategy;
use palisade_harness::session::{Findings, Options};
use std::path::Path;

fn is_clean(findings: &Findings, what: &str) {
    let names = |violation: &palisade_monitor::Violation| {
        [violation.store, violation.previous, violation.access]
            .map(|instruction| findings.instructions.name(instruction).to_owned())
    };
    let violations: Vec<_> =
        findings.violations.iter().map(|found| (found.what.model, names(&found.what))).collect();
    let races: Vec<_> = findings.races.iter().map(|found| &found.what).collect();
    let failed: Vec<_> = findings.failures.iter().map(|found| (&found.what, found.first.seed)).collect();
    assert!(failures(findings).is_empty(), "{what}: {failed:#?}");
    assert!(violations.is_empty() && races.is_empty(), "{what}: {violations:#?} {races:#?}");
}

fn check(path: &Path, schedules: u64) {
    let program = program(path);
    let name = path.display();
    is_clean(&run(&program, &random(schedules)), &format!("{name}, random"));
    let pct = Options { strategy: Strategy::Pct { depth: 3 }, ..random(schedules / 2) };
    is_clean(&run(&program, &pct), &format!("{name}, pct"));
    let token = Program { scheduling: Scheduling::Token, ..program };
    is_clean(&run(&token, &random(3)), &format!("{name}, token"));
}

#[test]
fn posix_threads() {
    check(&compile("sync.c", &[]), 60);
    check(&compile("sync.c", &["-O2"]), 20);
}

#[test]
fn floating_point() {
    check(&compile("floats.c", &["-Wl,--no-as-needed", "-lm"]), 60);
}

#[test]
fn c11_threads() {
    check(&compile("c11.c", &[]), 60);
}

#[test]
fn cxx_threads() {
    check(&compile("cxx.cpp", &["-std=c++17"]), 60);
    check(&compile("cxx.cpp", &["-std=c++20", "-O1"]), 20);
}

#[test]
fn with_clang() {
    check(&compile_with("clang", "sync.c", &[]), 20);
    check(&compile_with("clang", "c11.c", &["-O2"]), 20);
    check(&compile_with("clang++", "cxx.cpp", &["-std=c++17"]), 20);
}
