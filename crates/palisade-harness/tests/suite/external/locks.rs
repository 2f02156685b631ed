//! Locks that are unlocked by the wrong thread, used after they were destroyed, or destroyed while they are held.

use crate::common::{compile, random, start};
use palisade_harness::findings::{NamedFailure, Occurrences};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;
use std::collections::BTreeSet;

/// What the search and random schedules find, by name, and in which words the search describes it.
fn check(how: &str, names: &[&str], message: &str) {
    let path = compile("locks.c", &[]).display().to_string();
    let program = Program { command: vec![path, how.to_owned()], scheduling: Scheduling::Best };
    for model in [Model::Sc, Model::Tso] {
        let mut search = start(&program, &Options { model, ..random(0) });
        let searched = search.explore(None, 10_000, |_| true);
        let mut by_chance = start(&program, &Options { model, ..random(50) });
        by_chance.run(|_| true);
        for session in [&search, &by_chance] {
            let found: BTreeSet<&str> =
                session.findings.failures.iter().map(|failure| failure.what.name).collect();
            assert_eq!(found, names.iter().copied().collect(), "{how} {model:?} {searched:?}");
        }
        let is_said = |failure: &Occurrences<NamedFailure>| failure.what.message.contains(message);
        let failures = &search.findings.failures;
        assert!(names.is_empty() || failures.iter().any(is_said), "{how} {model:?} {failures:?}");
        assert!(!names.is_empty() || searched.complete, "{how} {model:?} {searched:?}");
    }
}

#[test]
fn locks_are_used_in_the_wrong_way() {
    let unlocks = &["unlock-not-held"];
    check("other-thread", unlocks, "thread 2 unlocks a lock that ");
    check("twice", unlocks, "thread 1 unlocks a lock that no thread holds");
    check("other-not-held", unlocks, "thread 1 unlocks a lock that no thread holds");
    let destroys = &["destroy-in-use", "use-after-destroy"];
    check("destroyed", destroys, "thread 2 destroys a lock that thread 1 holds");
    check("destroyed-other", destroys, "thread 1 uses a lock that was destroyed");
}

#[test]
fn locks_are_used_in_the_right_way() {
    check("right", &[], "");
    check("before-main", &[], "");
}
