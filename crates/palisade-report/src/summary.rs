//! The table below a run over many files: counts per verdict, the slowest files, disagreements with the
//! expectations.

use crate::table::{self, Align, Column};
use crate::visible;
use palisade_engine::Verdict;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The verdict for one of many files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum FileVerdict {
    /// No bad state is reachable.
    Safe,
    /// A bad state is reachable.
    Unsafe,
    /// Not known.
    Unknown,
    /// The file was refused.
    Error,
    /// There is no such file.
    Missing,
}

impl FileVerdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            FileVerdict::Safe => "safe",
            FileVerdict::Unsafe => "unsafe",
            FileVerdict::Unknown => "unknown",
            FileVerdict::Error => "error",
            FileVerdict::Missing => "missing",
        }
    }
}

impl From<&Verdict> for FileVerdict {
    fn from(verdict: &Verdict) -> FileVerdict {
        match verdict {
            Verdict::Holds => FileVerdict::Safe,
            Verdict::Violated(_) => FileVerdict::Unsafe,
            Verdict::Unknown(_) => FileVerdict::Unknown,
        }
    }
}

/// The result for one of many files.
#[derive(Clone, PartialEq, Debug)]
pub struct FileResult {
    /// The file.
    pub file: String,
    /// Its verdict.
    pub verdict: FileVerdict,
    /// Time taken.
    pub seconds: f64,
    /// Whether the program states no property. The verdict is then only about faults.
    pub is_without_property: bool,
}

/// A file whose verdict differs from the expected one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The file.
    pub file: String,
    /// The expected verdict.
    pub expected: FileVerdict,
    /// The actual verdict.
    pub verdict: FileVerdict,
}

/// A comparison of verdicts with expectations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// How many expectations there are.
    pub expectations: usize,
    /// The expectations that were not met.
    pub disagreements: Vec<Disagreement>,
    /// How many files had no expectation.
    pub unexpected: usize,
}

impl Compared {
    /// How many expectations were met, and how many files had none.
    pub fn in_words(&self) -> String {
        let (count, wrong) = (self.expectations, self.disagreements.len());
        let mut text = match wrong {
            0 => format!("{count} of {count} verdicts as expected"),
            _ => format!("{wrong} of {count} verdicts not as expected"),
        };
        if self.unexpected > 0 {
            text.push_str(&format!(", {} without an expectation", files(self.unexpected)));
        }
        text
    }
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// How many of the slowest files are named.
const SLOWEST: usize = 3;
/// Files faster than this are not worth naming.
const FAST: f64 = 0.1;
/// The verdicts in the order of the table.
const COUNTED: [FileVerdict; 4] =
    [FileVerdict::Safe, FileVerdict::Unsafe, FileVerdict::Unknown, FileVerdict::Error];

/// The summary. `compared` is `None` if there were no expectations. `left` counts the files that were not
/// checked.
pub fn summary(results: &[FileResult], compared: Option<&Compared>, left: usize, seconds: f64) -> String {
    let mut text = String::new();
    let counts: Vec<(FileVerdict, usize)> = COUNTED
        .iter()
        .map(|&verdict| (verdict, results.iter().filter(|result| result.verdict == verdict).count()))
        .filter(|&(verdict, count)| count > 0 || verdict != FileVerdict::Error)
        .collect();
    let columns = [
        Column::new(
            "verdict",
            Align::Left,
            counts.iter().map(|(verdict, _)| verdict.name().to_owned()).collect(),
        ),
        Column::new("files", Align::Right, counts.iter().map(|(_, count)| count.to_string()).collect()),
    ];
    for line in table::lines(&columns) {
        writeln!(text, "{line}").expect("writing to a string");
    }
    writeln!(text, "{} in {seconds:.2} s", files(results.len())).expect("writing to a string");
    if left > 0 {
        writeln!(text, "stopped before {left} more").expect("writing to a string");
    }

    let mut slow: Vec<&FileResult> = results.iter().filter(|result| result.seconds >= FAST).collect();
    slow.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.file.cmp(&b.file)));
    if !slow.is_empty() {
        text.push_str("slowest:\n");
    }
    for result in slow.iter().take(SLOWEST) {
        writeln!(text, "  {:.2} s  {}", result.seconds, visible(&result.file)).expect("writing to a string");
    }

    let without = results.iter().filter(|result| result.is_without_property).count();
    if without > 0 {
        let state = if without == 1 { "states" } else { "state" };
        writeln!(text, "{} {state} no property: only faults were looked for", files(without))
            .expect("writing to a string");
    }
    if let Some(compared) = compared {
        let colon = if compared.disagreements.is_empty() { "" } else { ":" };
        writeln!(text, "{}{colon}", compared.in_words()).expect("writing to a string");
        for d in &compared.disagreements {
            let (expected, got) = (d.expected.name(), d.verdict.name());
            writeln!(text, "  {}: expected {expected}, got {got}", visible(&d.file))
                .expect("writing to a string");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_slowest_and_disagreements() {
        let result = |file: &str, verdict, seconds| FileResult {
            file: file.to_owned(),
            verdict,
            seconds,
            is_without_property: file == "c",
        };
        let results = [
            result("a", FileVerdict::Safe, 0.0),
            result("b", FileVerdict::Unsafe, 2.0),
            result("c", FileVerdict::Safe, 3.0),
            result("d", FileVerdict::Error, 0.0),
        ];
        let wrong =
            Disagreement { file: "a".to_owned(), expected: FileVerdict::Unsafe, verdict: FileVerdict::Safe };
        let compared = Compared { expectations: 3, disagreements: vec![wrong], unexpected: 1 };
        assert_eq!(
            summary(&results, Some(&compared), 2, 5.0),
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
1 file states no property: only faults were looked for
1 of 3 verdicts not as expected, 1 file without an expectation:
  a: expected unsafe, got safe
"
        );
        let met = Compared { expectations: 1, ..Compared::default() };
        assert!(summary(&results[..1], Some(&met), 0, 0.0).ends_with("1 of 1 verdicts as expected\n"));
    }
}
