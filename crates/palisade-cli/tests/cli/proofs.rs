//! If any engine answers `safe` for a program of the corpus, there is a proof, and the checker accepts it.

use palisade::engine::{Bound, Options};
use palisade::{Answer, CheckOptions, EngineChoice, Language, Limits, Model, Source};
use std::collections::BTreeMap;
use std::time::Duration;

/// The work limit of an engine: small.
const WORK: u64 = 3_000;

/// All programs of the corpus have loops, for which no number of rounds is enough.
const WITHOUT_LOOPS: &str = "\
shared x, y: 0..1;
process A { x = 1; y = 1; }
process B { let b = y; let a = x; if b == 1 { assert(a == 1); } }
";

fn ask(program: &palisade::program::written::Program, options: &CheckOptions, limits: &Limits) -> Answer {
    palisade::check(program, options, limits).unwrap_or_else(|error| panic!("{error}"))
}

/// Everything that is found safe under a model is proved, and each of these engines finds something safe.
fn check(model: Model, engines: &[&str]) {
    let mut proved: BTreeMap<&str, usize> = BTreeMap::new();
    let corpus = palisade_corpus::expectations();
    let corpus = corpus
        .iter()
        .map(|expected| (expected.file, palisade_corpus::text(expected.file).expect("the corpus has it")));
    for (file, text) in corpus.chain([("without_loops.pal", WITHOUT_LOOPS)]) {
        let source = Source::new(file, text);
        let input =
            palisade::read(source, Language::Pal, None).expect("programs of the corpus are well formed");
        for engine in palisade::engines() {
            let named = EngineChoice::Named(engine.name().to_owned());
            let bounds = Options { rounds: Bound::Fixed(2), ..Options::default() };
            let options = CheckOptions { model, engine: named, options: bounds, ..CheckOptions::default() };
            let little = Limits::unlimited(1).with_work(WORK);
            if ask(&input.program, &options, &little).outcome.word() != "safe" {
                continue;
            }
            let certify = CheckOptions { certify: true, ..options };
            let enough = Limits::unlimited(2).with_timeout(Duration::from_secs(120));
            let answer = ask(&input.program, &certify, &enough);
            let about = format!("{file} under {} by {}", model.name(), engine.name());
            assert_eq!(answer.outcome.word(), "safe", "{about}: {:?}", answer.outcome.verdict);
            assert!(answer.certified.is_some(), "{about}");
            *proved.entry(engine.name()).or_default() += 1;
        }
    }
    println!("proofs by the engine that says safe: {proved:?}");
    assert!(proved.keys().eq(engines), "{proved:?}");
}

#[test]
fn under_sc_every_safe_has_an_accepted_proof() {
    check(Model::Sc, &["dual", "explicit", "pushdown", "sb"]);
}

#[test]
fn under_tso_every_safe_has_an_accepted_proof() {
    check(Model::Tso, &["age", "dual", "explicit", "lazy", "rounds", "sb"]);
}

#[test]
fn under_pso_every_safe_has_an_accepted_proof() {
    check(Model::Pso, &["explicit", "sb"]);
}
