//! Translations from TSO to SC, exported for other tools: Spin finds an error exactly if explicit search
//! does, and no run of the C program fails if the program is safe.

use crate::common::{Subject, run, scratch, spin};
use palisade_bounded::{translate_age, translate_rounds};
use palisade_export::Target;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A bound on TSO.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Rounds(u32),
    Age(u32),
}

/// A program of the corpus, translated.
fn translated(file: &str, bound: Bound) -> Subject {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let original = Subject::read(file, &text);
    let program = match bound {
        Bound::Rounds(rounds) => translate_rounds(&original.program, rounds),
        Bound::Age(age) => translate_age(&original.program, age),
    };
    let program = program.unwrap_or_else(|problems| panic!("{file}: {problems:?}"));
    Subject { name: format!("{file}, {bound:?}"), program, ..original }
}

/// Checks whether a program is unsafe within a bound, by explicit search and by Spin.
#[track_caller]
fn check(folder: &Path, file: &str, bound: Bound, expected: bool) {
    let subject = translated(file, bound);
    assert_eq!(subject.is_safe(), Some(expected), "{}", subject.name);
    let model = subject.export(Target::Promela);
    let verified = spin(folder, &subject.name, &model);
    eprintln!("{}: {verified:?}", subject.name);
    assert_eq!(verified.safe, expected, "{}:\n{model}", subject.name);
}

#[test]
fn mutual_exclusion_within_rounds() {
    let folder = scratch("translated-rounds");
    for name in ["dekker", "peterson", "lamport_fast", "szymanski"] {
        let (plain, fenced) = (format!("mutex/{name}.pal"), format!("mutex/{name}.fenced.pal"));
        check(&folder, &plain, Bound::Rounds(0), true);
        check(&folder, &plain, Bound::Rounds(1), false);
        check(&folder, &fenced, Bound::Rounds(1), true);
    }
    check(&folder, "mutex/dekker.fenced.pal", Bound::Rounds(2), true);
    check(&folder, "mutex/peterson.fenced.pal", Bound::Rounds(2), true);
}

#[test]
fn mutual_exclusion_within_an_age() {
    let folder = scratch("translated-age");
    for name in ["dekker", "peterson", "burns"] {
        let (plain, fenced) = (format!("mutex/{name}.pal"), format!("mutex/{name}.fenced.pal"));
        check(&folder, &plain, Bound::Age(0), true);
        check(&folder, &plain, Bound::Age(1), false);
        check(&folder, &fenced, Bound::Age(1), true);
    }
}

/// The first seed whose run fails.
fn first_failure(folder: &Path, subject: &Subject, runs: u32) -> Option<u32> {
    std::fs::write(folder.join("program.c"), subject.export(Target::C)).expect("the program can be written");
    let options = ["-Wall", "-Wextra", "-Werror", "-std=c11", "-O1", "-pthread", "-DSTEPS=3000", "program.c"];
    let compiled = run(Command::new("gcc").args(options).args(["-o", "program"]).current_dir(folder), "gcc");
    assert!(compiled.status.success(), "{}: {}", subject.name, String::from_utf8_lossy(&compiled.stderr));
    let program: PathBuf = folder.join("program");
    let fails = |seed: &u32| match run(Command::new(&program).arg(seed.to_string()), "gcc").status.code() {
        Some(0) => false,
        None => true,
        Some(code) => panic!("{}: exit code {code}", subject.name),
    };
    (1..=runs).find(fails)
}

#[test]
fn runs_of_translated_programs() {
    let folder = scratch("translated-c");
    for bound in [Bound::Rounds(1), Bound::Age(1)] {
        for file in ["mutex/dekker.fenced.pal", "mutex/peterson.fenced.pal", "litmus/mp.pal"] {
            let subject = translated(file, bound);
            assert_eq!(first_failure(&folder, &subject, 5), None, "{}", subject.name);
        }
        // Errors that only store buffers cause and that are easily found.
        for file in ["litmus/sb.pal", "figures/lazy_fig1_simplified_dekker.pal"] {
            let subject = translated(file, bound);
            assert!(first_failure(&folder, &subject, 1000).is_some(), "{}", subject.name);
        }
    }
}
