//! Threads that end, or leave a function by an exception, in the middle of something that others wait for.

use crate::common::{compile, failures, random, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;

/// What a search and random schedules find.
fn check(source: &str, how: Option<&str>, names: &[&str]) {
    let path = compile(source, &[]).display().to_string();
    let command = std::iter::once(path).chain(how.map(str::to_owned)).collect();
    let program = Program { command, scheduling: Scheduling::Best };
    for model in [Model::Sc, Model::Tso] {
        let mut search = start(&program, &Options { model, ..random(0) });
        let searched = search.explore(None, 10_000, |_| true);
        assert!(searched.complete || !names.is_empty(), "{source} {how:?} {model:?} {searched:?}");
        let mut by_chance = start(&program, &Options { model, ..random(50) });
        by_chance.run(|_| true);
        for session in [&search, &by_chance] {
            let findings = &session.findings;
            assert_eq!(failures(findings), names, "{source} {how:?} {model:?} {:?}", findings.failures);
            assert!(
                findings.races.is_empty() && findings.unfollowed.is_empty(),
                "{source} {how:?} {findings:?}"
            );
        }
    }
}

#[test]
fn initialisation() {
    check("abandoned.cpp", None, &[]);
    check("abandoned.c", None, &[]);
    check("abandoned.c", Some("handler"), &[]);
}

#[test]
fn robust_mutexes() {
    check("robust.c", Some("consistent"), &[]);
    check("robust.c", Some("lost"), &[]);
    check("robust.c", Some("waits"), &[]);
    // Otherwise whoever takes it next waits without end.
    check("robust.c", Some("ordinary"), &["deadlock", "unlock-not-held"]);
}

#[test]
fn semaphores_have_a_maximum() {
    check("robust.c", Some("semaphore"), &[]);
}

#[test]
fn quick_exits() {
    check("quick.c", None, &[]);
    check("quick.c", Some("other"), &["early-exit"]);
}
