//! Recursive programs, and programs that start processes without bound: the engines agree with
//! `corpus/rounds.tsv`.

use palisade::{
    Bound, CheckOptions, EngineChoice, Language, Limits, Model, Options, Reason, Source, Verdict,
};
use palisade_corpus::{Within, round_expectations, text};

#[track_caller]
fn check(file: &str, engine: &str, model: Model, rounds: u32, expected: Within) {
    let text = text(file).expect("the file is in the corpus");
    let input = palisade::read(Source::new(file, text), Language::Pal, None)
        .unwrap_or_else(|refused| panic!("{file}: {refused:?}"));
    let options = CheckOptions {
        model,
        engine: EngineChoice::Named(engine.to_owned()),
        options: Options { rounds: Bound::Fixed(rounds), ..Options::default() },
        ..CheckOptions::default()
    };
    let limits = Limits::unlimited(1).with_memory(2 << 30);
    let answer = palisade::check(&input.program, &options, &limits)
        .unwrap_or_else(|error| panic!("{file} under {}: {error}", model.name()));
    let found = match answer.outcome.verdict {
        Verdict::Holds => Within::Safe,
        Verdict::Violated(_) => Within::Unsafe,
        Verdict::Unknown(Reason::Rounds(bound)) if bound == rounds => Within::Bounded,
        Verdict::Unknown(reason) => panic!("{file} under {}: {reason}", model.name()),
    };
    assert_eq!(found, expected, "{file} under {}", model.name());
}

#[test]
fn sequential_consistency() {
    for line in round_expectations() {
        check(line.file, "pushdown", Model::Sc, line.rounds, line.sc);
    }
}

#[test]
fn total_store_order() {
    for line in round_expectations() {
        check(line.file, "rounds", Model::Tso, line.rounds, line.tso);
    }
}
