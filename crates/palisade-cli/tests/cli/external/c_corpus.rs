//! The C programs of the corpus: no answer contradicts the table, and nearly all are known.

use palisade_corpus::{CExpectation, Question, Safety, Verdicts, c_expectations};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const MODELS: [&str; 3] = ["sc", "tso", "pso"];

/// How many answers were as expected, and how many were `unknown`.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) known: usize,
    pub(super) unknown: usize,
}

/// Whether an answer has these words somewhere.
fn says(record: &Value, words: &str) -> bool {
    record.to_string().contains(words)
}

/// Compares the answers about one line of the table.
pub(super) fn compare(expected: &CExpectation, options: &[&str], tally: &mut Tally) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let verdicts = [expected.verdicts.sc, expected.verdicts.tso, expected.verdicts.pso];
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.current_dir(&corpus).args(["check", expected.file, "--model", "all", "--timeout", "20"]);
    command.args(["--format", "json"]).args(options).arg("--").args(&expected.flags);
    let output = command.output().expect("the command runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let records = printed.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    let records: Vec<Value> = records.collect();
    assert_eq!(records.len(), MODELS.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for ((model, verdict), record) in MODELS.into_iter().zip(verdicts).zip(records) {
        assert_eq!(record["model"], model);
        let word = match verdict.expect("the table knows all verdicts") {
            Safety::Safe => "safe",
            Safety::Unsafe => "unsafe",
        };
        match record["verdict"].as_str() {
            Some("unknown") => tally.unknown += 1,
            // What is not known is said beside the verdict.
            Some("safe") if says(&record, "not ruled out") || says(&record, "not known") => {
                tally.unknown += 1
            }
            Some(found) if found == word => tally.known += 1,
            _ => panic!(
                "{} {:?} {options:?} {model}: {word} expected, because {}\n{record}{}",
                expected.file,
                expected.flags,
                expected.source,
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }
}

/// The lines of the table that belong to one of several tests.
fn check(part: usize, parts: usize, wanted: impl Fn(&CExpectation) -> bool, options: &[&str]) {
    let mut tally = Tally::default();
    for (index, expected) in c_expectations().iter().filter(|expected| wanted(expected)).enumerate() {
        if index % parts == part {
            compare(expected, options, &mut tally);
        }
    }
    println!("{} as expected, {} unknown", tally.known, tally.unknown);
    assert!(tally.known > 20 * tally.unknown, "{} known, {} unknown", tally.known, tally.unknown);
}

/// Whether a program is asked only whether something goes wrong. Whether it can finish is asked once it is safe, so a
/// program that is safe and can finish is asked about both at once.
fn is_safety(expected: &CExpectation) -> bool {
    let is_asked_with_its_end = |other: &CExpectation| {
        let Verdicts { sc, tso, pso } = other.verdicts;
        is_progress(other)
            && (other.file, &other.flags) == (expected.file, &expected.flags)
            && [sc, tso, pso] == [Some(Safety::Safe); 3]
    };
    expected.question == Question::Safety && !c_expectations().iter().any(is_asked_with_its_end)
}

fn is_progress(expected: &CExpectation) -> bool {
    expected.question == Question::Progress
}

#[test]
fn verdicts_of_the_first_half() {
    check(0, 2, is_safety, &["--no-deadlock"]);
}

#[test]
fn verdicts_of_the_second_half() {
    check(1, 2, is_safety, &["--no-deadlock"]);
}

#[test]
fn ends_of_the_first_half() {
    check(0, 2, is_progress, &[]);
}

#[test]
fn ends_of_the_second_half() {
    check(1, 2, is_progress, &[]);
}
