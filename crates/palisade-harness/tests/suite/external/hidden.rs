//! Memory that changes without an access of the program, and code that was not compiled: reported where it
//! begins. What ordinary programs do is not reported.

use crate::common::{compile, failures, random, run};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Findings;
use std::sync::OnceLock;

fn findings(how: &str, scheduling: Scheduling) -> Findings {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let path = PROGRAM.get_or_init(|| compile("hidden.c", &[]).display().to_string());
    let findings = run(&Program { command: vec![path.clone(), how.to_owned()], scheduling }, &random(20));
    assert_eq!(failures(&findings), [""; 0], "{how} {scheduling:?}: {:#?}", findings.failures);
    findings
}

/// Checks what is reported about a program: its kinds, in the order of their definition.
fn check(how: &str, expected: &[Unfollowed]) {
    for scheduling in [Scheduling::Best, Scheduling::Token] {
        let findings = findings(how, scheduling);
        // The numbers of functions depend on the program.
        let kind = |what: &Unfollowed| match what {
            Unfollowed::Call(_) => Unfollowed::Call(0),
            other => *other,
        };
        let mut noted: Vec<Unfollowed> = findings.unfollowed.keys().map(|(what, _)| kind(what)).collect();
        noted.dedup();
        assert_eq!(noted, expected, "{how} {scheduling:?}: {:?}", findings.unfollowed);
        for (_, place) in findings.unfollowed.keys() {
            assert!(place.contains("hidden.c:"), "{how} {scheduling:?}: {place}");
        }
    }
}

#[test]
fn code_that_is_made_at_run_time() {
    check("code", &[Unfollowed::Code]);
    check("protect", &[Unfollowed::Code]);
    check("raw-protect", &[Unfollowed::Call(0), Unfollowed::Code]);
    check("persona", &[Unfollowed::Code]);
}

#[test]
fn memory_that_is_mapped_twice_or_replaced() {
    check("twice", &[Unfollowed::Mapping]);
    check("raw-map", &[Unfollowed::Call(0), Unfollowed::Mapping]);
    check("again", &[Unfollowed::Mapping]);
    check("shm", &[Unfollowed::Mapping]);
    check("replace", &[Unfollowed::Mapping]);
    check("discard", &[Unfollowed::Mapping]);
    check("constructor", &[Unfollowed::Mapping]);
}

#[test]
fn memory_as_a_file() {
    check("process", &[Unfollowed::MemoryFile]);
    check("thread", &[Unfollowed::MemoryFile]);
    check("folder", &[Unfollowed::MemoryFile]);
    check("stream", &[Unfollowed::MemoryFile]);
    check("raw-open", &[Unfollowed::Call(0), Unfollowed::MemoryFile]);
}

#[test]
fn threads_of_the_library() {
    check("asynchronous", &[Unfollowed::Call(0)]);
}

#[test]
fn ordinary_files_and_mappings() {
    for how in ["", "reads-itself", "reads-file", "anonymous", "writes-file"] {
        check(how, &[]);
    }
}

/// Destructors of the program are followed like handlers of `atexit`.
#[test]
fn destructors_are_followed() {
    for scheduling in [Scheduling::Best, Scheduling::Token] {
        let findings = findings("destructor", scheduling);
        assert!(!findings.races.is_empty(), "{scheduling:?}: {findings:?}");
        assert!(findings.unfollowed.is_empty(), "{scheduling:?}: {:?}", findings.unfollowed);
    }
}
