//! The files of the corpus are complete, readable and up to date with their templates, and no engine
//! contradicts their expected verdicts.

use palisade::{CheckOptions, Language, Limits, Model, Options, Source, Verdict};
use palisade_corpus::{
    Safety, Verdicts, expectations, families, generated, progress_expectations, round_expectations,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Every `.pal` file, by its path in the corpus.
fn files() -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut folders = vec![corpus()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pal") {
                let relative = path.strip_prefix(corpus()).expect("the file is below the corpus folder");
                files.insert(relative.to_str().expect("names are UTF-8").replace('\\', "/"));
            }
        }
    }
    files
}

fn read(file: &str) -> String {
    fs::read_to_string(corpus().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_file_has_an_expectation() {
    let expected: Vec<&str> = expectations().iter().map(|expectation| expectation.file).collect();
    let rounds: Vec<&str> = round_expectations().iter().map(|expectation| expectation.file).collect();
    let progress = progress_expectations();
    let progress: Vec<&str> = progress.iter().map(|expectation| expectation.file).collect();
    let both = expected.iter().chain(&rounds).chain(&progress);
    let sorted: BTreeSet<String> = both.map(|file| (*file).to_owned()).collect();
    let listed = expected.len() + rounds.len() + progress.len();
    assert_eq!(listed, sorted.len(), "no file is listed twice");
    assert_eq!(sorted, files());
    assert!(progress.is_sorted(), "the files are listed in alphabetical order");
    assert!(expected.is_sorted() && rounds.is_sorted(), "the files are listed in alphabetical order");
}

/// With `PALISADE_BLESS` set, the generated files are written.
#[test]
fn generated_files_are_up_to_date() {
    for (file, text) in generated() {
        if std::env::var_os("PALISADE_BLESS").is_some() {
            fs::write(corpus().join(&file), &text).expect("the file can be written");
        }
        assert_eq!(read(&file), text, "{file}: run this test with PALISADE_BLESS=1");
    }
}

#[test]
fn every_file_begins_with_a_comment() {
    for file in files() {
        assert!(read(&file).starts_with("// "), "{file} begins with a comment");
    }
}

/// Runs the default engine under every model. It may answer `unknown`, but it must not contradict the
/// expectation.
#[track_caller]
fn check(name: &str, text: &str, expected: Verdicts) {
    let input = palisade::read(Source::new(name, text), Language::Pal, None)
        .unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
    let models = [(Model::Sc, expected.sc), (Model::Tso, expected.tso), (Model::Pso, expected.pso)];
    for (model, expected) in models {
        let options = CheckOptions {
            model,
            options: Options { max_buffer: 4, ..Options::default() },
            ..CheckOptions::default()
        };
        let limits = Limits::unlimited(2).with_timeout(Duration::from_secs(20)).with_memory(2 << 30);
        let answer = palisade::check(&input.program, &options, &limits)
            .unwrap_or_else(|error| panic!("{name} under {}: {error}", model.name()));
        let found = match answer.outcome.verdict {
            Verdict::Holds => Some(Safety::Safe),
            Verdict::Violated(_) => Some(Safety::Unsafe),
            Verdict::Unknown(_) => None,
        };
        if let Some(found) = found {
            assert_eq!(Some(found), expected, "{name} under {}", model.name());
        }
    }
}

#[test]
fn verdicts_of_files() {
    for expectation in expectations() {
        check(expectation.file, &read(expectation.file), expectation.verdicts);
    }
}

#[test]
fn verdicts_of_families() {
    for family in families() {
        for size in family.small.clone() {
            check(&format!("{} {size}", family.name), &(family.program)(size), family.verdicts);
        }
    }
}

/// The exact engines decide every file, and agree with the expected verdict.
#[test]
fn exact_engines_decide_every_file() {
    for expectation in expectations() {
        let name = expectation.file;
        let input =
            palisade::read(Source::new(name, read(name)), Language::Pal, None).expect("it can be read");
        let Verdicts { tso, pso, .. } = expectation.verdicts;
        let engines = [("dual", Model::Tso, tso), ("sb", Model::Tso, tso), ("sb", Model::Pso, pso)];
        // Only load buffers know identities of any number of processes.
        let engines = if input.program.has_open_identities() { &engines[..1] } else { &engines[..] };
        for &(engine, model, expected) in engines {
            let engine = palisade::EngineChoice::Named(engine.to_owned());
            let options = CheckOptions { model, engine: engine.clone(), ..CheckOptions::default() };
            let answer =
                palisade::check(&input.program, &options, &Limits::unlimited(1)).expect("runs replay");
            let expected = expected.map(Safety::name).expect("verdicts are known");
            assert_eq!(answer.outcome.word(), expected, "{name} under {}, {engine:?}", model.name());
        }
    }
}
