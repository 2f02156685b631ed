//! Answers: the library answers within limits, and the result becomes HTML as in a report.

use crate::question::{Command, Question};
use palisade::report::Finding;
use palisade::report::html::{self, Subject};
use palisade::{Answer, Ask, CheckOptions, CoverageWanted, Diagnostic, Input, Limits};
use serde_json::{Value, json};

/// The answer to a question, ready to be sent.
pub(crate) fn answer(question: &Question, limits: &Limits) -> Value {
    // What was found in time is still turned into an answer.
    match limits.clone().with_grace().within(|| find_answer(question, limits)) {
        Ok(Ok(value)) => value,
        Ok(Err(message)) => json!({ "event": "error", "message": message }),
        Err(what) => gave_up(question, &what.to_string()),
    }
}

/// The answer to a question on which work was stopped, with the reason.
pub(crate) fn gave_up(question: &Question, why: &str) -> Value {
    let source = question.source();
    let language = question.language().map_or("", palisade::Language::name);
    let entry = html::unknown(Subject { source: &source, language }, why);
    json!({ "event": "done", "word": entry.word, "html": entry.fragment() })
}

fn find_answer(question: &Question, limits: &Limits) -> Result<Value, String> {
    let language = question.language()?;
    let input = match palisade::read(question.source(), language, None) {
        Ok(input) => input,
        Err(refused) => {
            let subject = Subject { source: &refused.source, language: language.name() };
            let entry = html::refused(subject, &refused.diagnostics);
            let places: Vec<Value> = refused
                .diagnostics
                .iter()
                .filter_map(|diagnostic| refused.source.position(diagnostic.span()))
                .map(|position| json!([position.line, position.column]))
                .collect();
            let html = html::diagnostics(&refused.source, &refused.diagnostics);
            return Ok(json!({ "event": "done", "word": entry.word, "html": html, "errors": places }));
        }
    };
    let mut warnings = input.warnings.clone();
    let entry = match question.command {
        Command::Check => check(question, &input, limits, &mut warnings)?,
        Command::Robust => robust(question, &input, limits)?,
        Command::Fences => fences(question, &input, limits)?,
        Command::Step => return crate::steps::steps(question, &input),
    };
    let warnings = match warnings.as_slice() {
        [] => String::new(),
        warnings => html::diagnostics(&input.source, warnings),
    };
    Ok(json!({ "event": "done", "word": entry.word, "html": entry.fragment() + &warnings }))
}

fn subject(input: &Input) -> Subject<'_> {
    Subject { source: &input.source, language: input.language.name() }
}

/// The answer to `check`. Adds warnings about what no run reaches.
fn check(
    question: &Question,
    input: &Input,
    limits: &Limits,
    warnings: &mut Vec<Diagnostic>,
) -> Result<html::Entry, String> {
    let options = CheckOptions { coverage: CoverageWanted::IfCheap, ..question.check()? };
    let answer = palisade::check(&input.program, &options, limits).map_err(|error| error.to_string())?;
    warnings.extend(answer.vacuity(input));
    Ok(html::answer(subject(input), &finding(&answer, input), &[], 0))
}

fn robust(question: &Question, input: &Input, limits: &Limits) -> Result<html::Entry, String> {
    let options = question.robust()?;
    let answer = palisade::robust(&input.program, &options, limits).map_err(|error| error.to_string())?;
    Ok(html::answer(subject(input), &finding(&answer, input), &[], 0))
}

/// The answer without details that differ between machines, and without warnings, which are shown for all
/// commands.
fn finding<'a, Q: Ask>(answer: &'a Answer<Q>, input: &'a Input) -> Finding<'a, Q> {
    Finding { peak_memory_bytes: None, warnings: &[], ..answer.finding(input, None, None) }
}

fn fences(question: &Question, input: &Input, limits: &Limits) -> Result<html::Entry, String> {
    let options = question.fences()?;
    let mut answer = palisade::fences(input, &options, limits).map_err(|error| error.to_string())?;
    // The peak of this process is not meaningful for one run among many.
    answer.peak_memory_bytes = None;
    Ok(html::fences(subject(input), &answer.finding(input, None), 0))
}
