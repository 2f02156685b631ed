//! Exported C programs compile without warnings and run. If explicit search finds a program safe, no run
//! fails; easy errors are found.

use crate::common::{Subject, WRAPPING, corpus, run, scratch};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform, with_and_without_constructs};
use palisade_export::Target;
use std::path::Path;
use std::process::Command;

/// The number of runs of each program.
const RUNS: u64 = 4;

/// The number of steps of each run.
const STEPS: &str = "-DSTEPS=1500";

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-std=c11"];

/// Compiles a program without warnings.
fn compile(folder: &Path, subject: &Subject, options: &[&str]) {
    let text = subject.export(Target::C);
    std::fs::write(folder.join("program.c"), &text).expect("the program can be written");
    let mut gcc = Command::new("gcc");
    gcc.args(WARNINGS).args(options).arg("program.c").current_dir(folder);
    let compiled = run(&mut gcc, "gcc");
    let complaints = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{}:\\n{complaints}\\n{text}", subject.name);
}

/// The number of runs, with the first seeds, that fail an assertion.
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

/// Clang also warns about functions that are not used.
#[test]
fn clang_does_not_warn() {
    let folder = scratch("c-clang");
    let mut clang = Command::new("clang");
    clang.args(WARNINGS).arg("-fsyntax-only").current_dir(&folder);
    for (index, subject) in corpus().iter().enumerate() {
        let name = format!("{index}.c");
        std::fs::write(folder.join(&name), subject.export(Target::C)).expect("the program can be written");
        clang.arg(name);
    }
    let compiled = run(&mut clang, "clang");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

#[test]
fn the_corpus() {
    let folder = scratch("c-corpus");
    for subject in corpus() {
        check(&folder, &subject);
    }
}

/// Errors that occur under most schedules are found.
#[test]
fn easy_errors() {
    let folder = scratch("c-errors");
    let check = |text: &str| {
        let subject = Subject::read("wrong.pal", text);
        assert_eq!(subject.is_safe(), Some(false), "{text}");
        assert!(failures(&folder, &subject, 20) > 0, "{text}");
    };
    check("shared x: 0..2; process P[2] { x = x + 1; } final x == 2;");
    check("shared x: 0..3; process P[2] { x = x + 2; }");
    check("shared x, y: 0..1; process P { x = 1; y = 1; } forbid x == 1 && y == 0;");
    check(
        "shared f[2]: bool; process P(i: 0..1) { await !f[1 - i]; f[i] = true; cs: skip; f[i] = false; } forbid P(0)@cs && P(1)@cs;",
    );
    check("shared x: 0..5 = *; process P { let y = 6 / x; }");
    check(
        "shared x: 0..9; process Main { spawn W(1); spawn W(2); } process W(k: 1..2) on spawn { x = x + k; } final x == 3;",
    );
    check(
        "proc fib(n: 0..9) -> 0..99 { if n < 2 { return n; } return fib(n - 1) + fib(n - 2); } process P { assert(fib(9) != 34); }",
    );
    check("shared x = 1; process P { loop { x = x * 3; } }");
    check("shared a[2]: 0..5; process P { let p = &a[0]; *(p + any(0..2)) = 1; }");
}

/// Corner cases of arithmetic have the same results in C as in Palisade.
#[test]
fn corner_cases_of_arithmetic() {
    let folder = scratch("c-arithmetic");
    let check = |assertion: &str, expected: bool| {
        let text = format!(
            "process P {{ let m = 0 - 9223372036854775807 - 1; let o = any(-1..1); let n = o - 1; if o == 0 {{ {assertion} }} }}"
        );
        let subject = Subject::read("corner.pal", &text);
        assert_eq!(subject.is_safe(), Some(expected), "{text}");
        let failed = failures(&folder, &subject, 20);
        assert_eq!(failed == 0, expected, "{text}:\n{}", subject.export(Target::C));
    };
    check("assert(m % n == 0);", true);
    check("assert((m + 1) % n + 7 % n == 0);", true);
    check("assert(1 + m % n * 2 == 1);", true);
    check("let q = m / n;", false);
    check("let q = m % o;", false);
    check("let q = m * n;", false);
    check("let q = -m;", false);
    check("assert(m / 1 == m && m >> 63 == n);", true);
}

/// Values that wrap around have the same results in C as in Palisade.
#[test]
fn values_that_wrap_around() {
    let folder = scratch("c-wrapping");
    let check = |text: &str| {
        let subject = Subject::read("wrapping.pal", text);
        let safe = subject.is_safe().expect("it is small");
        let failed = failures(&folder, &subject, if safe { RUNS } else { 20 });
        assert_eq!(failed == 0, safe, "{text}:\n{}", subject.export(Target::C));
    };
    WRAPPING.iter().for_each(|text| check(text));
    // Words of 32 bits, and sums that do not fit 64 bits.
    check("shared x: u32 = 4294967295; process P { fetch_add(x, 2); } final x == 1;");
    check("shared x: i32 = 2147483647; process P { x = x + 1; assert(x == 0 - 2147483648); }");
    check(
        "shared x: u8 = 200; process P { let r = fetch_add(x, 9223372036854775807); assert(r == 200); } final x == 199;",
    );
    check("shared x: u8 = 200; process P { fetch_sub(x, 0 - 9223372036854775807); } final x == 199;");
    check(
        "shared x: u8 = 3; shared y: int = 5; process P { let p = &x + any(0..1); fetch_add(*p, 9223372036854775807); }",
    );
    check(
        "shared x: u8 = 3; shared y: int = 5; process P { let p = &x; if any(0..1) { p = &x; } fetch_add(*p, 9223372036854775807); } final x == 2 && y == 5;",
    );
}

#[test]
fn random_programs_whose_values_wrap_around() {
    let folder = scratch("c-random-wrapping");
    for seed in seeds(12).starting_at(1) {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = transform::wrapping(&generate(profile, seed), &mut Random::new(seed));
        check(&folder, &Subject::generated(&format!("wrapping {profile:?} {seed}.pal"), &program));
    }
}

/// Loops, structs, arrays of arrays, private arrays, enumerations and quantifiers.
#[test]
fn random_programs_with_constructs_that_stand_for_others() {
    let folder = scratch("c-constructs");
    for seed in seeds(8).starting_at(1) {
        let (text, _) = with_and_without_constructs(seed);
        check(&folder, &Subject::read(&format!("constructs {seed}.pal"), &text));
    }
}

/// Verifiers read the file with their own macros.
#[test]
fn verifiers() {
    let folder = scratch("c-verifiers");
    let declared = "extern void __CPROVER_atomic_begin(void); extern void __CPROVER_atomic_end(void); extern void __CPROVER_assume(int);";
    std::fs::write(folder.join("cprover.h"), declared).expect("the file can be written");
    let cprover = ["-D__CPROVER__", "-include", "cprover.h", "-fsyntax-only"];
    let read = |text: &str| Subject::read("p.pal", text);
    let own = [include_str!("../common/privates.pal"), include_str!("../common/parts.pal")].map(read);
    for subject in corpus().iter().step_by(7).chain(&own) {
        compile(&folder, subject, &["-DVERIFIER", "-fsyntax-only"]);
        compile(&folder, subject, &cprover);
    }
}

fn random(profile: Profile, programs: u64) {
    let folder = scratch(&format!("c-{profile:?}"));
    let mut found = 0;
    for seed in seeds(programs).starting_at(1) {
        let subject = Subject::generated(&format!("{profile:?} {seed}.pal"), &generate(profile, seed));
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
