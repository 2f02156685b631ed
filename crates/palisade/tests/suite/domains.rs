//! Guess and proof: engines that list values decide programs whose variables are machine words, and the checker
//! believes no guess.

use palisade::certificate::{Certificate, Refusal};
use palisade::engine::{Limits, Question, Safety, Verdict};
use palisade::memory::{Machine, Model};
use palisade::program::written::{Init, InitValue, Outside, Program, Type};
use palisade::program::{Instantiation, lower, print, validate};
use palisade::{CheckOptions, EngineChoice, Input};
use palisade_base::{Diagnostic, Source};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::{Profile, generate, seeds};
use palisade_syntax::Language;
use std::collections::BTreeMap;

/// The program with words of 32 bits instead of small domains.
fn widened(mut program: Program) -> Program {
    for shared in &mut program.shared {
        let arbitrary = match &shared.init {
            Init::Every(value) => *value == InitValue::Any,
            Init::Each(values) => values.contains(&InitValue::Any),
        };
        if !arbitrary && shared.ty.outside != Outside::Block {
            shared.ty = Type::wrapping(i32::MIN.into(), i32::MAX.into());
        }
    }
    program
}

fn input(text: &str) -> Input {
    palisade::read(Source::new("words.pal", text), Language::Pal, None).expect("it is valid")
}

/// The answer of an engine, and the certificate if there is one.
fn ask(input: &Input, engine: &str, model: Model) -> (Verdict, Option<Certificate>) {
    let engine = EngineChoice::from(engine);
    let options = CheckOptions { model, engine, prove: true, certify: true, ..CheckOptions::default() };
    let limits = Limits::unlimited(1).with_work(20_000);
    let answer = palisade::check(&input.program, &options, &limits).expect("it is no bug");
    let certificate = answer.certificate(input);
    (answer.outcome.verdict, certificate)
}

/// A certificate with a smaller domain proves nothing: every domain is as small as it can be.
fn check_forged(input: &Input, certificate: &Certificate, limits: &Limits) {
    for index in 0..certificate.domains.len() {
        for end in 0..2 {
            let mut forged = certificate.clone();
            let domain = &mut forged.domains[index];
            match end {
                0 => domain.lo += 1,
                _ => domain.hi -= 1,
            }
            let judged = palisade::certify(&input.program, &forged, limits);
            assert!(judged.is_err(), "{:?}", forged.domains);
        }
    }
}

#[test]
fn differential_engines_with_guessed_domains() {
    let seeds = seeds(40).starting_at(1);
    let mut compared: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut guessed = 0;
    for seed in &seeds {
        let profile = Profile::ALL[seed as usize % Profile::ALL.len()];
        let program = widened(generate(profile, seed));
        if validate(&program).iter().any(Diagnostic::is_error) {
            continue;
        }
        let text = print::print(&program);
        let input = input(&text);
        let system = lower(&program, Instantiation { any: 1, every: None });
        for (model, engine) in
            [(Model::Tso, "dual"), (Model::Pso, "sb"), (Model::Sc, "dual"), (Model::Tso, "sb")]
        {
            let scope = Scope { states: 10_000, buffer: Some(3) };
            let word = match brute::check(Machine::new(&system, model), scope) {
                Answer::Safe => "safe",
                Answer::Unsafe(_) => "unsafe",
                Answer::Inconclusive => continue,
            };
            let (verdict, certificate) = ask(&input, engine, model);
            if matches!(verdict, Verdict::Unknown(_)) {
                continue;
            }
            let found = Safety::word(&verdict);
            assert_eq!(found, word, "seed {seed}, {profile:?}, {engine} under {}\n{text}", model.name());
            *compared.entry((engine, found)).or_default() += 1;
            if let Some(certificate) = certificate.filter(|certificate| !certificate.domains.is_empty()) {
                guessed += 1;
                let limits = Limits::unlimited(1).with_work(200_000);
                let stored = Certificate::from_json(&certificate.to_json()).expect("it can be read");
                assert_eq!(stored.domains, certificate.domains);
                assert!(palisade::certify(&input.program, &stored, &limits).is_ok(), "seed {seed}\n{text}");
                check_forged(&input, &certificate, &limits);
            }
        }
    }
    println!("{compared:?}, {guessed} with domains");
    assert!(guessed > 5 || !seeds.suffice(), "{guessed}");
}

/// A counter in a loop: too many values to list, unless somebody knows that it is 3 at most.
#[test]
fn counters_in_loops() {
    let text = |most: i64| {
        format!(
            "shared lock: bool; shared n: -2147483648..2147483647 wrap;\n\
             process P[3] {{ let t: -2147483648..2147483647 wrap;\n\
             await !xchg(lock, true); t = n; n = t +% 1; fence; lock = false; assert(t < {most}); }}"
        )
    };
    for engine in ["dual", "sb"] {
        let program = input(&text(3));
        let (verdict, certificate) = ask(&program, engine, Model::Tso);
        assert_eq!(verdict, Verdict::Holds, "{engine}");
        let certificate = certificate.expect("it has a proof");
        let limits = Limits::unlimited(1);
        assert!(palisade::certify(&program.program, &certificate, &limits).is_ok());
        if engine == "dual" {
            let shown: Vec<(&str, i64, i64)> =
                certificate.domains.iter().map(|domain| (&*domain.name, domain.lo, domain.hi)).collect();
            assert_eq!(shown, [("n", 0, 3)]);
            check_forged(&program, &certificate, &limits);
            let unknown = Certificate { domains: Vec::new(), ..certificate };
            let judged = palisade::certify(&program.program, &unknown, &limits);
            assert!(matches!(judged, Err(Refusal::Unsuited(_) | Refusal::Unfit(_))), "{judged:?}");
        }
        let (verdict, _) = ask(&input(&text(2)), engine, Model::Tso);
        assert!(matches!(verdict, Verdict::Violated(_)), "{engine}");
    }
}
