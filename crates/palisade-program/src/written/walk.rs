//! Looking through all expressions of a block.

use super::{Block, Expr, ExprKind, Place, PlaceKind, StmtKind};

/// The first answer that `find` has for an expression of the block, in the order of the text. An expression comes before its
/// parts. The parsers limit how deep blocks and expressions nest.
pub fn find_in_block<'p, T>(block: &'p Block, find: &mut dyn FnMut(&'p Expr) -> Option<T>) -> Option<T> {
    block.iter().find_map(|stmt| {
        let here = match &stmt.kind {
            StmtKind::Let { init: e, .. } | StmtKind::Return(e) => {
                e.as_ref().and_then(|e| find_in_expr(e, find))
            }
            StmtKind::Assign { place, value } => {
                find_in_place(place, find).or_else(|| find_in_expr(value, find))
            }
            StmtKind::Eval(e)
            | StmtKind::Assume(e)
            | StmtKind::Await(e)
            | StmtKind::Assert(e, _)
            | StmtKind::If { condition: e, .. }
            | StmtKind::While { condition: e, .. } => find_in_expr(e, find),
            StmtKind::Spawn { args, .. } => args.iter().find_map(|arg| find_in_expr(arg, find)),
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
        here.or_else(|| stmt.kind.blocks().into_iter().find_map(|inner| find_in_block(inner, find)))
    })
}

/// The same for one expression and its parts.
pub fn find_in_expr<'p, T>(e: &'p Expr, find: &mut dyn FnMut(&'p Expr) -> Option<T>) -> Option<T> {
    find(e).or_else(|| match &e.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Any { .. } | ExprKind::Observe(_) => None,
        ExprKind::Read(place) | ExprKind::AddressOf(place) => find_in_place(place, find),
        ExprKind::Unary(_, a) => find_in_expr(a, find),
        ExprKind::Binary(_, a, b) => find_in_expr(a, find).or_else(|| find_in_expr(b, find)),
        ExprKind::Call(_, args) => args.iter().find_map(|arg| find_in_expr(arg, find)),
        ExprKind::Locked(_, place, operands) => find_in_place(place, find)
            .or_else(|| operands.iter().find_map(|operand| find_in_expr(operand, find))),
    })
}

fn find_in_place<'p, T>(place: &'p Place, find: &mut dyn FnMut(&'p Expr) -> Option<T>) -> Option<T> {
    match &place.kind {
        PlaceKind::Named(_) => None,
        PlaceKind::Element(_, e) | PlaceKind::Deref(e) => find_in_expr(e, find),
    }
}
