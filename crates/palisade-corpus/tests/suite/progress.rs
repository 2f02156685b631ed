//! The programs of `corpus/progress.tsv`: every one is decided under every model, by the default and by name,
//! and what is safe passes the checker.

use palisade::{CheckOptions, EngineChoice, Language, Limits, Model, Source};
use palisade_corpus::{Safety, progress_expectations};
use std::path::Path;

fn verdict(name: &str, model: Model, engine: EngineChoice, certify: bool) -> &'static str {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let input = palisade::read(Source::new(name, text), Language::Pal, None)
        .unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
    let options = CheckOptions { model, engine, certify, ..CheckOptions::default() };
    let answer = palisade::check(&input.program, &options, &Limits::unlimited(1));
    answer.unwrap_or_else(|error| panic!("{name}: {error}")).outcome.word()
}

fn check_all(engine: &EngineChoice, certify: bool) {
    for expectation in progress_expectations() {
        let verdicts = expectation.verdicts;
        for (model, expected) in Model::ALL.into_iter().zip([verdicts.sc, verdicts.tso, verdicts.pso]) {
            let found = verdict(expectation.file, model, engine.clone(), certify);
            let expected = expected.map(Safety::name).expect("the verdicts are known");
            assert_eq!(found, expected, "{} under {}", expectation.file, model.name());
        }
    }
}

#[test]
fn verdicts_of_progress() {
    check_all(&EngineChoice::Auto, false);
    check_all(&EngineChoice::Named("explicit".to_owned()), false);
}

#[test]
fn safe_passes_the_checker() {
    check_all(&EngineChoice::Auto, true);
}
