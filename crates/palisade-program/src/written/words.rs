//! Whether a program relies on machine words: variables at chosen addresses, and values that wrap around.

use super::{BinaryOp, Block, Expr, ExprKind, Outside, Place, PlaceKind, Program, StmtKind, Type};
use palisade_base::Span;

impl Program {
    /// The first place, if there is one, that places a variable, lets values wrap around, or has an operator on
    /// words.
    pub fn relies_on_words(&self) -> Option<Span> {
        let wraps = |ty: &Type| ty.outside == Outside::Wrap;
        let shared = self.shared.iter().find(|shared| shared.at.is_some() || wraps(&shared.ty));
        let private = || self.privates.iter().find(|private| wraps(&private.ty)).map(|p| p.origin.0);
        let procedure = || {
            self.procedures.iter().find_map(|procedure| {
                let heading = procedure.params.iter().map(|param| &param.ty).chain(&procedure.result);
                heading.clone().any(wraps).then_some(procedure.origin.0).or_else(|| in_block(&procedure.body))
            })
        };
        let template = || {
            self.templates.iter().find_map(|template| {
                let heading = template.params.iter().any(|param| wraps(&param.ty));
                heading.then_some(template.origin.0).or_else(|| in_block(&template.body))
            })
        };
        let property = || {
            let conditions = self.properties.iter().map(|property| &property.condition);
            let goals = self.progress.iter().filter_map(|progress| progress.kind.condition());
            conditions.chain(goals).find_map(in_expr)
        };
        let first = shared.map(|shared| shared.origin.0).or_else(private);
        first.or_else(procedure).or_else(template).or_else(property)
    }
}

/// The first such place of a block. The parsers limit how deep blocks and expressions nest.
fn in_block(block: &Block) -> Option<Span> {
    block.iter().find_map(|stmt| {
        let here = match &stmt.kind {
            StmtKind::Let { ty, .. } if ty.outside == Outside::Wrap => Some(stmt.span()),
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
