//! Rust programs by instrumented builds, as `palisade cargo` makes them.

use crate::common::{program, random, rust_program, start, violations};
use palisade_memory::Model;

#[test]
fn atomics() {
    let path = rust_program("buffering");
    let mut session = start(&program(&path), &random(100));
    session.run(|_| true);
    let findings = &session.findings;
    assert!(findings.failures.is_empty() && findings.races.is_empty(), "{findings:?}");
    assert!(violations(findings, Model::Tso) > 0);
    let first = &findings.violations[0].what;
    for instruction in [first.store, first.previous, first.access] {
        let name = findings.instructions.name(instruction);
        assert!(name.contains("buffering.rs:"), "lines of the program, not of the standard library: {name}");
    }
    let mut strong = program(&path);
    strong.command.push("strong".to_owned());
    let mut session = start(&strong, &random(100));
    session.run(|_| true);
    assert_eq!(session.findings.violations.len(), 0);
}

#[test]
fn locks() {
    let path = rust_program("mutex");
    let mut session = start(&program(&path), &random(300));
    session.run(|_| true);
    let findings = &session.findings;
    assert!(findings.failures.is_empty() && findings.races.is_empty(), "{findings:?}");
    assert_eq!(findings.violations.len(), 0, "{:?}", findings.violations);
}
