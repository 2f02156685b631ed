//! Output for other programs, in addition to standard output: JUnit XML for continuous integration, SARIF
//! for code scanning.

use super::one::{Answered, Checked, failure, panicked};
use crate::args::CheckArgs;
use crate::files;
use crate::output::Output;
use palisade::report::{self, Colour, FileVerdict, Problem, Scanned, ScannedPlace, TestCase, TestResult};
use palisade::{Diagnostic, Model, Source, Verdict};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The result for one file, for other programs.
#[derive(Serialize, Deserialize)]
pub(super) struct Remark {
    verdict: FileVerdict,
    message: String,
    /// The run as a table, or all errors of a file that was refused.
    story: String,
    place: Option<ScannedPlace>,
    run: Vec<(Option<ScannedPlace>, String)>,
    /// The errors after the first: where they are, and what they say.
    more_errors: Vec<(Option<ScannedPlace>, String)>,
    /// What no run reaches: where it is, and the warning.
    unreached: Vec<(Option<ScannedPlace>, String)>,
}

/// An entry of these outputs: a file, how long it took, its result, and the expectation for it.
pub(super) struct Entry<'a> {
    pub(super) file: &'a str,
    pub(super) seconds: f64,
    pub(super) remark: &'a Remark,
    pub(super) expected: Expected,
}

/// The expectation for a file.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    /// That it is safe, because there are no expectations.
    Safe,
    /// This verdict.
    Verdict(FileVerdict),
    /// Nothing: the table of expectations has no entry for it.
    Nothing,
}

impl Remark {
    /// The result for a file. `None` if no such output is requested, or if the file is not a program and was
    /// not meant to be one.
    pub(super) fn wanted(checked: &Checked, args: &CheckArgs) -> Option<Remark> {
        if args.junit.is_none() && args.sarif.is_none() {
            return None;
        }
        match checked {
            Checked::Answered(answered) => Some(Remark::answered(answered)),
            Checked::Refused(refused) => Some(Remark::refused(&refused.source, &refused.diagnostics)),
            Checked::Skipped | Checked::TookPart => None,
            Checked::RanOut(_, what) => Some(Remark {
                verdict: FileVerdict::Unknown,
                message: what.to_string(),
                story: String::new(),
                place: None,
                run: Vec::new(),
                more_errors: Vec::new(),
                unreached: Vec::new(),
            }),
            Checked::Failed(name, error) => {
                Some(Remark::refused(&Source::new(name.as_str(), ""), &[failure(error)]))
            }
            Checked::Panicked(name) => Some(Remark::refused(&Source::new(name.as_str(), ""), &[panicked()])),
        }
    }

    /// A file that was expected but does not exist.
    pub(super) fn missing() -> Remark {
        let message = "there is no such file".to_owned();
        Remark {
            verdict: FileVerdict::Missing,
            message,
            story: String::new(),
            place: None,
            run: Vec::new(),
            more_errors: Vec::new(),
            unreached: Vec::new(),
        }
    }

    fn answered(answered: &Answered) -> Remark {
        let verdict = FileVerdict::from(&answered.answer.outcome.verdict);
        let message = match &answered.answer.outcome.verdict {
            Verdict::Unknown(reason) => reason.to_string(),
            _ => answered.violation().unwrap_or_default(),
        };
        let unreached = answered.vacuity.iter().map(|warning| {
            let source = &answered.input.source;
            let place = source.position(warning.span()).map(|position| ScannedPlace {
                file: source.other_file(warning.span()).map(str::to_owned),
                line: position.line,
                column: position.column,
            });
            (place, warning.message.clone())
        });
        let unreached = unreached.collect();
        let at = |file: &Option<String>, line: Option<u32>, column: Option<u32>| {
            Some(ScannedPlace { file: file.clone(), line: line?, column: column.unwrap_or(1) })
        };
        let Some(witness) = answered.witness() else {
            return Remark {
                verdict,
                message,
                story: String::new(),
                place: None,
                run: Vec::new(),
                more_errors: Vec::new(),
                unreached,
            };
        };
        let steps = witness.steps.iter().map(|step| {
            let text = format!("{}: {} ({})", step.process, step.text, step.effect);
            (at(&step.file, step.line, step.column), text)
        });
        let last = witness.steps.iter().rev().find_map(|step| at(&step.file, step.line, step.column));
        Remark {
            verdict,
            message,
            story: answered.story(),
            place: at(&witness.violation.file, witness.violation.line, None).or(last),
            run: steps.collect(),
            more_errors: Vec::new(),
            unreached,
        }
    }

