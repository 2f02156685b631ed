//! Exported C programs compile without warnings and run; where explicit search says safe, no run fails, and easy errors are found.

mod common;

use common::{Subject, corpus, run, scratch, seeds};
use palisade_conformance::{Profile, generate};
use palisade_export::Target;
use std::path::Path;
use std::process::Command;

/// Runs of each program.
const RUNS: u64 = 4;

/// Steps of each run.
const STEPS: &str = "-DSTEPS=1500";

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-std=c11"];

/// Compiles a program; the compiler must not complain.
fn compile(folder: &Path, subject: &Subject, options: &[&str]) {
    let text = subject.export(Target::C);
    std::fs::write(folder.join("program.c"), &text).expect("the program can be written");
    let mut gcc = Command::new("gcc");
    gcc.args(WARNINGS).args(options).arg("program.c").current_dir(folder);
    let compiled = run(&mut gcc, "gcc");
    let complaints = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{}:\\n{complaints}\\n{text}", subject.name);
}

/// How many of the runs with the first seeds fail an assertion.
fn failures(folder: &Path, subject: &Subject, runs: u64) -> u64 {
    compile(folder, subject, &["-O0", "-pthread", STEPS, "-o", "program"]);
    let fails = |seed: &u64| {
        let mut program = Command::new(folder.join("program"));
        let output = run(program.arg(seed.to_string()), "gcc");
        let complaints = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => false,
            None if complaints.contains("Assertion") => true,
            _ => panic!("{} {seed}: {:?} {complaints}", subject.name, output.status),
        }
    };
    (1..=runs).filter(fails).count() as u64
}

#[track_caller]
fn check(folder: &Path, subject: &Subject) -> bool {
    let safe = subject.is_safe();
    let failed = failures(folder, subject, RUNS);
    if safe == Some(true) {
        assert_eq!(failed, 0, "{}:\\n{}", subject.name, subject.export(Target::C));
    }
    failed > 0
}

#[test]
fn the_corpus() {
    let folder = scratch("c-corpus");
    for subject in corpus() {
        check(&folder, &subject);
    }
}

fn random(profile: Profile, programs: u64) {
    let folder = scratch(&format!("c-{profile:?}"));
    let mut found = 0;
    for seed in seeds(programs) {
        let subject = Subject::made(&format!("{profile:?} {seed}.pal"), &generate(profile, seed));
        found += u64::from(check(&folder, &subject));
    }
    eprintln!("{profile:?}: errors found by running in {found} programs");
}

#[test]
fn random_acyclic_programs() {
    random(Profile::Acyclic, 15);
}

#[test]
fn random_programs_with_everything() {
    random(Profile::Full, 15);
}
