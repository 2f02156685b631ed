//! A folder of litmus tests.
//!
//! *Aim.* Every test is answered as its `expected.tsv` says under SC and TSO, in at most a twentieth of
//! herd7's time, which is about 18 ms per test.
//!
//! *How.* All tests run in this process, one after the other on one core. Each is read from its file and
//! checked under both models. If there is a run, it is shortened and replayed. This is what `palisade check`
//! does for each file.

use crate::measure::{machine, timed};
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say};
use anyhow::{Context, Result, ensure};
use palisade::{CheckOptions, Input, Language, Limits, Model, Source};
use std::path::Path;

/// The time of herd7 per test, in seconds.
const HERD: f64 = 0.018;

/// A line of `expected.tsv`.
struct Expected {
    file: String,
    sc: SafetyVerdict,
    tso: SafetyVerdict,
}

/// A test that was read, or why it was refused.
type Read<'e> = (&'e Expected, Result<Input, &'static str>);

/// Runs the suite.
pub fn run(folder: &Path) -> Result<()> {
    let table = std::fs::read_to_string(folder.join("expected.tsv"))
        .context("the folder needs an expected.tsv with the columns file, sc and tso")?;
    let expected = read_expectations(&table)?;
    ensure!(!expected.is_empty(), "expected.tsv names no test");
    say!("{}\n{} tests\n", machine(), thousands(expected.len() as u64));
    let (read, reading) =
        timed(|| expected.iter().map(|test| read(folder, test)).collect::<Result<Vec<_>>>());
    let read = read?;
    let mut disagreements = Vec::new();
    let mut table = Table::new(&["model", "agree", "disagree", "ms per test", "of herd7's", ""]);
    for model in [Model::Sc, Model::Tso] {
        measuring(&format!("all tests under {}", model.name()))?;
        let (wrong, checking) =
            timed(|| read.iter().filter_map(|test| disagreement(test, model)).collect::<Vec<_>>());
        let per_test = (reading + checking) / expected.len() as f64;
        table.row(vec![
            model.name().to_owned(),
            thousands((expected.len() - wrong.len()) as u64),
            thousands(wrong.len() as u64),
            format!("{:.3}", per_test * 1e3),
            format!("1/{:.0}", HERD / per_test),
            judged(per_test <= HERD / 20.0 && wrong.is_empty()),
        ]);
        disagreements.extend(wrong);
    }
    table.print();
    say!(
        "the time of each model includes reading ({:.3} ms per test)",
        reading / expected.len() as f64 * 1e3
    );
    disagreements.iter().take(20).for_each(|line| say!("{line}"));
    Ok(())
}

fn read<'e>(folder: &Path, test: &'e Expected) -> Result<Read<'e>> {
    let text = std::fs::read_to_string(folder.join(&test.file));
    let text = text.with_context(|| format!("cannot read {}", test.file))?;
    let input = palisade::read(Source::new(test.file.clone(), text), Language::Litmus, None);
    let id = |refused: palisade::Refused| refused.diagnostics.first().map_or("no reason", |first| first.id);
    Ok((test, input.map_err(id)))
}

/// How the verdict differs from the expected one.
fn disagreement((test, input): &Read<'_>, model: Model) -> Option<String> {
    let expected = if model == Model::Sc { test.sc } else { test.tso };
    let found = match input {
        Err(id) => format!("refused ({id})"),
        Ok(input) => {
            let options = CheckOptions { model, ..CheckOptions::default() };
            match palisade::check(&input.program, &options, &Limits::unlimited(1)) {
                Ok(answer) if SafetyVerdict::from(&answer.outcome.verdict) == expected => return None,
                Ok(answer) => answer.outcome.word().to_owned(),
                Err(error) => error.to_string(),
            }
        }
    };
    let (model, expected) = (model.name(), expected.name());
    Some(format!("{} under {model}: {found}, expected {expected}", test.file))
}

fn read_expectations(text: &str) -> Result<Vec<Expected>> {
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let column = |name: &str| {
        let found = heading.iter().position(|&heading| heading == name);
        found.with_context(|| format!("expected.tsv has no column `{name}`"))
    };
    let (file, sc, tso) = (column("file")?, column("sc")?, column("tso")?);
    let verdict = |word: &str| {
        SafetyVerdict::parse(word).with_context(|| format!("not a verdict in expected.tsv: `{word}`"))
    };
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            ensure!(cells.len() == heading.len(), "not a line of expected.tsv: {line}");
            Ok(Expected { file: cells[file].to_owned(), sc: verdict(cells[sc])?, tso: verdict(cells[tso])? })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations() {
        let read = read_expectations("file\tcondition\tsc\ttso\na.litmus\texists\tunreachable\treachable\n");
        let read = read.expect("the table is valid");
        assert_eq!(
            (read[0].file.as_str(), read[0].sc, read[0].tso),
            ("a.litmus", SafetyVerdict::Safe, SafetyVerdict::Unsafe)
        );
        assert!(read_expectations("file\tsc\n").is_err());
        assert!(read_expectations("file\tsc\ttso\na\tsafe\tmaybe\n").is_err());
    }
}
