//! The table below a run over many files: counts per verdict, the slowest, disagreements with what was expected.

use crate::table::{self, Align, Column};
use std::fmt::Write;

/// How one file of many went.
#[derive(Clone, PartialEq, Debug)]
pub struct FileResult {
    /// The file.
    pub file: String,
    /// Its verdict, or `error` if it was refused.
    pub verdict: &'static str,
    /// Time taken.
    pub seconds: f64,
}

/// A file whose verdict is not the one expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The file.
    pub file: String,
    /// What was expected.
    pub expected: String,
    /// What came out; `missing` if there is no such file.
    pub verdict: String,
}

/// How many of the slowest files are named.
const SLOWEST: usize = 3;
/// Files faster than this are not worth naming.
const FAST: f64 = 0.1;
/// The words in the order in which they are counted.
const WORDS: [&str; 4] = ["safe", "unsafe", "unknown", "error"];

/// The summary. `expectations` is `None` if nothing was expected, else how many expectations were compared and which
/// were not met; `left` counts the files that were not looked at.
pub fn summary(
    results: &[FileResult],
    expectations: Option<(usize, &[Disagreement])>,
    left: usize,
    seconds: f64,
) -> String {
    let mut text = String::new();
    let counts: Vec<(&str, usize)> = WORDS
        .iter()
        .map(|&word| (word, results.iter().filter(|result| result.verdict == word).count()))
        .filter(|&(word, count)| count > 0 || word != "error")
        .collect();
    let columns = [
        Column::new("verdict", Align::Left, counts.iter().map(|(word, _)| (*word).to_owned()).collect()),
        Column::new("files", Align::Right, counts.iter().map(|(_, count)| count.to_string()).collect()),
    ];
    for line in table::lines(&columns) {
        writeln!(text, "{line}").expect("writing to a string");
    }
    writeln!(text, "{} files in {seconds:.2} s", results.len()).expect("writing to a string");
    if left > 0 {
        writeln!(text, "stopped before {left} more").expect("writing to a string");
    }

    let mut slow: Vec<&FileResult> = results.iter().filter(|result| result.seconds >= FAST).collect();
    slow.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.file.cmp(&b.file)));
    if !slow.is_empty() {
        text.push_str("slowest:\n");
    }
    for result in slow.iter().take(SLOWEST) {
        writeln!(text, "  {:.2} s  {}", result.seconds, result.file).expect("writing to a string");
    }

    match expectations {
        None => {}
        Some((compared, [])) => {
            writeln!(text, "{compared} of {compared} verdicts as expected").expect("writing to a string");
        }
        Some((compared, disagreements)) => {
            writeln!(text, "{} of {compared} verdicts not as expected:", disagreements.len())
                .expect("writing to a string");
            for d in disagreements {
                writeln!(text, "  {}: expected {}, got {}", d.file, d.expected, d.verdict)
                    .expect("writing to a string");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_slowest_and_disagreements() {
        let result = |file: &str, verdict, seconds| FileResult { file: file.to_owned(), verdict, seconds };
        let results = [
            result("a", "safe", 0.0),
            result("b", "unsafe", 2.0),
            result("c", "safe", 3.0),
            result("d", "error", 0.0),
        ];
        let wrong = [Disagreement {
            file: "a".to_owned(),
            expected: "unsafe".to_owned(),
            verdict: "safe".to_owned(),
        }];
        assert_eq!(
            summary(&results, Some((3, &wrong)), 2, 5.0),
            "verdict  files
safe         2
unsafe       1
unknown      0
error        1
4 files in 5.00 s
stopped before 2 more
slowest:
  3.00 s  c
  2.00 s  b
1 of 3 verdicts not as expected:
  a: expected unsafe, got safe
"
        );
        assert!(summary(&results[..1], Some((1, &[])), 0, 0.0).ends_with("1 of 1 verdicts as expected\n"));
    }
}
