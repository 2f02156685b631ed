//! Collects diagnostics.

use crate::debug::NodeId;
use crate::limits::MAX_ERRORS;
use palisade_base::{Diagnostic, Span};

/// The diagnostics so far. After [`MAX_ERRORS`] errors it only counts.
#[derive(Default)]
pub(super) struct Report {
    kept: Vec<(Diagnostic, Option<NodeId>)>,
    dropped: usize,
    first_dropped: Option<Span>,
}

impl Report {
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.push_from(diagnostic, None);
    }

    /// Adds a diagnostic about an instruction that comes from this place of the source program.
    pub(super) fn push_from(&mut self, diagnostic: Diagnostic, location: Option<NodeId>) {
        if self.kept.len() < MAX_ERRORS {
            self.kept.push((diagnostic, location));
        } else {
            self.dropped += 1;
            self.first_dropped.get_or_insert(diagnostic.span());
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.kept.is_empty()
    }

    /// All diagnostics in the order of the text. `describe` says what a place of the source program is
    /// called.
    pub(super) fn into_diagnostics(self, describe: impl Fn(NodeId) -> Option<String>) -> Vec<Diagnostic> {
        let place = |(mut diagnostic, location): (Diagnostic, Option<NodeId>)| {
            if let (Some(label), Some(place)) = (diagnostic.labels.first_mut(), location.and_then(&describe))
            {
                label.text = format!("compiled from {place}");
            }
            diagnostic
        };
        let mut diagnostics: Vec<Diagnostic> = self.kept.into_iter().map(place).collect();
        diagnostics.sort_by_key(Diagnostic::span);
        if let Some(span) = self.first_dropped {
            let errors = if self.dropped == 1 { "error" } else { "errors" };
            let message = format!("{} more {errors} from here on", self.dropped);
            diagnostics.push(Diagnostic::error("too-many-errors", message).at(span, ""));
        }
        diagnostics
    }
}
