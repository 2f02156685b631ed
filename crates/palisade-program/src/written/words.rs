//! Whether a program relies on the memory of a machine: variables at chosen addresses, and operators on words.

use super::walk::{find_in_block, find_in_expr};
use super::{BinaryOp, Expr, ExprKind, Program};
use palisade_base::Span;

impl Program {
    /// The first variable, if there is one, that has a chosen address.
    pub fn chosen_address(&self) -> Option<Span> {
        self.shared.iter().find(|shared| shared.at.is_some()).map(|shared| shared.origin.0)
    }

    /// The first operator on words, if there is one.
    pub fn word_operator(&self) -> Option<Span> {
        let mut in_block = |block| find_in_block(block, &mut word_operator);
        let procedures = self.procedures.iter().map(|procedure| &procedure.body);
        let templates = self.templates.iter().map(|template| &template.body);
        let property = || {
            let conditions = self.properties.iter().map(|property| &property.condition);
            let goals = self.progress.iter().filter_map(|progress| progress.kind.condition());
            conditions.chain(goals).find_map(|e| find_in_expr(e, &mut word_operator))
        };
        procedures.chain(templates).find_map(&mut in_block).or_else(property)
    }
}

/// The operator of an expression, if it is one on words.
fn word_operator(e: &Expr) -> Option<Span> {
    matches!(&e.kind, ExprKind::Binary(op, ..) if BinaryOp::WORD.contains(op)).then(|| e.span())
}
