//! What is wrong with a program, as data: the page shows it next to the text.

use palisade::{Diagnostic, Severity, Source};
use serde_json::{Value, json};

/// At most this many are sent. Nobody reads more at once.
const MAX: usize = 20;

/// Errors and warnings with their places: the line and the column of the first character, counted from 1, the number of
/// characters, and the line itself. What is wrong elsewhere has no place.
pub(crate) fn problems(source: &Source, diagnostics: &[Diagnostic]) -> Vec<Value> {
    diagnostics.iter().take(MAX).map(|diagnostic| problem(source, diagnostic)).collect()
}

fn problem(source: &Source, diagnostic: &Diagnostic) -> Value {
    let span = diagnostic.span();
    let mut found = json!({
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "message": diagnostic.message,
        "help": diagnostic.help,
        "id": diagnostic.id,
    });
    if let (Some(position), None) = (source.position(span), source.other_file(span)) {
        let line = source.line(position.line);
        let left = line.chars().count().saturating_sub(position.column as usize - 1);
        found["line"] = position.line.into();
        found["column"] = position.column.into();
        found["length"] = source.slice(span).chars().count().clamp(1, left.max(1)).into();
        found["text"] = line.into();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::Span;

    #[test]
    fn places_are_counted_in_characters() {
        let source = Source::new("a.pal", "ä = ;\nx = 1\n");
        let diagnostic = Diagnostic::error("no-such-file", "wrong").at(Span::new(5..12), "").help("do this");
        let found = problem(&source, &diagnostic);
        assert_eq!((&found["line"], &found["column"]), (&json!(1), &json!(5)));
        assert_eq!(found["length"], 1, "a mark ends with its line: {found}");
        assert_eq!((&found["text"], &found["help"]), (&json!("ä = ;"), &json!("do this")));
        assert!(problem(&source, &Diagnostic::warning("no-such-file", "odd")).get("line").is_none());
    }
}
