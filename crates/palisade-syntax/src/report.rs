//! Collects and sorts diagnostics.

use crate::limits::MAX_ERRORS;
use palisade_base::{Diagnostic, Label, Span};
use rustc_hash::FxHashSet;

/// Collects diagnostics while parsing. After [`MAX_ERRORS`] errors it only counts, so that megabytes of
/// garbage do not become gigabytes of messages.
#[derive(Default)]
pub(crate) struct Report {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    first_dropped: Option<Span>,
}

impl Report {
    /// Adds a diagnostic.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let count = if diagnostic.is_error() { &mut self.errors } else { &mut self.warnings };
        *count += 1;
        if *count <= MAX_ERRORS {
            self.kept.push(diagnostic);
        } else if diagnostic.is_error() {
            self.first_dropped.get_or_insert(diagnostic.span());
        }
    }

    /// Whether there are errors, so that the input is rejected.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether one more error would be kept. Otherwise it would only be counted, and looking for a suggestion
    /// would be wasted work.
    pub(crate) fn has_room(&self) -> bool {
        self.errors < MAX_ERRORS
    }

    /// All diagnostics, followed by the number of errors that were only counted.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        if let Some(place) = self.first_dropped {
            self.kept.push(too_many(self.errors - MAX_ERRORS, place));
        }
        self.kept
    }
}

/// A number with its noun: `1 cell`, `2 cells`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Sorts by position and keeps only the first [`MAX_ERRORS`] errors, each once: the body of a quantifier is read several
/// times. A diagnostic without a position concerns
/// the whole text and is put at its start.
pub(crate) fn arrange(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for diagnostic in &mut diagnostics {
        diagnostic.labels.retain(|label| !label.span.is_none());
        if diagnostic.labels.is_empty() {
            diagnostic.labels.push(Label { span: Span::new(0..0), text: String::new() });
        }
    }
    diagnostics.sort_by_key(|diagnostic| (diagnostic.id == TOO_MANY, diagnostic.span()));
    let mut seen = FxHashSet::default();
    diagnostics.retain(|diagnostic| seen.insert(diagnostic.clone()));
    let is_surplus = |diagnostic: &Diagnostic| diagnostic.is_error() && diagnostic.id != TOO_MANY;
    if let Some(first) =
        diagnostics.iter().enumerate().filter(|(_, d)| is_surplus(d)).nth(MAX_ERRORS).map(|(i, _)| i)
    {
        let place = diagnostics[first].span();
        let surplus = diagnostics[first..].iter().filter(|d| d.is_error()).count();
        diagnostics.truncate(first);
        diagnostics.push(too_many(surplus, place));
    }
    diagnostics
}

const TOO_MANY: &str = "too-many-errors";

fn too_many(count: usize, place: Span) -> Diagnostic {
    let errors = if count == 1 { "error" } else { "errors" };
    Diagnostic::error(TOO_MANY, format!("{count} more {errors} from here on")).at(place, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_and_surplus_errors_are_counted() {
        let error = |at: usize| Diagnostic::error("e", "wrong").at(Span::new(at..at + 1), "");
        assert_eq!(arrange(vec![error(3), error(1), error(3)]), [error(1), error(3)]);
        let arranged = arrange((0..MAX_ERRORS + 7).rev().map(error).collect());
        assert_eq!(arranged.len(), MAX_ERRORS + 1);
        assert_eq!(arranged[0].span(), Span::new(0..1));
        assert_eq!(arranged[MAX_ERRORS].message, "7 more errors from here on");
        let mut report = Report::default();
        (0..MAX_ERRORS + 1).for_each(|at| report.push(error(at)));
        assert!(report.has_errors());
        let diagnostics = report.into_diagnostics();
        assert_eq!(diagnostics.last().unwrap().message, "1 more error from here on");
        assert_eq!(arrange(diagnostics.clone()), diagnostics);
    }
}
