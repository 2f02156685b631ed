//! Tables of expected verdicts.
//!
//! - Columns are separated by tabs.
//! - Without a heading there are two columns: file and verdict.
//! - A heading names the columns: `file`, and `sc`, `tso`, `pso` for the models (or `verdict` for the model
//!   in question). Other columns are ignored.
//! - Verdicts are `safe`, `unsafe` and `unknown`. The words of litmus tests are also accepted: `unreachable`
//!   (safe) and `reachable` (unsafe).
//! - An empty cell, `-` or `?` means that nothing is expected.
//! - Lines that begin with `#` are comments.

use palisade::report::FileVerdict;
use palisade::{Diagnostic, Model, Source, Span};
use std::collections::BTreeMap;

/// Expected verdicts by file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expectations {
    verdicts: BTreeMap<String, FileVerdict>,
}

impl Expectations {
    /// Reads a table, using the column of a model.
    pub fn parse(source: &Source, model: Model) -> Result<Expectations, Vec<Diagnostic>> {
        let mut columns = Columns { file: 0, verdict: 1 };
        let mut expectations = Expectations::default();
        let mut problems = Vec::new();
        let mut start = 0;
        let mut first = true;
        for line in source.text().split_inclusive('\n') {
            let span = Span::new(start..start + line.trim_end().len());
            start += line.len();
            let line = line.trim_end_matches(['\n', '\r']);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            if std::mem::take(&mut first) && cells.contains(&"file") {
                match Columns::of(&cells, model) {
                    Some(found) => columns = found,
                    None => return Err(vec![no_column(span, model)]),
                }
                continue;
            }
            let file = cells.get(columns.file).copied().filter(|file| !file.is_empty());
            let word = cells.get(columns.verdict).copied();
            match (file, word.map(expected)) {
                (Some(file), Some(Ok(Some(verdict)))) => {
                    expectations.verdicts.insert(file.trim_start_matches("./").to_owned(), verdict);
                }
                (Some(_), Some(Ok(None))) => {}
                (None, _) => problems
                    .push(Diagnostic::error("bad-expectation", "this line names no file").at(span, "")),
                (_, None | Some(Err(()))) => {
                    let message = match word {
                        Some(word) => format!("`{word}` is not a verdict"),
                        None => "this line has no verdict".to_owned(),
                    };
                    problems.push(
                        Diagnostic::error("bad-expectation", message)
                            .at(span, "")
                            .help("verdicts are safe, unsafe, unknown, reachable, unreachable; columns are separated by tabs"),
                    );
                }
            }
        }
        if problems.is_empty() { Ok(expectations) } else { Err(problems) }
    }

    /// The expected verdict of a file.
    pub fn of(&self, file: &str) -> Option<FileVerdict> {
        self.verdicts.get(file).copied()
    }

    /// All files with their expected verdicts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, FileVerdict)> {
        self.verdicts.iter().map(|(file, verdict)| (file.as_str(), *verdict))
    }
}

/// The columns that matter.
struct Columns {
    file: usize,
    verdict: usize,
}

impl Columns {
    fn of(heading: &[&str], model: Model) -> Option<Columns> {
        let column = |name: &str| heading.iter().position(|cell| cell.eq_ignore_ascii_case(name));
        Some(Columns { file: column("file")?, verdict: column(model.name()).or_else(|| column("verdict"))? })
    }
}

fn no_column(span: Span, model: Model) -> Diagnostic {
    let message = format!("the table has no verdicts for {}", model.name().to_uppercase());
    Diagnostic::error("bad-expectation", message)
        .at(span, format!("no column `{}` or `verdict`", model.name()))
}

fn expected(text: &str) -> Result<Option<FileVerdict>, ()> {
    match text {
        "safe" | "unreachable" => Ok(Some(FileVerdict::Safe)),
        "unsafe" | "reachable" => Ok(Some(FileVerdict::Unsafe)),
        "unknown" => Ok(Some(FileVerdict::Unknown)),
        "" | "-" | "?" => Ok(None),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, model: Model, expected: Result<&[(&str, FileVerdict)], &str>) {
        let found = Expectations::parse(&Source::new("t.tsv", text), model);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.iter().collect::<Vec<_>>(), expected),
            (Err(found), Err(part)) => {
                assert!(found.iter().any(|problem| problem.message.contains(part)), "{found:?}");
            }
            (found, _) => panic!("{text:?}: {found:?}"),
        }
    }

    #[test]
    fn tables() {
        check("", Model::Sc, Ok(&[]));
        check(
            "# c\nb.pal\tsafe\r\n\n./a.pal\tunsafe\n",
            Model::Sc,
            Ok(&[("a.pal", FileVerdict::Unsafe), ("b.pal", FileVerdict::Safe)]),
        );
        let table = "file\tcondition\tsc\ttso\na\texists\tunreachable\treachable\nb\texists\tunknown\t-\n";
        check(table, Model::Sc, Ok(&[("a", FileVerdict::Safe), ("b", FileVerdict::Unknown)]));
        check(table, Model::Tso, Ok(&[("a", FileVerdict::Unsafe)]));
        check(table, Model::Pso, Err("no verdicts for PSO"));
        check("verdict\tfile\nsafe\tx\n", Model::Pso, Ok(&[("x", FileVerdict::Safe)]));
        check("a\tmaybe\n", Model::Sc, Err("`maybe` is not a verdict"));
        check("a safe\n", Model::Sc, Err("no verdict"));
        check("\tsafe\n", Model::Sc, Err("no file"));
    }
}
