//! Whether a program relies on the memory of a machine: variables at chosen addresses, and operators on words.

use super::{BinaryOp, Block, Expr, ExprKind, Place, PlaceKind, Program, StmtKind};
use palisade_base::Span;

impl Program {
    /// The first variable, if there is one, that has a chosen address.
    pub fn chosen_address(&self) -> Option<Span> {
        self.shared.iter().find(|shared| shared.at.is_some()).map(|shared| shared.origin.0)
    }

    /// The first operator on words, if there is one.
    pub fn word_operator(&self) -> Option<Span> {
        let procedure = || self.procedures.iter().find_map(|procedure| in_block(&procedure.body));
        let template = || self.templates.iter().find_map(|template| in_block(&template.body));
        let property = || {
            let conditions = self.properties.iter().map(|property| &property.condition);
            let goals = self.progress.iter().filter_map(|progress| progress.kind.condition());
            conditions.chain(goals).find_map(in_expr)
        };
        procedure().or_else(template).or_else(property)
    }
}

/// The first operator on words of a block. The parsers limit how deep blocks and expressions nest.
fn in_block(block: &Block) -> Option<Span> {
    block.iter().find_map(|stmt| {
        let here = match &stmt.kind {
            StmtKind::Let { init, .. } => init.as_ref().and_then(in_expr),
            StmtKind::Assign { place, value } => in_place(place).or_else(|| in_expr(value)),
            StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                in_expr(e)
            }
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => in_expr(condition),
            StmtKind::Return(value) => value.as_ref().and_then(in_expr),
            StmtKind::Spawn { args, .. } => args.iter().find_map(in_expr),
            StmtKind::Skip
            | StmtKind::Fence
            | StmtKind::StoreFence
            | StmtKind::Loop(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Goto(_)
            | StmtKind::Choose(_)
            | StmtKind::Atomic(_)
            | StmtKind::Block(_) => None,
        };
        here.or_else(|| stmt.kind.blocks().into_iter().find_map(in_block))
    })
}

/// The first operator on words of an expression.
fn in_expr(e: &Expr) -> Option<Span> {
    match &e.kind {
        ExprKind::Binary(op, ..) if BinaryOp::WORD.contains(op) => Some(e.span()),
        ExprKind::Binary(_, a, b) => in_expr(a).or_else(|| in_expr(b)),
        ExprKind::Unary(_, a) => in_expr(a),
        ExprKind::Read(place) | ExprKind::AddressOf(place) => in_place(place),
        ExprKind::Locked(_, place, operands) => in_place(place).or_else(|| operands.iter().find_map(in_expr)),
        ExprKind::Call(_, args) => args.iter().find_map(in_expr),
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => None,
    }
}

fn in_place(place: &Place) -> Option<Span> {
    match &place.kind {
        PlaceKind::Named(_) => None,
        PlaceKind::Element(_, e) | PlaceKind::Deref(e) => in_expr(e),
    }
}
