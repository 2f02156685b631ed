//! The statements of a program by their place in the text.

use palisade_base::{Diagnostic, Span, limits};
use palisade_program::written::{Block, Program, StmtKind};
use rustc_hash::FxHashMap;

/// The shape of a statement, as far as placing fences depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// It contains no other statements.
    Simple,
    /// It contains other statements, and is not a choice.
    Compound,
    /// A choice: `if` or `choose`.
    Choice,
    /// A label with no statement after it. The span is that of the label.
    Label,
}

/// The shape of each statement, by its span.
pub(super) type Statements = FxHashMap<Span, Shape>;

/// The statements that appear in the text. If several have the same span, the outermost one counts.
pub(super) fn statements(program: &Program) -> Statements {
    let mut found = Statements::default();
    let procedures = program.procedures.iter().map(|procedure| &procedure.body);
    let bodies = program.templates.iter().map(|template| &template.body);
    bodies.chain(procedures).for_each(|body| collect(body, &mut found));
    found
}

/// Recursion is safe here: the parsers limit how deeply blocks nest.
fn collect(block: &Block, found: &mut Statements) {
    for statement in block {
        limits::checkpoint();
        let is_label = statement.labels.last().is_some_and(|label| label.span() == statement.span());
        let shape = match &statement.kind {
            StmtKind::If { .. } | StmtKind::Choose(_) => Shape::Choice,
            StmtKind::While { .. } | StmtKind::Loop(_) | StmtKind::Atomic(_) | StmtKind::Block(_) => {
                Shape::Compound
            }
            StmtKind::Skip if is_label => Shape::Label,
            _ => Shape::Simple,
        };
        if !statement.span().is_none() {
            found.entry(statement.span()).or_insert(shape);
        }
        statement.kind.blocks().into_iter().for_each(|body| collect(body, found));
    }
}

/// The error for a span that is not a statement.
pub(super) fn no_statement(span: Span) -> Diagnostic {
    Diagnostic::error("no-such-statement", "no fence can be inserted here: this is not a statement")
        .at(span, "")
}
