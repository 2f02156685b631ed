//! Rust programs by instrumented builds, as `palisade cargo` makes them.

use crate::common::{program, random, run, run_until, rust_program, rust_program_with, start, violations};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::Program;
use palisade_harness::session::{Findings, Options};
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

/// Runs one case of a program without and with fences: a violation is found without, none with them.
fn check_case(path: &Path, case: &str) {
    let command = |argument: String| {
        let mut program: Program = program(path);
        program.command.push(argument);
        program
    };
    let is_seen = |findings: &Findings| violations(findings, Model::Tso) > 0;
    let findings = run_until(&command(case.to_owned()), &random(300), is_seen);
    assert!(is_seen(&findings), "{} {case}: {:?}", path.display(), findings.unfollowed);
    let findings = run(&command(format!("-{case}")), &random(50));
    let found = (violations(&findings, Model::Tso), findings.unfollowed.len(), findings.failures.len());
    assert_eq!(found, (0, 0, 0), "{} {case} with fences: {:?}", path.display(), findings.unfollowed);
}

/// The names in a table of a program, in the order in which they are written.
fn names(source: &str) -> Vec<String> {
    let rows = source.lines().filter_map(|line| line.trim().strip_prefix("(\""));
    rows.filter_map(|row| row.split('"').next().map(str::to_owned)).collect()
}

/// Stores and loads of all kinds, as code of the program and inside the standard library.
#[test]
fn accesses_of_all_kinds() {
    let names = names(include_str!("../../programs/gaps.rs"));
    assert!(names.len() > 50, "{names:?}");
    for options in [&["-Copt-level=0"][..], &["-Copt-level=3"]] {
        let path = rust_program_with("gaps", options);
        names.iter().for_each(|name| check_case(&path, name));
    }
}

/// Memory of all kinds, and operations of the standard library that order accesses or do not.
#[test]
fn threads_and_locks() {
    for options in [&["-Copt-level=1"][..], &["-Copt-level=3"]] {
        let path = rust_program_with("threads", options);
        for name in ["spawned", "scoped", "shared", "local", "lazy"] {
            check_case(&path, name);
        }
        let is_seen = |findings: &Findings| violations(findings, Model::Tso) > 0;
        for name in ["compiler-fence", "acquire", "known", "forced", "once"] {
            let mut program: Program = program(&path);
            program.command.push(name.to_owned());
            let findings = run_until(&program, &random(300), is_seen);
            assert!(is_seen(&findings), "{options:?} {name}");
        }
        // These read before their first locked instruction, which is enough for a violation.
        let may_violate = ["reader", "sends"];
        let ordered = [
            "counts",
            "lock",
            "try-lock",
            "writer",
            "waits",
            "swaps",
            "channel",
            "rendezvous",
            "condition",
            "parked",
            "first",
        ];
        for name in ordered.into_iter().chain(may_violate) {
            let findings = run_with(&path, &[name]);
            let violations = if may_violate.contains(&name) { 0 } else { findings.violations.len() };
            let found = (violations, findings.races.len(), findings.failures.len());
            assert_eq!(found, (0, 0, 0), "{options:?} {name}: {findings:?}");
            assert!(findings.unfollowed.is_empty(), "{options:?} {name}: {:?}", findings.unfollowed);
        }
    }
}

/// What the threads of a scope do is ordered before its end, and nothing else is.
#[test]
fn scopes() {
    let path = rust_program("scopes");
    for (name, races) in
        [("parts", false), ("nested", false), ("panics", false), ("threads", true), ("inside", true)]
    {
        for model in [Model::Sc, Model::Tso] {
            let mut program: Program = program(&path);
            program.command.push(name.to_owned());
            let findings = run(&program, &Options { model, ..random(100) });
            assert_eq!(!findings.races.is_empty(), races, "{name} {model:?}: {:?}", findings.races);
            let rest = (findings.failures.len(), findings.unfollowed.len());
            assert_eq!(rest, (0, 0), "{name} {model:?}: {findings:?}");
        }
    }
}

/// What a search through all executions does not see of the standard library is reported.
#[test]
fn a_search_knows_what_it_does_not_see() {
    let path = rust_program("threads");
    let explore = |name: &str| {
        let mut program: Program = program(&path);
        program.command.push(name.to_owned());
        let mut session = start(&program, &random(0));
        session.explore(None, 200, |_| true);
        session.findings
    };
    for name in ["scoped", "condition", "first", "parked", "waits"] {
        let findings = explore(name);
        let is_reported = findings.unfollowed.keys().any(|(what, _)| matches!(what, Unfollowed::Call(_)));
        assert!(is_reported, "{name}: {findings:?}");
    }
    for name in ["spawned", "-spawned", "swaps", "lock"] {
        let findings = explore(name);
        assert!(findings.unfollowed.is_empty(), "{name}: {:?}", findings.unfollowed);
    }
}
