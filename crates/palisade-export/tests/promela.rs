//! Spin finds an error in an exported program exactly if explicit search finds the program unsafe under SC.

mod common;

use common::{Subject, corpus, scratch, seeds, spin};
use palisade_conformance::{Profile, generate};
use palisade_export::Target;

/// Compares Spin with explicit search.
#[track_caller]
fn check(folder: &std::path::Path, subject: &Subject) {
    let expected = subject.is_safe();
    let start = std::time::Instant::now();
    let model = subject.export(Target::Promela);
    let verified = spin(folder, &subject.name, &model);
    eprintln!("{}: {expected:?} {verified:?} {:?}", subject.name, start.elapsed());
    assert_eq!(Some(verified.safe), expected, "{}:\n{model}", subject.name);
}

#[test]
fn the_corpus() {
    let folder = scratch("promela-corpus");
    for subject in corpus() {
        check(&folder, &subject);
    }
}

fn random(profile: Profile, programs: u64) {
    let folder = scratch(&format!("promela-{profile:?}"));
    for seed in seeds(programs) {
        check(&folder, &Subject::made(&format!("{profile:?} {seed}.pal"), &generate(profile, seed)));
    }
}

#[test]
fn random_acyclic_programs() {
    random(Profile::Acyclic, 25);
}

#[test]
fn random_cyclic_programs() {
    random(Profile::Cyclic, 10);
}

#[test]
fn random_programs_with_everything() {
    random(Profile::Full, 25);
}
