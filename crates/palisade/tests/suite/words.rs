//! Programs with machine words: variables at chosen addresses, values that wrap around, operators on words. What an
//! engine knows is what brute force says, and what is printed and read again is the same program. More programs:
//! `PALISADE_SEEDS=5000 cargo test -p palisade --test suite words::`.

use palisade::engine::{Limits, Options, Question, Safety, Task, Threads, Verdict};
use palisade::memory::{Interlocked, Machine, Model};
use palisade::program::written::Program;
use palisade::program::{Instantiation, lower, print, validate};
use palisade_base::{Diagnostic, Source};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::random::Random;
use palisade_conformance::{Profile, generate, seeds, transform};
use palisade_syntax::Language;
use std::collections::BTreeMap;

#[test]
fn differential_engines_on_programs_with_words() {
    compare(150, transform::in_words, &["explicit", "dual", "sb"]);
}

/// Values that wrap around alone: these are for all engines.
#[test]
fn differential_engines_on_programs_with_values_that_wrap_around() {
    compare(300, transform::wrapping, &["explicit", "dual", "sb", "lazy", "rounds", "age"]);
}

/// Compares all engines with brute force on random programs that were changed. These engines must have found enough of
/// both verdicts.
fn compare(programs: u64, change: fn(&Program, &mut Random) -> Program, expected: &[&str]) {
    let seeds = seeds(programs).starting_at(1);
    let mut compared: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for seed in &seeds {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = change(&generate(profile, seed), &mut Random::new(seed));
        let text = print::print(&program);
        let errors: Vec<_> = validate(&program).into_iter().filter(Diagnostic::is_error).collect();
        if !errors.is_empty() {
            // A constant that was added may now be outside its domain.
            continue;
        }
        let read = palisade::read(Source::new("words.pal", &*text), Language::Pal, None);
        assert_eq!(read.expect("it is valid").program, program, "seed {seed}\n{text}");
        let system = lower(&program, Instantiation { any: 1, every: None });
        system.check_invariants();
        for model in Model::ALL {
            let scope = Scope { states: 10_000, buffer: Some(3) };
            let word = match brute::check(Machine::new(&system, model), scope) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => continue,
            };
            let options = Options { max_buffer: 3, ..Options::default() };
            let interlocked = Interlocked::default();
            let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
            for engine in palisade::engines() {
                let limits = Limits::unlimited(1).with_work(20_000);
                match engine.check(&task.analysis(), &limits).verdict {
                    Verdict::Unknown(reason) => {
                        assert_eq!(reason.bug(), None, "seed {seed}, {}\n{text}", engine.name());
                    }
                    verdict => {
                        let found = Safety::word(&verdict);
                        *compared.entry((engine.name(), found)).or_default() += 1;
                        let name = (engine.name(), model.name());
                        assert_eq!(found, word, "seed {seed}, {profile:?}, {name:?}\n{text}");
                    }
                }
            }
        }
    }
    println!("{compared:?}");
    for engine in expected {
        for word in ["safe", "unsafe"] {
            let enough = compared.get(&(*engine, word)).is_some_and(|&count| count > 20);
            assert!(enough || !seeds.suffice(), "{engine} {word}: {compared:?}");
        }
    }
}
