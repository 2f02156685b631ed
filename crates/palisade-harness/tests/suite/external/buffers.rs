//! Execution with store buffers: numbers of partial orders, what threads see, and which machine a failure needs.

use crate::common::{compile_with, failures, program, random, run, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::Strategy;
use palisade_harness::session::{Findings, Options, Session};
use palisade_memory::Model;
use std::path::{Path, PathBuf};

fn compile(compiler: &str, test: &str) -> PathBuf {
    compile_with(compiler, "buffers.c", &[&format!("-D{test}")])
}

fn with(model: Model, schedules: u64) -> Options {
    Options { model, ..random(schedules) }
}

/// All partial orders. An assertion that fails while threads still run leaves open what these would have done.
fn explore(path: &Path, model: Model) -> (u64, Session) {
    let mut session = start(&program(path), &with(model, 1));
    let searched = session.explore(None, 10_000, |_| true);
    let fails = session.findings.failures.iter().any(|found| found.what.name == "assertion");
    assert_eq!(searched.complete, !fails, "{path:?} {model:?}: {searched:?} {:?}", session.findings);
    (searched.executions, session)
}

#[test]
fn partial_orders() {
    let check = |test: &str, expected: [u64; 3]| {
        for compiler in ["gcc", "clang"] {
            let path = compile(compiler, test);
            let found = Model::ALL.map(|model| explore(&path, model).0);
            assert_eq!(found, expected, "{test} {compiler}");
        }
    };
    // SB, SB+rfis and 2+2W, as GenMC and Nidhugg count them under SC and TSO.
    check("PLAIN", [3, 4, 4]);
    check("RFI", [3, 4, 4]);
    check("WRITES", [3, 3, 4]);
    // The other store comes first, between the two loads, after them, or before the first load.
    check("COHERENCE", [4, 4, 4]);
}

#[test]
fn what_threads_see() {
    for test in ["COHERENCE", "MIXED", "STACK", "SPIN"] {
        for model in Model::ALL {
            let path = compile("gcc", test);
            for scheduling in [Scheduling::Best, Scheduling::Token] {
                for strategy in [Strategy::Random, Strategy::Pct { depth: 3 }] {
                    let program = Program { scheduling, ..program(&path) };
                    let findings = run(&program, &Options { strategy, ..with(model, 60) });
                    assert_eq!(failures(&findings), [""; 0], "{test} {model:?} {scheduling:?} {strategy}");
                }
            }
            if test != "STACK" {
                let (_, session) = explore(&path, model);
                assert_eq!(failures(&session.findings), [""; 0], "{test} {model:?}");
            }
        }
    }
}

/// A step that accesses more than one word conflicts with accesses to each of them.
#[test]
fn steps_that_access_ranges() {
    for compiler in ["gcc", "clang"] {
        for model in Model::ALL {
            let (_, session) = explore(&compile(compiler, "RANGE"), model);
            assert_eq!(failures(&session.findings), ["assertion"], "{compiler} {model:?}");
        }
    }
}

fn possible(findings: &Findings) -> Vec<(&'static str, Option<Model>)> {
    findings.failures.iter().map(|found| (found.what.name, found.possible)).collect()
}

#[test]
fn which_machine_a_failure_needs() {
    let sb = compile("gcc", "SB");
    let found = |model: Model| possible(&run(&program(&sb), &with(model, 400)));
    assert_eq!(found(Model::Sc), []);
    assert_eq!(found(Model::Tso), [("assertion", Some(Model::Tso))]);
    assert_eq!(found(Model::Pso), [("assertion", Some(Model::Tso))]);
    // A failure that needs no buffers is recognised as such, although they are there.
    let range = compile("gcc", "RANGE");
    for model in Model::ALL {
        assert_eq!(
            possible(&run(&program(&range), &with(model, 200))),
            [("assertion", Some(Model::Sc))],
            "{model:?}"
        );
    }
}

#[test]
fn findings_are_repeated_by_their_schedules() {
    let sb = compile("gcc", "SB");
    for model in [Model::Tso, Model::Pso] {
        let mut session = start(&program(&sb), &with(model, 200));
        session.run(|findings| findings.failures.is_empty());
        let found = session.findings.failures.first().expect("it fails").clone();
        let turns = found.first.turns.expect("a short execution");
        let mut session = start(&program(&sb), &with(model, 1));
        let command = session.command(Strategy::Stay, 0, 0, turns.clone());
        let again = session.execute(&command).expect("an execution");
        assert!(session.fails(&again, &found.what), "{model:?}");
        assert_eq!(again.portable_turns(), Some(turns), "{model:?}");
        assert!(again.judgement.is_some_and(|judgement| judgement.possible == Model::Tso));
    }
}
