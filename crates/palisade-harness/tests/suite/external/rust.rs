//! Rust programs by instrumented builds, as `palisade cargo` makes them.

use crate::common::{program, random, run, rust_program, rust_program_with, start, violations};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::Program;
use palisade_harness::session::Findings;
use palisade_memory::Model;
use std::path::Path;

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

fn run_with(path: &Path, arguments: &[&str]) -> Findings {
    let mut program: Program = program(path);
    program.command.extend(arguments.iter().map(|&argument| argument.to_owned()));
    run(&program, &random(20))
}

#[test]
fn inline_assembly() {
    let path = rust_program("assembly");
    let findings = run_with(&path, &[]);
    assert!(findings.unfollowed.is_empty(), "{:?}", findings.unfollowed);
    let findings = run_with(&path, &["writes"]);
    let mut reported = findings.unfollowed.keys();
    let (what, place) = reported.next().expect("it is reported");
    assert_eq!(*what, Unfollowed::Assembly);
    assert!(place.contains("assembly.rs:11"), "{place}");
    assert!(reported.next().is_none(), "{:?}", findings.unfollowed);
}

/// Vectors of 32 bytes and large structs: LLVM's pass makes no call for them.
#[test]
fn large_accesses() {
    for options in [&["-Copt-level=0"][..], &["-Copt-level=3"]] {
        let path = rust_program_with("large", options);
        for what in ["vector", "struct"] {
            let findings = run_with(&path, &[what]);
            assert!(!findings.races.is_empty(), "{options:?} {what}");
            assert!(findings.unfollowed.is_empty(), "{options:?} {what}: {:?}", findings.unfollowed);
        }
    }
}
