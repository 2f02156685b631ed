//! Diagnostics as values: what is wrong, where, and how to mend it. Rendering is `palisade-report`'s work.

use crate::Span;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The program is taken, but something about it is suspicious.
    Warning,
    /// The program is refused.
    Error,
}

/// A place in the source with what there is to say about it. An empty text just points.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What.
    pub text: String,
}

/// One thing that is wrong with an input.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Diagnostic {
    /// Stable name, in kebab case, e.g. `unknown-name`. Scripts and documentation refer to it.
    pub id: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// One sentence in lower case without a full stop.
    pub message: String,
    /// The first label is the primary place; the others give context.
    pub labels: Vec<Label>,
    /// How to mend it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place yet.
    pub fn error(id: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { id, severity: Severity::Error, message: message.into(), labels: Vec::new(), help: None }
    }

    /// A warning without a place yet.
    pub fn warning(id: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(id, message) }
    }

    /// Adds a place.
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Says how to mend it.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Whether this refuses the program.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The primary place, [`Span::NONE`] if there is none.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |label| label.span)
    }
}
