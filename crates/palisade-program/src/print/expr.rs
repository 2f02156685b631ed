//! Expressions with as few parentheses as possible.

use super::names::Quoted;
use crate::written::{BinaryOp, Expr, ExprKind, Observation, Place, PlaceKind, ProcessRef, Select, UnaryOp};
use std::fmt::{self, Display, Formatter, Write};

/// An expression on one line.
pub(super) struct Shown<'p>(pub &'p Expr);

/// An operand of a two-operand operator; `true` for the second.
pub(super) struct Operand<'p>(pub &'p Expr, pub BinaryOp, pub bool);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            ExprKind::Int(value) => write!(f, "{value}"),
            ExprKind::Bool(value) => write!(f, "{value}"),
            ExprKind::Read(place) => Placed(place).fmt(f),
            ExprKind::AddressOf(place) => write!(f, "&{}", Placed(place)),
            ExprKind::Unary(op, operand) => {
                let sign = match op {
                    UnaryOp::Neg => '-',
                    UnaryOp::Not => '!',
                    UnaryOp::BitNot => '~',
                };
                f.write_char(sign)?;
                // `--` is rejected, because it has another meaning in C.
                if *op == UnaryOp::Neg && starts_with_minus(operand) {
                    f.write_char(' ')?;
                }
                parenthesized(operand, strength(operand) < UNARY, f)
            }
            ExprKind::Binary(op, a, b) => {
                write!(f, "{} {} {}", Operand(a, *op, false), op.symbol(), Operand(b, *op, true))
            }
            ExprKind::Locked(rmw, place, operands) => {
                write!(f, "{}({}", rmw.name(), Placed(place))?;
                operands.iter().try_for_each(|operand| write!(f, ", {}", Shown(operand)))?;
                f.write_char(')')
            }
            ExprKind::Call(name, args) => write!(f, "{}({})", Quoted(name), Args(args)),
            ExprKind::Any { lo, hi } => write!(f, "any({lo}..{hi})"),
            ExprKind::Observe(Observation::At { process, label }) => {
                write!(f, "{}@{}", Instance(process), Quoted(label))
            }
            ExprKind::Observe(Observation::Count { template, label }) => {
                write!(f, "count({}@{})", Quoted(template), Quoted(label))
            }
            ExprKind::Observe(Observation::Register { process, register }) => {
                write!(f, "{}.{}", Instance(process), Quoted(register))
            }
        }
    }
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let &Operand(operand, op, second) = self;
        let own = op_strength(op);
        let least = if second || own == COMPARISON { own + 1 } else { own };
        parenthesized(operand, strength(operand) < least, f)
    }
}

/// A place, as written when it is read or assigned.
pub(super) struct Placed<'p>(pub &'p Place);

impl Display for Placed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.plain {
            let atomic = Place { plain: false, ..self.0.clone() };
            return write!(f, "plain({})", Placed(&atomic));
        }
        match &self.0.kind {
            PlaceKind::Named(name) => Quoted(name).fmt(f),
            PlaceKind::Element(name, index) => write!(f, "{}[{}]", Quoted(name), Shown(index)),
            PlaceKind::Deref(pointer) => {
                f.write_char('*')?;
                parenthesized(pointer, strength(pointer) < UNARY, f)
            }
        }
    }
}

/// Expressions separated by commas.
pub(super) struct Args<'p>(pub &'p [Expr]);

impl Display for Args<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, arg) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, Shown(arg))?;
        }
        Ok(())
    }
}

pub(super) struct Instance<'p>(pub &'p ProcessRef);

impl Display for Instance<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ProcessRef { template, select, .. } = self.0;
        let template = Quoted(template);
        match select {
            Select::Only => write!(f, "{template}"),
            Select::Index(index) => write!(f, "{template}[{index}]"),
            Select::Args(values) => {
                write!(f, "{template}(")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_char(')')
            }
        }
    }
}

/// If the expression is a chain of `&&` or of `||`: the operator and its operands, at least two.
pub(super) fn chain(expr: &Expr) -> Option<(BinaryOp, Vec<&Expr>)> {
    let ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), ..) = &expr.kind else { return None };
    let mut operands = Vec::new();
    let mut rest = expr;
    while let ExprKind::Binary(inner, a, b) = &rest.kind
        && inner == op
    {
        operands.push(&**b);
        rest = a;
    }
    operands.push(rest);
    operands.reverse();
    Some((*op, operands))
}

fn parenthesized(expr: &Expr, needed: bool, f: &mut Formatter<'_>) -> fmt::Result {
    if needed { write!(f, "({})", Shown(expr)) } else { Shown(expr).fmt(f) }
}

fn starts_with_minus(expr: &Expr) -> bool {
    match expr.kind {
        ExprKind::Unary(UnaryOp::Neg, _) => true,
        ExprKind::Int(value) => value < 0,
        _ => false,
    }
}

const COMPARISON: u8 = 2;
const UNARY: u8 = 9;
const ATOM: u8 = 10;

/// The precedence of the outermost operator of an expression.
fn strength(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Binary(op, ..) => op_strength(*op),
        ExprKind::Unary(..) | ExprKind::AddressOf(_) => UNARY,
        ExprKind::Read(Place { kind: PlaceKind::Deref(_), plain: false, .. }) => UNARY,
        ExprKind::Int(value) if *value < 0 => UNARY,
        _ => ATOM,
    }
}

fn op_strength(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 0,
        BinaryOp::And => 1,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => COMPARISON,
        BinaryOp::BitOr => 3,
        BinaryOp::BitXor => 4,
        BinaryOp::BitAnd => 5,
        BinaryOp::WordLt | BinaryOp::WordLe => COMPARISON,
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::WordShl | BinaryOp::WordShr => 6,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::WordAdd | BinaryOp::WordSub => 7,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 8,
        BinaryOp::WordMul | BinaryOp::WordDiv | BinaryOp::WordRem => 8,
    }
}
