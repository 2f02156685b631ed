//! Diagnostics of one `.rmm` file. Those in a macro also show the call.

use super::token::{CallId, Here};
use crate::{Parsed, report::Report};
use palisade_base::{Diagnostic, Span};
use palisade_program::written::Program;
use std::collections::HashSet;

/// Collects diagnostics and knows the calls of macros.
#[derive(Default)]
pub(crate) struct Messages {
    report: Report,
    calls: Vec<Here>,
    /// What has been reported about the bodies of macros, which are parsed once per call.
    reported: HashSet<(&'static str, Span)>,
}

/// How many calls around a place are shown.
const SHOWN_CALLS: usize = 3;

impl Messages {
    /// Records a call of a macro.
    pub fn call(&mut self, place: Here) -> CallId {
        self.calls.push(place);
        CallId(u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX))
    }

    /// Reports a diagnostic at a place.
    pub fn at(&mut self, here: Here, text: impl Into<String>, diagnostic: Diagnostic) {
        self.at_both(here, text, None, diagnostic);
    }

    /// Reports a diagnostic at a place, with a second place that explains it.
    pub fn at_both(
        &mut self,
        here: Here,
        text: impl Into<String>,
        context: Option<(Here, &str)>,
        diagnostic: Diagnostic,
    ) {
        if here.call != CallId::NONE && !self.reported.insert((diagnostic.id, here.span)) {
            return;
        }
        let mut diagnostic = diagnostic.at(here.span, text);
        if let Some((place, text)) = context {
            diagnostic = diagnostic.at(place.span, text);
        }
        let mut call = here.call;
        for _ in 0..SHOWN_CALLS {
            let Some(place) = self.calls.get(call.0 as usize) else { break };
            diagnostic = diagnostic.at(place.span, "in this call");
            call = place.call;
        }
        self.report.push(diagnostic);
    }

    /// Whether there are errors, so that the file is rejected.
    pub fn has_errors(&self) -> bool {
        self.report.has_errors()
    }

    /// The program, if there were no errors.
    pub fn finish(self, program: Program) -> Result<Parsed, Vec<Diagnostic>> {
        let rejected = self.report.has_errors();
        let diagnostics = self.report.into_diagnostics();
        if rejected {
            Err(diagnostics)
        } else {
            Ok(Parsed { program, warnings: diagnostics, bound: Vec::new() })
        }
    }
}
