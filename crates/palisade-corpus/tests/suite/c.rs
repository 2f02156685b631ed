//! `corpus/c.tsv` and the files in `corpus/c/` fit together, and so do `corpus/rust.tsv` and `corpus/rust/`. Whether the
//! verdicts hold is tested where such programs are checked.

use palisade_corpus::{CExpectation, Question, Safety, c_expectations, rust_expectations};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn by_file() -> BTreeMap<&'static str, Vec<CExpectation>> {
    let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for expectation in c_expectations() {
        files.entry(expectation.file).or_default().push(expectation);
    }
    files
}

fn corpus() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

fn is_unsafe(expectation: &CExpectation) -> bool {
    let verdicts = expectation.verdicts;
    [verdicts.sc, verdicts.tso, verdicts.pso].contains(&Some(Safety::Unsafe))
}

#[test]
fn the_table_lists_exactly_the_files() {
    let entries = std::fs::read_dir(corpus().join("c")).expect("the folder exists");
    let found: BTreeSet<String> =
        entries.map(|entry| format!("c/{}", entry.unwrap().file_name().into_string().unwrap())).collect();
    let listed: BTreeSet<String> = by_file().into_keys().map(str::to_owned).collect();
    assert_eq!(found, listed);
}

#[test]
fn every_right_program_is_safe_and_has_a_twin_that_is_not() {
    for (file, lines) in by_file() {
        for question in [Question::Safety, Question::Progress] {
            let right = lines.iter().filter(|line| line.flags.is_empty() && line.question == question);
            assert!(right.clone().count() == 1 && !right.clone().any(is_unsafe), "{file}, {question:?}");
        }
        assert!(
            lines.iter().any(|line| !line.flags.is_empty() && is_unsafe(line)),
            "{file} has no broken twin"
        );
    }
}

#[test]
fn twins_are_described_and_in_the_table() {
    for (file, lines) in by_file() {
        let text = std::fs::read_to_string(corpus().join(file)).expect("the file can be read");
        let described: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("// ")?.split_once(": ")?.0))
            .filter(|name| name.starts_with("BROKEN_") || *name == "BOUNDED")
            .collect();
        let flags = lines.iter().flat_map(|line| &line.flags);
        let listed: BTreeSet<&str> =
            flags.map(|flag| flag.strip_prefix("-D").expect("flags define names")).collect();
        assert_eq!(described, listed, "{file}");
        for twin in described.iter().filter(|name| name.starts_with("BROKEN_")) {
            let unsafe_twin = |line: &&CExpectation| line.flags[..].contains(&&*format!("-D{twin}"));
            assert!(lines.iter().filter(unsafe_twin).any(is_unsafe), "{file}: {twin} is safe");
        }
    }
}

#[test]
fn verdicts_fit_the_kinds_and_the_models() {
    for line in c_expectations().into_iter().chain(rust_expectations()) {
        let CExpectation { file, flags, verdicts, .. } = &line;
        assert_eq!(is_unsafe(&line), !line.kinds.is_empty(), "{file} {flags:?}");
        let order = [verdicts.sc, verdicts.tso, verdicts.pso].map(|verdict| verdict == Some(Safety::Unsafe));
        assert!(order.is_sorted(), "{file} {flags:?}: PSO allows more than TSO, and TSO more than SC");
    }
}

#[test]
fn rust_programs_and_their_twins_are_in_the_table() {
    let entries = std::fs::read_dir(corpus().join("rust")).expect("the folder exists");
    let found: BTreeSet<String> =
        entries.map(|entry| format!("rust/{}", entry.unwrap().file_name().into_string().unwrap())).collect();
    let lines = rust_expectations();
    let listed: BTreeSet<String> = lines.iter().map(|line| line.file.to_owned()).collect();
    assert_eq!(found, listed);
    for file in listed {
        let text = std::fs::read_to_string(corpus().join(&file)).expect("the file can be read");
        let of_file = || lines.iter().filter(|line| line.file == file);
        let described: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("// ")?.split_once(": ")?.0))
            .filter(|name| name.starts_with("broken_"))
            .collect();
        let listed: BTreeSet<&str> = of_file().filter_map(|line| line.flags.get(1).copied()).collect();
        assert_eq!(described, listed, "{file}");
        assert!(!described.is_empty(), "{file} has no broken twin");
        for line in of_file() {
            assert_eq!(is_unsafe(line), !line.flags.is_empty(), "{file} {:?}", line.flags);
        }
    }
}
