//! Every program in the language reference has the stated verdicts, and no engine contradicts them.

use palisade::{CheckOptions, EngineChoice, Language, Limits, Model, Source};
use std::time::Duration;

/// The programs of the reference, with their lines and the verdicts in their info strings (`sc=safe`).
fn examples() -> Vec<(usize, &'static str, String)> {
    let mut examples = Vec::new();
    let mut lines = include_str!("../../../../docs/language.md").lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(expected) = line.strip_prefix("```pal ") {
            let text: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            examples.push((number + 1, expected, text.join("\n")));
        }
    }
    examples
}

#[test]
fn verdicts_are_as_the_reference_says() {
    let examples = examples();
    assert!(examples.len() >= 19, "the reference has {} programs with verdicts", examples.len());
    for (line, expected, text) in examples {
        let input = palisade::read(Source::new("language.md", text), Language::Pal, None)
            .unwrap_or_else(|refused| panic!("line {line}: {refused:?}"));
        for pair in expected.split(' ') {
            let (model, expected) = pair.split_once('=').expect("the info string is model=verdict");
            let model = *Model::ALL.iter().find(|m| m.name() == model).expect("a model");
            let verdict = |engine: EngineChoice| {
                let options = CheckOptions { model, engine, ..CheckOptions::default() };
                let limits = Limits::unlimited(1).with_timeout(Duration::from_secs(60));
                let answer = palisade::check(&input.program, &options, &limits);
                answer.unwrap_or_else(|error| panic!("line {line}: {error}")).outcome.word()
            };
            assert_eq!(verdict(EngineChoice::Auto), expected, "line {line} under {}", model.name());
            for engine in palisade::engines() {
                let found = verdict(EngineChoice::Named(engine.name().to_owned()));
                assert!(
                    found == expected || found == "unknown",
                    "line {line} under {}: {} says {found}",
                    model.name(),
                    engine.name()
                );
            }
        }
    }
}
