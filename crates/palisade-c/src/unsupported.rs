//! What cannot be translated. It is collected while threads are generated, and reported where control can reach it.

use crate::flat::StepKind;
use crate::inline::Context;
use palisade_base::{Diagnostic, Span};

/// Something that cannot be translated.
pub(crate) struct Unsupported {
    what: String,
    span: Span,
    /// The function that contains it, if this is known.
    function: Option<String>,
}

impl Unsupported {
    /// The error. Without a place in the source it names the function, or else the thread.
    pub(crate) fn diagnostic(&self, thread: &str) -> Diagnostic {
        let what = &self.what;
        let error = |message| Diagnostic::error("c-unsupported", message);
        if !self.span.is_none() {
            return error(format!("not supported: {what}")).at(self.span, "");
        }
        match &self.function {
            Some(function) => error(format!("not supported: {what}, in `{function}`")),
            None => error(format!("not supported: {what}, in thread `{thread}`")),
        }
    }
}

impl Context<'_> {
    /// The step that stands for something that cannot be translated.
    pub(crate) fn unsupported(&mut self, what: impl Into<String>, span: Span) -> StepKind {
        StepKind::Unsupported(self.add_unsupported(what, span, None))
    }

    /// Adds something that cannot be translated. Its index is that of [`StepKind::Unsupported`].
    pub(crate) fn add_unsupported(
        &mut self,
        what: impl Into<String>,
        span: Span,
        function: Option<String>,
    ) -> usize {
        self.unsupported.push(Unsupported { what: what.into(), span, function });
        self.unsupported.len() - 1
    }
}
