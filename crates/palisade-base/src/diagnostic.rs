//! Diagnostics as values: what is wrong, where, and how to fix it. `palisade-report` renders them.

use crate::Span;

/// How serious a diagnostic is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The program is accepted, but something about it is suspicious.
    Warning,
    /// The program is refused.
    Error,
}

/// A place in the source with a text about it. An empty text only marks the place.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What there is to say about it.
    pub text: String,
}

/// One problem with an input.
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
    /// How to fix it.
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

    /// Adds advice on how to fix the problem.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Whether the program is refused because of this.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The primary place, [`Span::NONE`] if there is none.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |label| label.span)
    }
}
