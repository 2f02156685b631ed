//! Short constructors for generated statements and expressions, which have no source text.

use palisade_base::{Origin, Span};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Name, Param, Place, PlaceKind, Procedure, Rmw, Stmt, StmtKind, Type,
};

/// A generated name, which has no source text.
pub(super) fn name(text: &str) -> Name {
    Name::generated(text)
}

/// A number, with its sign as an operator.
pub(super) fn int(value: Value) -> Expr {
    match value.checked_neg() {
        Some(positive) if value < 0 => {
            let kind =
                ExprKind::Unary(palisade_program::written::UnaryOp::Neg, Box::new(Expr::int(positive)));
            Expr::new(kind, Span::NONE)
        }
        _ => Expr::int(value),
    }
}

/// `true` or `false`.
pub(super) fn truth(value: bool) -> Expr {
    Expr::new(ExprKind::Bool(value), Span::NONE)
}

/// A variable or register.
pub(super) fn place(text: &str) -> Place {
    Place::new(PlaceKind::Named(name(text)), Span::NONE)
}

/// `a[e]`
pub(super) fn element(array: &str, index: Expr) -> Place {
    Place::new(PlaceKind::Element(name(array), Box::new(index)), Span::NONE)
}

/// `*e`
pub(super) fn pointed(pointer: Expr) -> Place {
    Place::new(PlaceKind::Deref(Box::new(pointer)), Span::NONE)
}

/// The value that a place holds.
pub(super) fn read(place: Place) -> Expr {
    Expr::new(ExprKind::Read(place), Span::NONE)
}

/// The value of a variable or register.
pub(super) fn var(text: &str) -> Expr {
    read(place(text))
}

/// `&p`
pub(super) fn address(place: Place) -> Expr {
    Expr::new(ExprKind::AddressOf(place), Span::NONE)
}

/// An operator with two operands.
pub(super) fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::new(ExprKind::Binary(op, Box::new(a), Box::new(b)), Span::NONE)
}

/// `a == n`
pub(super) fn equals(a: Expr, value: Value) -> Expr {
    binary(BinaryOp::Eq, a, int(value))
}

/// `a > 0`
pub(super) fn positive(a: Expr) -> Expr {
    binary(BinaryOp::Gt, a, int(0))
}

/// `f(e, …)`
pub(super) fn call(procedure: &str, args: Vec<Expr>, span: Span) -> Expr {
    Expr::new(ExprKind::Call(name(procedure), args), span)
}

/// `any(bool)`
pub(super) fn coin() -> Expr {
    Expr::new(ExprKind::Any { lo: 0, hi: 1 }, Span::NONE)
}

/// A locked instruction.
pub(super) fn locked(rmw: Rmw, place: Place, operands: Vec<Expr>) -> Expr {
    Expr::new(ExprKind::Locked(rmw, place, operands), Span::NONE)
}

/// A statement.
pub(super) fn stmt(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Span::NONE)
}

/// `f();`
pub(super) fn run(procedure: &str) -> Stmt {
    stmt(StmtKind::Eval(call(procedure, Vec::new(), Span::NONE)))
}

/// `p = e;`
pub(super) fn assign(place: Place, value: Expr) -> Stmt {
    stmt(StmtKind::Assign { place, value })
}

/// `if c { … }`
pub(super) fn when(condition: Expr, then: Block) -> Stmt {
    stmt(StmtKind::If { condition, then, otherwise: Block::new() })
}

/// `return e;`
pub(super) fn give(value: Expr) -> Stmt {
    stmt(StmtKind::Return(Some(value)))
}

/// A parameter.
pub(super) fn param(text: &str, ty: Type) -> Param {
    Param { name: name(text), ty }
}

/// A procedure.
pub(super) fn procedure(text: &str, params: Vec<Param>, result: Option<Type>, body: Block) -> Procedure {
    Procedure { name: name(text), params, result, body, origin: Origin::NONE }
}
