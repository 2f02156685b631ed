//! Random programs are valid, can be printed and read again, and are neither all safe nor all unsafe.

use palisade_base::{Diagnostic, Source};
use palisade_conformance::brute::{self, Answer, Limits};
use palisade_conformance::{Profile, generate};
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower, print, validate};
use palisade_syntax::{Language, parse};

const SEEDS: std::ops::Range<u64> = 0..300;

fn for_all_programs(mut check: impl FnMut(Profile, u64, palisade_program::written::Program)) {
    for profile in Profile::ALL {
        for seed in SEEDS {
            check(profile, seed, generate(profile, seed));
        }
    }
}

#[test]
fn random_programs_are_valid() {
    for_all_programs(|profile, seed, program| {
        let errors: Vec<Diagnostic> = validate(&program).into_iter().filter(Diagnostic::is_error).collect();
        assert!(errors.is_empty(), "{profile:?} {seed}: {errors:#?}\n{}", print::print(&program));
    });
}

#[test]
fn a_seed_names_a_program() {
    for_all_programs(|profile, seed, program| assert_eq!(generate(profile, seed), program));
}

#[test]
fn printed_random_programs_read_the_same() {
    for_all_programs(|profile, seed, program| {
        let text = print::print(&program);
        match parse(Language::Pal, &Source::new("random.pal", text.as_str())) {
            Ok(parsed) => assert_eq!(parsed.program, program, "{profile:?} {seed}\n{text}"),
            Err(errors) => panic!("{profile:?} {seed}: {errors:#?}\n{text}"),
        }
    });
}

/// Brute force must decide most programs of acyclic profiles, and each verdict must be frequent under each model.
#[test]
fn safe_and_unsafe_are_both_frequent() {
    for profile in Profile::ALL {
        for model in Model::ALL {
            let (mut safe, mut broken, mut inconclusive) = (0, 0, 0);
            for seed in 0..150 {
                let system = lower(&generate(profile, seed), Instantiation { any: 2, every: None });
                let limits =
                    Limits { states: 30_000, buffer: if profile.is_acyclic() { None } else { Some(3) } };
                match brute::check(Machine::new(&system, model), limits) {
                    Answer::Safe => safe += 1,
                    Answer::Unsafe(_) => broken += 1,
                    Answer::Inconclusive => inconclusive += 1,
                }
            }
            eprintln!(
                "{profile:?} {}: {safe} safe, {broken} unsafe, {inconclusive} inconclusive",
                model.name()
            );
            assert!(safe >= 25, "{profile:?} {}: only {safe} of 150 are safe", model.name());
            assert!(broken >= 25, "{profile:?} {}: only {broken} of 150 are unsafe", model.name());
            if profile.is_acyclic() {
                assert!(inconclusive <= 15, "{profile:?} {}: {inconclusive} are too large", model.name());
            }
        }
    }
}
