//! The files of the corpus in the other tools' languages. `corpus/languages.tsv` lists exactly these files.
//! Each has the expected verdict under every model, and so does its translation to `.pal`.

use palisade::memory::Machine;
use palisade::program::{Instantiation, lower};
use palisade::{CheckOptions, Input, Language, Limits, Model, Source};
use palisade_conformance::brute::{self, Answer, Scope};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folders with files of each language.
const FOLDERS: [(&str, Language); 3] =
    [("litmus-x86", Language::Litmus), ("rmm", Language::Rmm), ("trencher", Language::Trencher)];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// The lines of the table: a file, and its expected verdicts under SC, TSO and PSO.
fn expectations() -> Vec<(String, [String; 3])> {
    let table = fs::read_to_string(corpus().join("languages.tsv")).expect("the table can be read");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("file\tsc\ttso\tpso\tsource"));
    let lines = lines.map(|line| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [file, sc, tso, pso, source] =
            fields.try_into().unwrap_or_else(|_| panic!("{line}: five columns"));
        assert!(!source.is_empty(), "{file}: the table says where the verdicts are from");
        (file, [sc, tso, pso])
    });
    lines.collect()
}

fn language(file: &str) -> Language {
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
    extension.and_then(Language::from_extension).unwrap_or_else(|| panic!("{file}: which language?"))
}

fn read(name: &str, text: String, language: Language) -> Input {
    palisade::read(Source::new(name, text), language, None)
        .unwrap_or_else(|refused| panic!("{name}: {refused}"))
}

fn verdict(input: &Input, options: &CheckOptions) -> &'static str {
    let limits = Limits::unlimited(1).with_timeout(Duration::from_secs(60));
    let answer = palisade::check(&input.program, options, &limits);
    answer.unwrap_or_else(|error| panic!("{}: {error}", input.source.name())).outcome.word()
}

#[test]
fn the_table_lists_every_file_once() {
    let listed: Vec<String> = expectations().into_iter().map(|(file, _)| file).collect();
    assert!(listed.is_sorted(), "the files come in alphabetical order");
    let mut found = BTreeSet::new();
    for (folder, folder_language) in FOLDERS {
        for entry in fs::read_dir(corpus().join(folder)).expect("the folder can be read") {
            let name = entry.expect("the entry can be read").file_name();
            let file = format!("{folder}/{}", name.to_str().expect("names are plain"));
            assert_eq!(language(&file), folder_language, "{file}");
            found.insert(file);
        }
    }
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), found);
    assert_eq!(listed.len(), found.len(), "no file is named twice");
}

/// Compares the table with the brute-force interpreter, which shares no code with the engines.
#[test]
fn oracle_expectations_agree_with_brute_force() {
    let mut conclusive = 0;
    for (file, expected) in expectations() {
        let text = fs::read_to_string(corpus().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let input = read(&file, text, language(&file));
        let system = lower(&input.program, Instantiation { any: 1, every: None });
        for (model, expected) in Model::ALL.into_iter().zip(&expected) {
            let limits = Scope { states: 50_000, buffer: Some(6) };
            let answer = brute::check(Machine::new(&system, model), limits);
            if answer != Answer::Inconclusive {
                conclusive += 1;
                assert_eq!(answer.word(), expected, "{file} under {}", model.name());
            }
        }
    }
    assert!(conclusive >= 60, "brute force decides {conclusive} of 81");
}

#[test]
fn verdicts_are_as_expected_and_the_same_in_pal() {
    for (file, expected) in expectations() {
        let text = fs::read_to_string(corpus().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let input = read(&file, text, language(&file));
        let printed = palisade::program::print::print(&input.program);
        let again = read(&format!("{file} as .pal"), printed, Language::Pal);
        assert_eq!(again.program, input.program, "{file}: the translation is the same program");
        for (model, expected) in [Model::Sc, Model::Tso, Model::Pso].into_iter().zip(&expected) {
            let under = format!("{file} under {}", model.name());
            let options = CheckOptions { model, ..CheckOptions::default() };
            assert_eq!(verdict(&input, &options), expected, "{under}");
            assert_eq!(verdict(&again, &options), expected, "{under}, as .pal");
        }
    }
}
