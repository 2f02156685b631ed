//! Tidies statements: drops jumps to what follows anyway, and labels that nothing leads to.

use palisade_program::written::{self, BinaryOp, ExprKind, Name, Place, PlaceKind, Stmt, StmtKind, UnaryOp};
use rustc_hash::FxHashSet;

/// Removes jumps to what follows anyway.
pub(crate) fn strip(block: &mut Vec<Stmt>, next: Option<&Name>) {
    let labels: Vec<Option<Name>> = block.iter().map(|stmt| stmt.labels.first().cloned()).collect();
    for index in (0..block.len()).rev() {
        let after = if index + 1 == block.len() { next } else { labels[index + 1].as_ref() };
        let stmt = &mut block[index];
        match &mut stmt.kind {
            StmtKind::If { condition, then, otherwise } => {
                strip(then, after);
                strip(otherwise, after);
                if then.is_empty() && !otherwise.is_empty() {
                    std::mem::swap(then, otherwise);
                    *condition = inverted(condition.clone());
                }
            }
            StmtKind::Choose(alternatives) => {
                alternatives.iter_mut().for_each(|alternative| strip(alternative, after));
            }
            StmtKind::Goto(to) if after == Some(to) => {
                if stmt.labels.is_empty() {
                    block.remove(index);
                } else {
                    stmt.kind = StmtKind::Skip;
                }
            }
            _ => {}
        }
    }
}

/// The opposite condition.
fn inverted(e: written::Expr) -> written::Expr {
    let span = e.span();
    let kind = match e.kind {
        ExprKind::Unary(UnaryOp::Not, a) => return *a,
        ExprKind::Binary(op, a, b) => {
            let opposite = match op {
                BinaryOp::Eq => Some(BinaryOp::Ne),
                BinaryOp::Ne => Some(BinaryOp::Eq),
                BinaryOp::Lt => Some(BinaryOp::Ge),
                BinaryOp::Ge => Some(BinaryOp::Lt),
                BinaryOp::Gt => Some(BinaryOp::Le),
                BinaryOp::Le => Some(BinaryOp::Gt),
                _ => None,
            };
            match opposite {
                Some(op) => ExprKind::Binary(op, a, b),
                None => {
                    let e = written::Expr::new(ExprKind::Binary(op, a, b), span);
                    ExprKind::Unary(UnaryOp::Not, Box::new(e))
                }
            }
        }
        kind => ExprKind::Unary(UnaryOp::Not, Box::new(written::Expr::new(kind, span))),
    };
    written::Expr::new(kind, span)
}

/// The names that statements mention.
pub(crate) fn mentioned(block: &[Stmt], found: &mut FxHashSet<Name>) {
    fn in_place(place: &Place, found: &mut FxHashSet<Name>) {
        match &place.kind {
            PlaceKind::Named(name) => _ = found.insert(name.clone()),
            PlaceKind::Element(_, e) | PlaceKind::Deref(e) => in_expr(e, found),
        }
    }
    fn in_expr(e: &written::Expr, found: &mut FxHashSet<Name>) {
        match &e.kind {
            ExprKind::Read(place) | ExprKind::AddressOf(place) => in_place(place, found),
            ExprKind::Unary(_, a) => in_expr(a, found),
            ExprKind::Binary(_, a, b) => {
                in_expr(a, found);
                in_expr(b, found);
            }
            ExprKind::Locked(_, place, operands) => {
                in_place(place, found);
                operands.iter().for_each(|operand| in_expr(operand, found));
            }
            _ => {}
        }
    }
    for stmt in block {
        match &stmt.kind {
            StmtKind::Assign { place, value } => {
                in_place(place, found);
                in_expr(value, found);
            }
            StmtKind::Eval(e) | StmtKind::Assume(e) | StmtKind::Await(e) | StmtKind::Assert(e, _) => {
                in_expr(e, found);
            }
            StmtKind::If { condition, .. } => in_expr(condition, found),
            _ => {}
        }
        stmt.kind.blocks().into_iter().for_each(|block| mentioned(block, found));
    }
}

/// The labels that jumps lead to.
pub(crate) fn targets(block: &[Stmt], found: &mut FxHashSet<Name>) {
    for stmt in block {
        if let StmtKind::Goto(to) = &stmt.kind {
            found.insert(to.clone());
        }
        stmt.kind.blocks().into_iter().for_each(|block| targets(block, found));
    }
}

/// Drops the labels that nothing leads to, and what does nothing.
pub(crate) fn drop_labels(block: &mut Vec<Stmt>, wanted: &FxHashSet<Name>) {
    for stmt in block.iter_mut() {
        stmt.labels.retain(|label| wanted.contains(label));
        stmt.kind.blocks_mut().into_iter().for_each(|block| drop_labels(block, wanted));
    }
    block.retain(|stmt| !stmt.labels.is_empty() || stmt.kind != StmtKind::Skip);
}
