//! Constant folding of pure expressions.
//!
//! *Guarantee.* The folded expression has the same value and the same fault for all register values. In
//! particular, `1 / 0` is kept, so that it faults when it is reached.

use crate::running::{BinaryOp, CellId, Domain, Expr, UnaryOp, binary as apply_binary, unary as apply_unary};

/// The cell of an array at a constant index, or `None` if the index is not constant or out of bounds.
pub(crate) fn element(base: CellId, len: u32, index: &Expr) -> Option<CellId> {
    match index {
        Expr::Const(i) => u32::try_from(*i).ok().filter(|i| *i < len).map(|i| CellId(base.0 + i)),
        _ => None,
    }
}

/// An operator with one operand.
pub(super) fn unary(op: UnaryOp, a: Expr) -> Expr {
    match (op, &a) {
        (_, Expr::Const(value)) => match apply_unary(op, *value) {
            Ok(value) => Expr::Const(value),
            Err(_) => Expr::Unary(op, Box::new(a)),
        },
        (UnaryOp::Not, _) => negate(a),
        _ => Expr::Unary(op, Box::new(a)),
    }
}

/// An operator with two operands.
pub(super) fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    match (op, &a, &b) {
        (BinaryOp::And, Expr::Const(0), _) => Expr::Const(0),
        (BinaryOp::Or, Expr::Const(0), _) | (BinaryOp::And, Expr::Const(_), _) => truth(b),
        (BinaryOp::Or, Expr::Const(_), _) => Expr::Const(1),
        (BinaryOp::Or, _, Expr::Const(0)) => truth(a),
        (BinaryOp::And, _, Expr::Const(value)) if *value != 0 => truth(a),
        (BinaryOp::And, _, Expr::Const(_)) if !can_fault(&a) => Expr::Const(0),
        (BinaryOp::Or, _, Expr::Const(_)) if !can_fault(&a) => Expr::Const(1),
        (_, Expr::Const(left), Expr::Const(right)) => match apply_binary(op, *left, *right) {
            Ok(value) => Expr::Const(value),
            Err(_) => Expr::Binary(op, Box::new(a), Box::new(b)),
        },
        _ => Expr::Binary(op, Box::new(a), Box::new(b)),
    }
}

/// 1 if the expression is not 0, else 0.
pub(super) fn truth(e: Expr) -> Expr {
    match e {
        Expr::Const(value) => Expr::Const((value != 0).into()),
        e if is_truth(&e) => e,
        e => Expr::Binary(BinaryOp::Ne, Box::new(e), Box::new(Expr::Const(0))),
    }
}

/// 1 if the expression is 0, else 0. Inverts comparisons, so that `!(a < b)` becomes `a >= b`.
pub(super) fn negate(e: Expr) -> Expr {
    match e {
        Expr::Const(value) => Expr::Const((value == 0).into()),
        Expr::Unary(UnaryOp::Not, a) => truth(*a),
        Expr::Binary(op, a, b) => match opposite(op) {
            Some(op) => Expr::Binary(op, a, b),
            None => Expr::Unary(UnaryOp::Not, Box::new(Expr::Binary(op, a, b))),
        },
        e => Expr::Unary(UnaryOp::Not, Box::new(e)),
    }
}

/// The comparison that is true exactly when this one is false.
pub(super) fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Le => BinaryOp::Gt,
        _ => return None,
    })
}

/// Whether the form of the expression shows that its value is 0 or 1.
fn is_truth(e: &Expr) -> bool {
    match e {
        Expr::Const(value) => *value == 0 || *value == 1,
        Expr::Unary(op, _) => *op == UnaryOp::Not,
        Expr::Binary(op, _, _) => {
            use BinaryOp::{And, Or, WordLe, WordLt};
            opposite(*op).is_some() || matches!(op, And | Or | WordLt | WordLe)
        }
        Expr::Reg(_) => false,
    }
}

/// Whether the evaluation can fault for some register values.
pub(super) fn can_fault(e: &Expr) -> bool {
    match e {
        Expr::Const(_) | Expr::Reg(_) => false,
        Expr::Unary(UnaryOp::Neg, _) => true,
        Expr::Unary(_, a) => can_fault(a),
        Expr::Binary(op, a, b) => {
            let total = matches!(
                op,
                BinaryOp::BitAnd
                    | BinaryOp::BitOr
                    | BinaryOp::BitXor
                    | BinaryOp::WordAdd
                    | BinaryOp::WordSub
                    | BinaryOp::WordMul
            );
            let safe = is_truth(e) || total;
            !safe || can_fault(a) || can_fault(b)
        }
    }
}

/// The smallest domain that contains both.
pub(super) fn hull(a: Domain, b: Domain) -> Domain {
    match (a.bounds(), b.bounds()) {
        _ if a == b => a,
        (Some((a_lo, a_hi)), Some((b_lo, b_hi))) => Domain::Range { lo: a_lo.min(b_lo), hi: a_hi.max(b_hi) },
        _ => Domain::Int,
    }
}