    /// A file with errors. A warning counts only if there is nothing else.
    fn refused(source: &Source, diagnostics: &[Diagnostic]) -> Remark {
        let has_errors = diagnostics.iter().any(Diagnostic::is_error);
        let errors: Vec<Diagnostic> =
            diagnostics.iter().filter(|one| one.is_error() || !has_errors).cloned().collect();
        let mut places = errors.iter().map(|error| {
            let place = source.position(error.span()).map(|position| ScannedPlace {
                file: source.other_file(error.span()).map(str::to_owned),
                line: position.line,
                column: position.column,
            });
            (place, error.message.clone())
        });
        let (place, message) = places.next().unwrap_or_default();
        Remark {
            verdict: FileVerdict::Error,
            message,
            story: report::diagnostics(source, &errors, usize::MAX, Colour::Never),
            place,
            run: Vec::new(),
            more_errors: places.collect(),
            unreached: Vec::new(),
        }
    }

    /// The result as a test. Failures correspond to exit code 1, and errors to exit code 2.
    fn result(&self, expected: Expected) -> TestResult {
        match (self.verdict, expected) {
            (FileVerdict::Error, _) => {
                let more = match self.more_errors.len() {
                    0 => String::new(),
                    1 => " (and 1 more error)".to_owned(),
                    more => format!(" (and {more} more errors)"),
                };
                TestResult::Error(self.message.clone() + &more, self.story.clone())
            }
            (_, Expected::Nothing) => TestResult::Skipped("there is no expectation for this file".to_owned()),
            (verdict, Expected::Verdict(expected)) if verdict == expected => TestResult::Passed,
            (verdict, Expected::Verdict(expected)) => {
                let message = format!("expected {}, got {}", expected.name(), verdict.name());
                let why = if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
                TestResult::Failed(message + &why, self.story.clone())
            }
            (FileVerdict::Safe, Expected::Safe) => TestResult::Passed,
            (FileVerdict::Unknown, Expected::Safe) => TestResult::Skipped(self.message.clone()),
            (_, Expected::Safe) => TestResult::Failed(self.message.clone(), self.story.clone()),
        }
    }

    fn scanned(&self, file: &str) -> Vec<Scanned> {
        let problem = match self.verdict {
            FileVerdict::Safe | FileVerdict::Missing => None,
            FileVerdict::Unsafe => Some(Problem::Unsafe),
            FileVerdict::Unknown => Some(Problem::Unknown),
            FileVerdict::Error => Some(Problem::Refused),
        };
        let verdict = problem.map(|problem| Scanned {
            file: file.to_owned(),
            problem,
            message: self.message.clone(),
            place: self.place.clone(),
            run: self.run.clone(),
        });
        let also = |problem: Problem| {
            move |(place, message): &(Option<ScannedPlace>, String)| Scanned {
                file: file.to_owned(),
                problem,
                message: message.clone(),
                place: place.clone(),
                run: Vec::new(),
            }
        };
        let errors = self.more_errors.iter().map(also(Problem::Refused));
        let unreached = self.unreached.iter().map(also(Problem::Unreached));
        verdict.into_iter().chain(errors).chain(unreached).collect()
    }
}

/// Writes the requested files. Returns false if one cannot be written.
pub(super) fn write(args: &CheckArgs, entries: &[Entry<'_>], seconds: f64, output: &Output) -> bool {
    let keep = |path: &Path, text: String| match files::write(path, &text) {
        Ok(()) => true,
        Err(error) => {
            output.complain_about(&path.display().to_string(), error);
            false
        }
    };
    let junit =
        args.junit.as_deref().is_none_or(|path| keep(path, junit(entries, super::model(args), seconds)));
    let sarif = args.sarif.as_deref().is_none_or(|path| {
        let scanned: Vec<Scanned> =
            entries.iter().flat_map(|entry| entry.remark.scanned(entry.file)).collect();
        keep(path, report::check_sarif(&scanned, env!("CARGO_PKG_VERSION")))
    });
    junit && sarif
}

fn junit(entries: &[Entry<'_>], model: Model, seconds: f64) -> String {
    let cases = entries.iter().map(|entry| TestCase {
        name: entry.file.to_owned(),
        class: format!("palisade.{}", model.name()),
        seconds: entry.seconds,
        result: entry.remark.result(entry.expected),
    });
    report::junit("palisade check", &cases.collect::<Vec<_>>(), seconds)
}
