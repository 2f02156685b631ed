//! Random programs are valid, can be printed and read again, and are neither all safe nor all unsafe.

use palisade_base::{Diagnostic, Source};
use palisade_conformance::brute::{self, Scope};
use palisade_conformance::generate::{
    Recursion, generate_endless, generate_parameterized, generate_recursive, generate_spawning,
};
use palisade_conformance::{Profile, generate, seeds};
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower, print, validate};
use palisade_syntax::{Language, parse};

/// All checks of single programs in one test, since generating the programs takes most of the time.
#[test]
fn random_programs_are_valid_and_survive_printing_and_parsing() {
    let (mut texts, seeds) = (String::new(), seeds(60));
    for profile in Profile::ALL {
        for seed in &seeds {
            let program = generate(profile, seed);
            let text = print::print(&program);
            let errors: Vec<Diagnostic> =
                validate(&program).into_iter().filter(Diagnostic::is_error).collect();
            assert!(errors.is_empty(), "{profile:?} {seed}: {errors:#?}\n{text}");
            match parse(Language::Pal, &Source::new("random.pal", text.as_str())) {
                Ok(parsed) => assert_eq!(parsed.program, program, "{profile:?} {seed}\n{text}"),
                Err(errors) => panic!("{profile:?} {seed}: {errors:#?}\n{text}"),
            }
            texts += &text;
        }
    }
    let constructs = [
        "fence;",
        "sfence;",
        "cas(",
        "xchg(",
        "fetch_add(",
        "atomic {",
        "choose {",
        "} or {",
        "any(",
        "assume(",
        "await ",
        "assert(",
        "if ",
        "else {",
        "while ",
        "loop {",
        "break;",
        "goto ",
        "return",
        "proc ",
        "spawn ",
        "on spawn",
        "process W[2]",
        "process W[3]",
        "process W(",
        "forbid ",
        "final ",
        "count(",
        "@end",
        "= *;",
        "blocking",
        "*p0",
        "= &",
        "a[",
        " % ",
    ];
    let missing: Vec<_> = constructs.iter().filter(|construct| !texts.contains(**construct)).collect();
    assert!(missing.is_empty() || !seeds.suffice(), "never generated: {missing:?}");
}

#[test]
fn a_seed_names_a_program() {
    for profile in Profile::ALL {
        for seed in seeds(10) {
            assert_eq!(generate(profile, seed), generate(profile, seed));
        }
    }
}

/// Brute force decides nearly all programs of acyclic profiles, each verdict is frequent under each model,
/// and the models often differ.
#[test]
fn safe_and_unsafe_are_both_frequent_and_models_differ() {
    let seeds = seeds(50);
    for profile in Profile::ALL {
        let mut words: Vec<Vec<&str>> = Vec::new();
        for seed in &seeds {
            let system = lower(&generate(profile, seed), Instantiation { any: 2, every: None });
            let limits = Scope { states: 15_000, buffer: if profile.is_acyclic() { None } else { Some(3) } };
            let word = |model| brute::check(Machine::new(&system, model), limits).word();
            words.push(Model::ALL.into_iter().map(word).collect());
        }
        if !seeds.suffice() {
            continue;
        }
        let count = |wanted: &dyn Fn(&[&str]) -> bool| words.iter().filter(|words| wanted(words)).count();
        for (index, model) in Model::ALL.into_iter().enumerate() {
            let number = |word: &str| count(&|words| words[index] == word);
            let (safe, broken, open) = (number("safe"), number("unsafe"), number("inconclusive"));
            let summary = format!("{profile:?} {}: {safe} safe, {broken} unsafe, {open} open", model.name());
            eprintln!("{summary}");
            assert!(safe >= 5 && broken >= 5, "{summary}");
            assert!(!profile.is_acyclic() || open <= 5, "{summary}");
        }
        let tso = count(&|words| words[0] == "safe" && words[1] == "unsafe");
        let pso = count(&|words| words[1] == "safe" && words[2] == "unsafe");
        eprintln!("{profile:?}: {tso} broken by TSO only, {pso} broken by PSO only");
        assert!(tso >= 2 && pso >= 2, "{profile:?}: {tso} broken by TSO only, {pso} broken by PSO only");
    }
}

/// Lowering establishes the invariants of the running form.
#[test]
fn lowered_programs_keep_the_invariants() {
    for seed in seeds(60) {
        let programs = Profile::ALL.map(|profile| generate(profile, seed)).into_iter().chain([
            generate_recursive(Recursion::Free, seed),
            generate_recursive(Recursion::Bounded, seed),
            generate_parameterized(seed),
            generate_spawning(seed),
            generate_endless(seed),
        ]);
        for program in programs {
            lower(&program, Instantiation { any: 2, every: None }).check_invariants();
        }
    }
}
