//! The Rust programs of the corpus: every answer is known, and as the table says.

use super::c_corpus::{Tally, compare};
use palisade_corpus::{Question, rust_expectations};

/// The lines of the table that belong to one of two tests.
fn check(part: usize) {
    let mut tally = Tally::default();
    for (index, expected) in rust_expectations().iter().enumerate() {
        if index % 2 == part {
            let options: &[&str] = match expected.question {
                Question::Safety => &["--no-deadlock"],
                Question::Progress => &[],
            };
            compare(expected, options, &mut tally);
        }
    }
    println!("{} as expected, {} unknown", tally.known, tally.unknown);
    assert_eq!(tally.unknown, 0);
}

#[test]
fn verdicts_of_the_first_half() {
    check(0);
}

#[test]
fn verdicts_of_the_second_half() {
    check(1);
}
