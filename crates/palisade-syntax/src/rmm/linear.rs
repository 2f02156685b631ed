//! Arithmetic expressions as sums. `.rmm` only adds and subtracts, so every expression is a sum.

use super::ast::{Expr, ExprKind, Op};
use palisade_program::Value;

/// The value of an expression without registers; `None` if it has registers or overflows.
pub(crate) fn constant(expr: &Expr<'_>) -> Option<Value> {
    match &expr.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Neg(operand) => constant(operand)?.checked_neg(),
        ExprKind::Binary(Op::Add, operands) => constant(&operands.0)?.checked_add(constant(&operands.1)?),
        ExprKind::Binary(Op::Sub, operands) => constant(&operands.0)?.checked_sub(constant(&operands.1)?),
        ExprKind::Register(_) | ExprKind::Bool(_) | ExprKind::Not(_) | ExprKind::Binary(..) => None,
    }
}

/// A constant plus and minus registers.
pub(crate) struct Linear<'a> {
    /// The constant.
    pub constant: Value,
    /// Registers with their signs (1 or -1), in the order of the text.
    pub terms: Vec<(Value, &'a str)>,
}

impl<'a> Linear<'a> {
    /// The sum that equals an expression; `None` if its constant overflows.
    pub fn of(expr: &Expr<'a>) -> Option<Linear<'a>> {
        let mut sum = Linear { constant: 0, terms: Vec::new() };
        sum.add(1, expr)?;
        Some(sum)
    }

    fn add(&mut self, sign: Value, expr: &Expr<'a>) -> Option<()> {
        match &expr.kind {
            ExprKind::Int(value) => self.constant = self.constant.checked_add(sign * value)?,
            ExprKind::Register(name) => self.terms.push((sign, name)),
            ExprKind::Neg(operand) => self.add(-sign, operand)?,
            ExprKind::Binary(op, operands) => {
                self.add(sign, &operands.0)?;
                self.add(if *op == Op::Sub { -sign } else { sign }, &operands.1)?;
            }
            ExprKind::Bool(_) | ExprKind::Not(_) => return None,
        }
        Some(())
    }

    /// The value, if there are no registers in it.
    pub fn value(&self) -> Option<Value> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The smallest and largest value for registers in their domains; `None` if there is no bound.
    pub fn bounds(&self, domain: impl Fn(&str) -> Option<(Value, Value)>) -> Option<(Value, Value)> {
        self.terms.iter().try_fold((self.constant, self.constant), |(least, greatest), (sign, name)| {
            let (lo, hi) = domain(name)?;
            let (lo, hi) = if *sign > 0 { (lo, hi) } else { (hi.checked_neg()?, lo.checked_neg()?) };
            Some((least.checked_add(lo)?, greatest.checked_add(hi)?))
        })
    }
}
