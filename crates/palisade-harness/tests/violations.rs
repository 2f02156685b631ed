//! Violations of sequential consistency in small programs, compiled and run.

mod common;

use common::{compile, failures, program, random, run, violations};
use palisade_memory::Model;

#[test]
fn dekker_is_broken_without_fences_and_right_with_them() {
    let findings = run(&program(&compile("dekker.c", "dekker", &[])), &random(200));
    assert_eq!((findings.executions, findings.lost.as_deref()), (200, None));
    assert!(violations(&findings, Model::Tso) > 0 && violations(&findings, Model::Pso) > 0);
    assert_eq!(failures(&findings), [""; 0], "under sequential consistency it is right");
    let name = |found: &palisade_harness::session::Found<palisade_monitor::Violation>| {
        findings.instructions.name(found.what.store).to_owned()
    };
    assert!(
        findings.violations.iter().any(|found| name(found).starts_with("dekker.c:22:")),
        "a store that can wait is named by its line: {:?}",
        findings.violations.iter().map(name).collect::<Vec<_>>()
    );
    let findings = run(&program(&compile("dekker.c", "dekker_fenced", &["-DFENCED"])), &random(200));
    let found =
        (violations(&findings, Model::Tso), violations(&findings, Model::Pso), failures(&findings).len());
    assert_eq!(found, (0, 0, 0));
}
