//! Answers: the library answers within limits, and the result becomes HTML as in a report.
//!
//! The text of the program is not part of an answer: the page shows it in its editor.

use crate::compare::{compare, outcomes};
use crate::problems::problems;
use crate::question::{Command, Question};
use palisade::report::Finding;
use palisade::report::html::{self, ProgramText, Subject};
use palisade::{
    Answer, Ask, CheckOptions, CoverageWanted, Diagnostic, Input, InputLanguage, Limits, Refused, Source,
};
use serde_json::{Value, json};

/// Reads a C program.
pub type ReadC = dyn Fn(Source, Globals) -> Result<Input, Refused> + Send + Sync;

/// Which global variables of a C program are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Globals {
    /// Those that matter for what can go wrong.
    AsNeeded,
    /// All, because their values at the end are listed.
    Kept,
}

/// The answer to a question, ready to be sent.
pub(crate) fn answer(question: &Question, limits: &Limits, read_c: Option<&ReadC>) -> Value {
    // What was found in time is still turned into an answer.
    match limits.clone().with_grace().within(|| find_answer(question, limits, read_c)) {
        Ok(Ok(value)) => value,
        Ok(Err(message)) => json!({ "event": "error", "message": message }),
        Err(what) => gave_up(question, &what.to_string()),
    }
}

/// The answer to a question on which work was stopped, with the reason.
pub(crate) fn gave_up(question: &Question, why: &str) -> Value {
    let source = question.source();
    let language = question.language().map_or("", InputLanguage::name);
    let entry = html::unknown(Subject { source: &source, language, text: ProgramText::Elsewhere }, why);
    json!({ "event": "done", "word": entry.word, "html": entry.fragment() })
}

/// The program of a question.
fn read(
    question: &Question,
    limits: &Limits,
    read_c: Option<&ReadC>,
) -> Result<Result<Input, Refused>, String> {
    let globals = if question.command == Command::Outcomes { Globals::Kept } else { Globals::AsNeeded };
    match (question.language()?, read_c) {
        (InputLanguage::Text(language), _) => {
            let read = palisade::read(question.source_with_constants()?, language, None);
            Ok(match question.has_any_number_of_several() {
                true => read.and_then(Input::with_any_number_of_several),
                false => read,
            })
        }
        (_, Some(read_c)) => {
            limits.within(|| read_c(question.source(), globals)).map_err(|what| what.to_string())
        }
        (_, None) => Err("this server does not read C programs".to_owned()),
    }
}

fn find_answer(question: &Question, limits: &Limits, read_c: Option<&ReadC>) -> Result<Value, String> {
    let mut input = match read(question, limits, read_c)? {
        Ok(input) => input,
        Err(refused) => {
            let language = question.language()?.name();
            let subject = Subject { source: &refused.source, language, text: ProgramText::Elsewhere };
            let entry = html::refused(subject, &refused.diagnostics);
            let problems = problems(&refused.source, &refused.diagnostics);
            return Ok(
                json!({ "event": "done", "word": entry.word, "why": entry.why, "problems": problems }),
            );
        }
    };
    let mut warnings = input.warnings.clone();
    let mut texts = Vec::new();
    let entry = match question.command {
        Command::Check => check(question, &mut input, limits, &mut warnings)?,
        Command::Robust => robust(question, &mut input, limits)?,
        Command::Fences => {
            let (entry, written) = crate::fences::fences(question, &mut input, limits, read_c)?;
            texts = written;
            entry
        }
        Command::Compare => compare(question, &input, limits)?,
        Command::Outcomes => outcomes(question, input.clone(), limits)?,
        Command::Step => return crate::steps::steps(question, &input),
        Command::Read => {
            let problems = problems(&input.source, &warnings);
            return Ok(json!({ "event": "done", "word": "read", "problems": problems }));
        }
    };
    Ok(json!({
        "event": "done",
        "word": entry.word,
        "html": entry.fragment(),
        "problems": problems(&input.source, &warnings),
        "texts": texts,
    }))
}

/// A program whose text is in the page's editor.
pub(crate) fn subject(input: &Input) -> Subject<'_> {
    Subject { source: &input.source, language: input.language.name(), text: ProgramText::Elsewhere }
}

/// The answer to `check`. Adds warnings about what no run reaches.
fn check(
    question: &Question,
    input: &mut Input,
    limits: &Limits,
    warnings: &mut Vec<Diagnostic>,
) -> Result<html::Entry, String> {
    let options = CheckOptions { coverage: CoverageWanted::IfCheap, ..question.check()? };
    let answer = palisade::c::check_input(input, &options, limits).map_err(|error| error.to_string())?;
    *warnings = input.warnings.clone();
    warnings.extend(answer.vacuity(input));
    let terms = input.terms(answer.threads);
    Ok(html::answer(subject(input), &finding(&answer, input, terms.as_deref()), &[], 0))
}

fn robust(question: &Question, input: &mut Input, limits: &Limits) -> Result<html::Entry, String> {
    let options = question.robust()?;
    crate::settled(input, options.model, options.threads, limits)?;
    let answer = palisade::robust(&input.program, &options, limits).map_err(|error| error.to_string())?;
    let terms = input.terms(answer.threads);
    Ok(html::answer(subject(input), &finding(&answer, input, terms.as_deref()), &[], 0))
}

/// The answer without details that differ between machines, and without warnings, which are shown for all
/// commands.
fn finding<'a, Q: Ask>(answer: &'a Answer<Q>, input: &'a Input, terms: Option<&'a str>) -> Finding<'a, Q> {
    Finding { peak_memory_bytes: None, warnings: &[], ..answer.finding(input, terms, None) }
}
