//! Answers: the library answers within limits, and what it says becomes diagnostics, edits and pages.

use crate::c;
use crate::edits::{Fix, edits};
use crate::problems::{found, problem};
use crate::questions::{Asked, Question, Reply, Stop};
use crate::run::{self, Files};
use crate::values;
use lsp_types::{DiagnosticSeverity, Range, Uri};
use palisade::report::html::{self, ProgramText, Subject};
use palisade::report::{Colour, Report};
use palisade::{
    Answer, Ask, CheckOptions, CoverageWanted, FencesOptions, Input, Language, Limits, Model, RobustOptions,
    Source, Verdict, WriteError, no_property,
};

/// Answers a question.
pub(crate) fn answer(question: &Question, stop: &Stop, limits: &Limits) -> Result<Reply, String> {
    let Some(language) = question.language.text() else { return c::answer(question, stop) };
    // What was found in time is still turned into an answer.
    let found = limits.clone().with_grace().within(|| find(question, language, limits));
    found.unwrap_or_else(|what| Ok(unknown(question, &what.to_string())))
}

fn find(question: &Question, language: Language, limits: &Limits) -> Result<Reply, String> {
    let input = palisade::read(question.source.clone(), language, None)
        .map_err(|_| format!("{} has errors, which are listed among its problems", question.source.name()))?;
    match question.asked {
        Asked::Check => check(question, &input, limits),
        Asked::Robust => robust(question, &input, limits),
        Asked::Fences => fences(question, &input, limits),
        Asked::Html => page(question, &input, limits),
        Asked::Values => {
            Ok(Reply { values: Some(values::values(&input.program, limits)), ..Reply::default() })
        }
    }
}

fn check(question: &Question, input: &Input, limits: &Limits) -> Result<Reply, String> {
    let answer = checked(question, input, limits)?;
    let mut shown = shown(question, input, &answer, "unsafe", DiagnosticSeverity::ERROR);
    if answer.outcome.verdict == Verdict::Holds {
        let warnings = answer.vacuity(input).into_iter().chain(no_property(input));
        let warnings = warnings.map(|warning| problem(&question.places, &input.source, &warning));
        shown.findings.extend(warnings);
    }
    Ok(shown)
}

fn checked(question: &Question, input: &Input, limits: &Limits) -> Result<Answer, String> {
    let options =
        CheckOptions { model: question.model, coverage: CoverageWanted::IfCheap, ..CheckOptions::default() };
    palisade::check(&input.program, &options, limits).map_err(|error| error.to_string())
}

fn robust(question: &Question, input: &Input, limits: &Limits) -> Result<Reply, String> {
    let options = RobustOptions { model: question.model, ..RobustOptions::default() };
    let answer = palisade::robust(&input.program, &options, limits).map_err(|error| error.to_string())?;
    Ok(shown(question, input, &answer, "not-robust", DiagnosticSeverity::WARNING))
}

/// An answer as the editor shows it.
fn shown<Q: Ask>(
    question: &Question,
    input: &Input,
    answer: &Answer<Q>,
    id: &str,
    severity: DiagnosticSeverity,
) -> Reply {
    let finding = answer.finding(input, None, None);
    let why = finding.why().unwrap_or_default();
    let word = finding.word().to_owned();
    let findings = match answer.witness_file(input) {
        Some(witness) => {
            let files = Files {
                uri: &question.uri,
                text: input.source.main_text(),
                lines: &question.lines,
                other: &|file| question.places.file(&input.source, file),
            };
            run::diagnostics(&files, &witness, id, severity, &why)
        }
        None if matches!(answer.outcome.verdict, Verdict::Unknown(_)) => not_known(&question.uri, &why),
        None => Vec::new(),
    };
    let given = given(&input.source);
    let brief = format!("{word} under {}{given}", question.model.name().to_uppercase());
    let headline = headline(question, &finding.headline(Colour::Never), !why.is_empty(), &given);
    Reply { headline, word, brief, findings, ..Reply::default() }
}

/// A headline with the memory model, unless it is the usual one, and the constants that were given.
pub(crate) fn headline(question: &Question, headline: &str, says_why: bool, given: &str) -> String {
    let model = match question.model {
        Model::Tso => String::new(),
        model => format!(" under {}", model.name().to_uppercase()),
    };
    let more = format!("{model}{given}");
    let sign = if says_why { "," } else { ":" };
    if more.is_empty() { headline.to_owned() } else { format!("{headline}{sign}{more}") }
}

/// The constants that have other values than in the text: ` with N = 3`.
fn given(source: &Source) -> String {
    let constants = source.constants().iter().map(|(name, value)| format!("{name} = {value}"));
    let constants: Vec<String> = constants.collect();
    if constants.is_empty() { String::new() } else { format!(" with {}", constants.join(", ")) }
}

