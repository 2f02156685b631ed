//! Steps that write only under a condition: those that fail only read, and the search needs no run to find out.

use crate::common::{compile_with, failures, program, random, start};
use palisade_harness::session::Options;
use palisade_memory::Model;

fn check(test: &str, expected: [u64; 3]) {
    let path = compile_with("gcc", "conditional.c", &[&format!("-D{test}"), "-O1"]);
    for (model, expected) in Model::ALL.into_iter().zip(expected) {
        let mut session = start(&program(&path), &Options { model, ..random(1) });
        let searched = session.explore(None, 10_000, |_| true);
        let shown = (searched.complete, searched.executions, searched.runs);
        assert_eq!(shown, (true, expected, expected), "{test} {model:?}: {:?}", session.findings.divergence);
        assert_eq!(failures(&session.findings), [""; 0], "{test} {model:?}");
    }
}

/// MPU2+rels+acqf, as GenMC and Nidhugg count it under SC and TSO.
#[test]
fn attempts_that_may_succeed() {
    // Under PSO, the first store may reach memory after the last one.
    check("ATTEMPTS", [35, 35, 36]);
}

#[test]
fn attempts_that_fail() {
    for test in ["STRONG", "WEAK", "MUTEX", "SPINLOCK", "READ", "WRITE", "SEMAPHORE"] {
        check(test, [1; 3]);
    }
}
