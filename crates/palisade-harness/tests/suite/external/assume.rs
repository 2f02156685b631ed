//! Assumptions, and values that are not determined.

use crate::common::{compile_with, failures, random, start};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::schedule::Strategy;
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;
use std::collections::BTreeSet;

fn program(compiler: &str, how: &str) -> Program {
    let path = compile_with(compiler, "assume.c", &[]);
    Program { command: vec![path.display().to_string(), how.to_owned()], scheduling: Scheduling::Best }
}

fn sampled(program: &Program, model: Model) -> Findings {
    let mut session = start(program, &Options { model, ..random(200) });
    session.run(|_| true);
    session.findings
}

fn all(program: &Program, model: Model) -> (Findings, bool) {
    let mut session = start(program, &Options { model, ..random(1) });
    let searched = session.explore(None, 1_000, |_| true);
    (session.findings, searched.complete)
}

#[test]
fn executions_with_false_assumptions_do_not_count() {
    for compiler in ["gcc", "clang"] {
        let check = |how: &str, expected: &[&str]| {
            let program = program(compiler, how);
            for model in [Model::Sc, Model::Tso, Model::Pso] {
                let findings = sampled(&program, model);
                assert_eq!(failures(&findings), expected, "{compiler} {how} {model:?}");
                assert!(findings.assumed > 0, "{compiler} {how} {model:?}");
                let (findings, complete) = all(&program, model);
                assert!(complete, "{compiler} {how} {model:?}");
                assert_eq!(failures(&findings), expected, "{compiler} {how} {model:?}");
                assert!(findings.assumed > 0, "{compiler} {how} {model:?}");
            }
        };
        check("", &[]);
        check("wrong", &["assertion"]);
        // No execution meets the assumption, so nothing is known.
        check("never", &["no-execution"]);
    }
}

#[test]
fn values_depend_on_the_seed() {
    let program = program("gcc", "value");
    let findings = sampled(&program, Model::Tso);
    assert_eq!(failures(&findings), ["assertion"]);
    assert!(findings.assumed > 0 && findings.assumed < findings.executions);
    // A search tries some of them, and says so.
    let (findings, _) = all(&program, Model::Tso);
    assert_eq!(failures(&findings), ["assertion"]);
    let unfollowed: Vec<Unfollowed> = findings.unfollowed.keys().map(|(what, _)| *what).collect();
    assert_eq!(unfollowed, [Unfollowed::Value]);
}

fn exit_codes(findings: &Findings) -> BTreeSet<u32> {
    let prefix = "the program ended with exit code ";
    let codes = findings.failures.iter().filter_map(|found| found.what.message.strip_prefix(prefix));
    codes.map(|code| code.parse().expect("a number")).collect()
}

/// Values at which the program changes what it does: the ends of the type, and constants of the program.
#[test]
fn values_of_wide_types() {
    for compiler in ["gcc", "clang"] {
        let program = program(compiler, "wide");
        let mut session = start(&program, &Options { model: Model::Tso, ..random(300) });
        session.run(|_| true);
        assert_eq!(exit_codes(&session.findings), (1..=4).collect(), "{compiler}");
        let (findings, _) = all(&program, Model::Tso);
        assert_eq!(exit_codes(&findings), (1..=4).collect(), "{compiler}");
    }
}

/// All values of `_Bool`, of a byte and of a range.
#[test]
fn a_search_tries_all_values() {
    for compiler in ["gcc", "clang"] {
        let check = |how: &str, expected: BTreeSet<u32>, executions: u64| {
            for model in [Model::Sc, Model::Tso, Model::Pso] {
                let (findings, complete) = all(&program(compiler, how), model);
                assert!(complete && findings.unfollowed.is_empty(), "{compiler} {how} {model:?}");
                assert_eq!(exit_codes(&findings), expected, "{compiler} {how} {model:?}");
                assert_eq!(findings.executions, executions, "{compiler} {how} {model:?}");
            }
        };
        check("range", (1..=10).collect(), 10);
        check("byte", BTreeSet::from([1, 2]), 256);
        // Each thread stores a value to the same cell: two orders of the stores for each of six pairs of values.
        check("threads", BTreeSet::from([1, 2, 3]), 12);
    }
}

/// Brute force over both threads' values and all interleavings.
#[test]
fn values_and_interleavings_together() {
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        let (findings, complete) = all(&program("gcc", "branches"), model);
        assert!(complete, "{model:?}");
        let mut expected = BTreeSet::new();
        for (stores, value) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            // The first thread stores 1 to x, or not; the second one stores its value to y and reads x.
            expected.insert(1 + 4 * value);
            if stores {
                expected.insert(1 + 4 * value + 1);
            }
        }
        assert_eq!(exit_codes(&findings), expected, "{model:?}");
    }
}

/// The schedule of a failure contains the values that lead to it.
#[test]
fn schedules_contain_values() {
    let program = program("gcc", "value");
    let mut search = start(&program, &Options { model: Model::Tso, ..random(1) });
    search.explore(None, 1_000, |_| true);
    let found = &search.findings.failures[0];
    let turns = found.first.turns.clone().expect("the turns were kept");
    assert!(turns.turns.iter().any(|turn| turn.actor.value == Some(3)), "{turns:?}");
    let mut again = start(&program, &Options { model: Model::Tso, ..random(1) });
    let command = again.command(Strategy::Stay, 0, 0, turns);
    again.execute(&command).expect("it can be repeated");
    assert!(again.findings.failures[0].what.is_same(&found.what), "{:?}", again.findings.failures);
}
