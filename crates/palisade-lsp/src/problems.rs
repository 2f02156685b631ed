//! Diagnostics of the library as diagnostics of the protocol.

use crate::position::Lines;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position, Range,
    Uri,
};
use palisade::{InputLanguage, Severity};

/// What is wrong with a text, all of it. C is left to its compiler until it is asked about.
pub(crate) fn problems(
    uri: &Uri,
    language: Option<InputLanguage>,
    source: palisade::Source,
    lines: &Lines,
) -> Vec<Diagnostic> {
    let Some(language) = language.and_then(InputLanguage::text) else { return Vec::new() };
    let text = source.text().to_owned();
    let found = match palisade::read(source, language, None) {
        Ok(input) => input.warnings,
        Err(refused) => refused.diagnostics,
    };
    found.iter().map(|diagnostic| problem(uri, &text, lines, diagnostic)).collect()
}

/// One diagnostic. Its help is part of the message.
pub(crate) fn problem(uri: &Uri, text: &str, lines: &Lines, diagnostic: &palisade::Diagnostic) -> Diagnostic {
    let mut message = diagnostic.message.clone();
    let primary = diagnostic.labels.first();
    if let Some(label) = primary.filter(|label| !label.text.is_empty()) {
        message.push_str(&format!(" ({})", label.text));
    }
    if let Some(help) = &diagnostic.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    let others = diagnostic.labels.iter().skip(1).map(|label| DiagnosticRelatedInformation {
        location: Location::new(uri.clone(), lines.range(text, label.span)),
        message: label.text.clone(),
    });
    let others: Vec<_> = others.collect();
    let severity = match diagnostic.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
    };
    Diagnostic {
        related_information: (!others.is_empty()).then_some(others),
        ..found(lines.range(text, diagnostic.span()), severity, diagnostic.id, message)
    }
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
