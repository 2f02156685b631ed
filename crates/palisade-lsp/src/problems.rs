//! Diagnostics of the library as diagnostics of the protocol.

use crate::documents::Document;
use crate::places::Places;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, NumberOrString, Position, Range, Uri,
};
use palisade::syntax::names::declares_process;
use palisade::{InputLanguage, Language, Severity, Source};

/// What is wrong with a program, all of it. C is left to its compiler until it is asked about.
pub(crate) fn problems(document: &Document) -> Vec<(Uri, Diagnostic)> {
    let Some(language) = document.language.and_then(InputLanguage::text) else { return Vec::new() };
    let found = match palisade::read(document.source.clone(), language, None) {
        Ok(input) => input.warnings,
        Err(refused) => refused.diagnostics,
    };
    let is_part = language == Language::Pal && !declares_process(document.source.text());
    let found = found.iter().map(|diagnostic| {
        let (uri, mut shown) = problem(&document.places, &document.source, diagnostic);
        if is_part && diagnostic.id == "no-process" {
            shown.severity = Some(DiagnosticSeverity::INFORMATION);
        }
        (uri, shown)
    });
    found.collect()
}

/// One diagnostic, in its file. Its help is part of the message.
pub(crate) fn problem(
    places: &Places,
    source: &Source,
    diagnostic: &palisade::Diagnostic,
) -> (Uri, Diagnostic) {
    let mut message = diagnostic.message.clone();
    let primary = diagnostic.labels.first();
    if let Some(label) = primary.filter(|label| !repeats(&message, &label.text)) {
        message.push_str(&format!(" ({})", label.text));
    }
    if let Some(help) = &diagnostic.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    let others = diagnostic.labels.iter().skip(1).map(|label| DiagnosticRelatedInformation {
        location: places.location(source, label.span),
        message: label.text.clone(),
    });
    let others: Vec<_> = others.collect();
    let severity = match diagnostic.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
    };
    let place = places.location(source, diagnostic.span());
    let shown = Diagnostic {
        related_information: (!others.is_empty()).then_some(others),
        ..found(place.range, severity, diagnostic.id, message)
    };
    (place.uri, shown)
}

/// Whether a note says only what the message says.
fn repeats(message: &str, note: &str) -> bool {
    let missing = note.strip_suffix(" is missing here");
    message.contains(note) || missing.is_some_and(|missing| message.contains(&format!("expected {missing}")))
}

/// A diagnostic with a stable name.
pub(crate) fn found(range: Range, severity: DiagnosticSeverity, id: &str, message: String) -> Diagnostic {
    Diagnostic {
        range: visible(range),
        severity: Some(severity),
        code: Some(NumberOrString::String(id.to_owned())),
        source: Some("palisade".to_owned()),
        message,
        ..Diagnostic::default()
    }
}

/// A range that an editor shows: not empty.
fn visible(range: Range) -> Range {
    if range.start != range.end {
        return range;
    }
    Range::new(range.start, Position::new(range.end.line, range.end.character + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_repeat_the_message() {
        assert!(repeats("expected an item, found `bogus`", "expected an item"));
        assert!(repeats("expected `;`, found the keyword `process`", "`;` is missing here"));
        assert!(repeats("expected `}`, found the end of the file", ""));
        assert!(!repeats("expected `}`, found the end of the file", "this block is not closed"));
    }
}
