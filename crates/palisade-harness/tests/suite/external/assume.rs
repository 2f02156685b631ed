//! Assumptions, and values that are not determined.

use crate::common::{compile_with, failures, random, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;

fn program(compiler: &str, how: &str) -> Program {
    let path = compile_with(compiler, "assume.c", &format!("assume-{compiler}-{how}"), &[]);
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
    // A search cannot try all values.
    let (findings, complete) = all(&program, Model::Tso);
    assert_eq!(failures(&findings), ["unsupported"]);
    assert!(!complete);
}