/// An answer that is not known, as a remark at the first line.
fn not_known(uri: &Uri, why: &str) -> Vec<(Uri, lsp_types::Diagnostic)> {
    vec![not_answered(uri, DiagnosticSeverity::INFORMATION, format!("unknown: {why}"))]
}

/// Why there is no answer, at the first line.
pub(crate) fn not_answered(
    uri: &Uri,
    severity: DiagnosticSeverity,
    message: String,
) -> (Uri, lsp_types::Diagnostic) {
    (uri.clone(), found(Range::default(), severity, "unknown", message))
}

/// The answer if time or memory ran out.
pub(crate) fn unknown(question: &Question, why: &str) -> Reply {
    Reply {
        word: "unknown".to_owned(),
        headline: format!("unknown  {}: {why}", question.source.name()),
        brief: "unknown".to_owned(),
        findings: not_known(&question.uri, why),
        values: Some(Err(why.to_owned())),
        ..Reply::default()
    }
}

fn fences(question: &Question, input: &Input, limits: &Limits) -> Result<Reply, String> {
    let check = CheckOptions { model: question.model, ..CheckOptions::default() };
    let options = FencesOptions { check, ..FencesOptions::default() };
    let answer = palisade::fences(input, &options, limits).map_err(|error| error.to_string())?;
    let finding = answer.finding(input, None);
    let (word, why) = (finding.word().to_owned(), finding.why().unwrap_or_default());
    let given = given(&input.source);
    let headline = headline(question, &finding.headline(Colour::Never), !why.is_empty(), &given);
    let patches = match answer.written(input, 0, limits).and_then(|_| answer.patches(input, 0)) {
        Ok(patches) => patches,
        Err(WriteError::NoSet) => Vec::new(),
        Err(error) => {
            return Err(format!("{headline}, but the fences could not be written: {}", unwritten(&error)));
        }
    };
    let changed = patches.iter().filter(|patch| patch.before != patch.after);
    let changes = changed.map(|patch| {
        let uri = question.places.uri(&input.source, &patch.name)?;
        Some((uri, edits(&patch.before, &patch.after)))
    });
    let changes: Option<Vec<_>> = changes.collect();
    let changes = changes.ok_or("the fences go into a file that has no address")?;
    let fix = (!changes.is_empty()).then(|| Fix {
        title: format!("Insert fences: {why}"),
        why: why.clone(),
        changes,
    });
    let findings = fix.as_ref().map_or_else(Vec::new, places);
    let brief = fences_in_brief(&word, &why, fix.is_some());
    Ok(Reply { word, headline, brief, findings, fix, ..Reply::default() })
}

/// What is known about fences, for the line above the program. The headline says why none can help, or why that is not
/// known.
pub(crate) fn fences_in_brief(word: &str, why: &str, is_repaired: bool) -> String {
    match word {
        // `safe with 2 fences` says by itself that the program can be repaired.
        _ if is_repaired => why.to_owned(),
        "unsafe" | "not-robust" => "none can help".to_owned(),
        "unknown" => word.to_owned(),
        _ => format!("{word} {why}").trim_end().to_owned(),
    }
}

/// Why fences were not written.
fn unwritten(error: &WriteError) -> String {
    match error {
        WriteError::SomeInstances(process) => format!("only some instances of `{process}` need one"),
        WriteError::Unknown(reason) => reason.to_string(),
        WriteError::NoRoom(problems) => {
            problems.first().map_or_else(String::new, |problem| problem.message.clone())
        }
        other => format!("{other:?}"),
    }
}

/// A remark at each place where a fence goes.
pub(crate) fn places(fix: &Fix) -> Vec<(Uri, lsp_types::Diagnostic)> {
    let mut all = Vec::new();
    for (uri, edits) in &fix.changes {
        for edit in edits {
            let message = match edit.new_text.trim() {
                "" => format!("remove this: {}", fix.why),
                text => format!("write `{text}` here: {}", fix.why),
            };
            let remark = found(edit.range, DiagnosticSeverity::HINT, "fences", message);
            all.push((uri.clone(), remark));
        }
    }
    all
}

fn page(question: &Question, input: &Input, limits: &Limits) -> Result<Reply, String> {
    let answer = checked(question, input, limits)?;
    let finding = answer.finding(input, None, None);
    let subject = Subject { source: &input.source, language: input.language.name(), text: ProgramText::Here };
    let entry = html::answer(subject, &finding, &[], 0);
    let title = format!("palisade check {}", input.source.name());
    let page = html::page(&title, &[entry], &question.maker);
    Ok(Reply { word: finding.word().to_owned(), html: Some(page), ..Reply::default() })
}
