//! The suite for any number of threads finds the mistakes of wrong engines. Its programs are valid and of all
//! kinds.

use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::generate::generate_parameterized;
use palisade_conformance::parameterized::check_parameterized;
use palisade_conformance::suite::{SuiteConfig, Unknown};
use palisade_conformance::{TestEngine, seeds};
use palisade_engine::{Reason, Verdict, Witness};
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower, validate};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// Says `unknown` if no number it has tried is unsafe.
    None,
    /// Says `safe` if one thread of each kind is safe.
    OneIsAll,
    /// Names one thread of each kind, whatever the run has.
    WrongCount,
}

/// Brute force on one or more threads of each kind, with a mistake or without.
fn brute_force(mistake: Mistake) -> TestEngine {
    TestEngine::new("brute", move |analysis, _| {
        let task = &analysis.task;
        let most = if mistake == Mistake::OneIsAll { 1 } else { 3 };
        let found = (1..=most).find_map(|any| {
            let system = task.lower(any);
            match brute::check(task.machine(&system), Scope { states: 1_000, buffer: Some(4) }) {
                Answer::Unsafe(run) => Some((any, run)),
                _ => None,
            }
        });
        match found {
            Some((any, run)) => {
                let any = if mistake == Mistake::WrongCount { 1 } else { any };
                Verdict::Violated(Witness { instantiation: task.instantiation(any), run })
            }
            None if mistake == Mistake::OneIsAll => Verdict::Holds,
            None => Verdict::Unknown(Reason::BufferBound(4)),
        }
    })
}

fn config() -> SuiteConfig {
    SuiteConfig {
        programs: 30,
        models: vec![Model::Sc, Model::Tso],
        unknown: Unknown::Always,
        limits: Scope { states: 1_000, buffer: Some(4) },
        ..SuiteConfig::default()
    }
}

#[test]
fn a_correct_engine_passes() {
    check_parameterized(&brute_force(Mistake::None), config());
}

#[test]
fn wrong_engines_fail_with_a_small_program() {
    let cases = [
        (Mistake::OneIsAll, "safe for any number of threads, but 2 have a run"),
        (Mistake::WrongCount, "the witness does not replay"),
    ];
    // Fewer programs may not show a mistake.
    if !seeds(config().programs as u64).suffice() {
        return;
    }
    for (mistake, expected) in cases {
        let failed = catch_unwind(AssertUnwindSafe(|| check_parameterized(&brute_force(mistake), config())));
        let panic = failed.expect_err("the mistake is found");
        let text = panic.downcast_ref::<String>().expect("the message is formatted");
        let small = text.split("small program: ").nth(1).expect("the program was shrunk");
        assert!(small.contains(expected), "{expected} is not in:\n{text}");
        assert!(small.lines().count() < 25, "the program is not small:\n{text}");
    }
}

#[test]
fn programs_are_valid_and_of_all_kinds() {
    let (mut safe, mut broken, mut many) = (0, 0, 0);
    let seeds = seeds(100).starting_at(1);
    for seed in &seeds {
        let program = generate_parameterized(seed);
        let wrong: Vec<_> = validate(&program).into_iter().filter(|problem| problem.is_error()).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        assert_eq!(program, generate_parameterized(seed), "the same seed gives the same program");
        let answer = |any| {
            let system = lower(&program, Instantiation { any, every: None });
            brute::check(Machine::new(&system, Model::Tso), Scope { states: 2_000, buffer: Some(4) })
        };
        match answer(2) {
            Answer::Safe => safe += 1,
            Answer::Unsafe(_) => {
                broken += 1;
                many += usize::from(answer(1) == Answer::Safe);
            }
            Answer::Inconclusive => {}
        }
    }
    assert!(
        safe >= 20 && broken >= 20 && many >= 10 || !seeds.suffice(),
        "{safe} safe, {broken} unsafe, {many} need two threads"
    );
}
