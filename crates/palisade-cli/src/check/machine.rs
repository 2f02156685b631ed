//! What other programs read besides standard output: JUnit's XML for continuous integration, SARIF for code scanning.

use super::one::{Answered, Checked, failure, panicked};
use crate::args::CheckArgs;
use crate::files;
use crate::output::Output;
use palisade::report::{self, Problem, Scanned, TestCase, TestResult};
use palisade::{Diagnostic, Model, Source, Verdict};
use std::path::Path;

/// How one file went, as other programs want to know it.
pub(super) struct Remark {
    verdict: &'static str,
    message: String,
    /// The run as a table.
    story: String,
    place: Option<(u32, u32)>,
    run: Vec<(Option<(u32, u32)>, String)>,
}

/// What the files are about: a file, what it is called in tables, how long it took, how it went.
pub(super) struct Entry<'a> {
    pub(super) file: &'a str,
    pub(super) seconds: f64,
    pub(super) remark: &'a Remark,
    /// What was expected of it, if anything.
    pub(super) expected: Option<&'a str>,
}

impl Remark {
    /// How a file went; `None` if nobody wants to know, or it is no program and was not meant to be one.
    pub(super) fn wanted(checked: &Checked, args: &CheckArgs, output: &Output) -> Option<Remark> {
        if args.junit.is_none() && args.sarif.is_none() {
            return None;
        }
        match checked {
            Checked::Answered(answered) => Some(Remark::answered(answered, output)),
            Checked::Refused(refused) => Some(Remark::refused(&refused.source, &refused.diagnostics)),
            Checked::Skipped => None,
            Checked::Failed(name, error) => {
                Some(Remark::refused(&Source::new(name.as_str(), ""), &[failure(error)]))
            }
            Checked::Panicked(name) => Some(Remark::refused(&Source::new(name.as_str(), ""), &[panicked()])),
        }
    }

    fn answered(answered: &Answered, output: &Output) -> Remark {
        let verdict = answered.answer.outcome.verdict.word();
        let message = match &answered.answer.outcome.verdict {
            Verdict::Unknown(reason) => reason.to_string(),
            _ => answered.violation().unwrap_or_default(),
        };
        let at = |line: Option<u32>, column: Option<u32>| Some((line?, column.unwrap_or(1)));
        let Some(witness) = answered.witness() else {
            return Remark { verdict, message, story: String::new(), place: None, run: Vec::new() };
        };
        let steps = witness.steps.iter().map(|step| {
            let text = format!("{}: {} ({})", step.process, step.text, step.effect);
            (at(step.line, step.column), text)
        });
        let last = witness.steps.iter().rev().find_map(|step| at(step.line, step.column));
        Remark {
            verdict,
            message,
            story: answered.story(output),
            place: at(witness.violation.line, None).or(last),
            run: steps.collect(),
        }
    }

    fn refused(source: &Source, diagnostics: &[Diagnostic]) -> Remark {
        let error = diagnostics.iter().find(|diagnostic| diagnostic.is_error()).or(diagnostics.first());
        let position = error.and_then(|error| source.position(error.span()));
        Remark {
            verdict: "error",
            message: error.map_or_else(String::new, |error| error.message.clone()),
            story: String::new(),
            place: position.map(|position| (position.line, position.column)),
            run: Vec::new(),
        }
    }

    /// As a test: with an expectation it passes if that is met, without one if the program is safe.
    fn result(&self, expected: Option<&str>) -> TestResult {
        match (self.verdict, expected) {
            ("error", None) => TestResult::Error(self.message.clone()),
            (verdict, Some(expected)) if verdict == expected => TestResult::Passed,
            (verdict, Some(expected)) => {
                let message = format!("expected {expected}, got {verdict}: {}", self.message);
                TestResult::Failed(message, self.story.clone())
            }
            ("safe", None) => TestResult::Passed,
            ("unknown", None) => TestResult::Skipped(self.message.clone()),
            (_, None) => TestResult::Failed(self.message.clone(), self.story.clone()),
        }
    }

    fn scanned(&self, file: &str) -> Option<Scanned> {
        let problem = match self.verdict {
            "safe" => return None,
            "unsafe" => Problem::Unsafe,
            "unknown" => Problem::Unknown,
            _ => Problem::Refused,
        };
        Some(Scanned {
            file: file.to_owned(),
            problem,
            message: self.message.clone(),
            place: self.place,
            run: self.run.clone(),
        })
    }
}

/// Writes the files that are wanted. False if one cannot be written.
pub(super) fn write(args: &CheckArgs, entries: &[Entry<'_>], seconds: f64, output: &Output) -> bool {
    let keep = |path: &Path, text: String| match files::write(path, &text) {
        Ok(()) => true,
        Err(error) => {
            output.complain_about(&path.display().to_string(), error);
            false
        }
    };
    let junit = args.junit.as_deref().is_none_or(|path| keep(path, junit(entries, args.model, seconds)));
    let sarif = args.sarif.as_deref().is_none_or(|path| {
        let scanned: Vec<Scanned> =
            entries.iter().filter_map(|entry| entry.remark.scanned(entry.file)).collect();
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
