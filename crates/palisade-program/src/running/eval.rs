//! Arithmetic and its errors: the one definition for every part of Palisade.

use super::{BinaryOp, Check, UnaryOp};
use crate::Value;
use std::fmt;

/// A run-time error of the program being checked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Fault {
    /// A false `assert`.
    AssertionFailed,
    /// A false `assert` that checks something in particular.
    CheckFailed(Check),
    /// A value outside the domain of the cell, register, parameter or result that it is assigned to.
    OutOfDomain(Value),
    /// An array index out of bounds.
    OutOfBounds(Value),
    /// A pointer that is not the address of a cell.
    BadPointer(Value),
    /// `/` or `%` by zero.
    DivisionByZero,
    /// A result that does not fit into 64 bits, a shift by less than 0 or more than 63, or a left shift by
    /// 63.
    Overflow,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::AssertionFailed => write!(f, "assertion failed"),
            Fault::CheckFailed(check) => f.write_str(check.message()),
            Fault::OutOfDomain(value) => write!(f, "value {value} is outside the declared domain"),
            Fault::OutOfBounds(index) => write!(f, "array index {index} is out of bounds"),
            Fault::BadPointer(0) => write!(f, "null pointer dereferenced"),
            Fault::BadPointer(address) => write!(f, "{address} is not the address of a cell"),
            Fault::DivisionByZero => write!(f, "division by zero"),
            Fault::Overflow => write!(f, "arithmetic overflow"),
        }
    }
}

/// Applies an operator with one operand.
pub fn unary(op: UnaryOp, a: Value) -> Result<Value, Fault> {
    match op {
        UnaryOp::Neg => a.checked_neg().ok_or(Fault::Overflow),
        UnaryOp::Not => Ok((a == 0).into()),
        UnaryOp::BitNot => Ok(!a),
    }
}

/// Applies an operator with two operands (for `&&` and `||`, both already evaluated).
pub fn binary(op: BinaryOp, a: Value, b: Value) -> Result<Value, Fault> {
    let divide = |quotient: Option<Value>| {
        if b == 0 { Err(Fault::DivisionByZero) } else { quotient.ok_or(Fault::Overflow) }
    };
    let shift = |shifted: fn(Value, u32) -> Option<Value>| {
        u32::try_from(b).ok().filter(|&by| by < 64).and_then(|by| shifted(a, by)).ok_or(Fault::Overflow)
    };
    match op {
        BinaryOp::Add => a.checked_add(b).ok_or(Fault::Overflow),
        BinaryOp::Sub => a.checked_sub(b).ok_or(Fault::Overflow),
        BinaryOp::Mul => a.checked_mul(b).ok_or(Fault::Overflow),
        BinaryOp::Div => divide(a.checked_div(b)),
        // The remainder of the smallest number divided by -1 is 0, although the quotient overflows.
        BinaryOp::Rem => divide((b != 0).then(|| a.wrapping_rem(b))),
        BinaryOp::BitAnd => Ok(a & b),
        BinaryOp::BitOr => Ok(a | b),
        BinaryOp::BitXor => Ok(a ^ b),
        BinaryOp::Shl => shift(|a, by| a.checked_mul(1i64.checked_shl(by).filter(|&p| p > 0)?)),
        BinaryOp::Shr => shift(|a, by| Some(a >> by)),
        BinaryOp::Eq => Ok((a == b).into()),
        BinaryOp::Ne => Ok((a != b).into()),
        BinaryOp::Lt => Ok((a < b).into()),
        BinaryOp::Le => Ok((a <= b).into()),
        BinaryOp::Gt => Ok((a > b).into()),
        BinaryOp::Ge => Ok((a >= b).into()),
        BinaryOp::And => Ok((a != 0 && b != 0).into()),
        BinaryOp::Or => Ok((a != 0 || b != 0).into()),
        BinaryOp::WordAdd => Ok(a.wrapping_add(b)),
        BinaryOp::WordSub => Ok(a.wrapping_sub(b)),
        BinaryOp::WordMul => Ok(a.wrapping_mul(b)),
        BinaryOp::WordDiv => divide((a as u64).checked_div(b as u64).map(|quotient| quotient as Value)),
        BinaryOp::WordRem => divide((a as u64).checked_rem(b as u64).map(|rest| rest as Value)),
        BinaryOp::WordShl => shift(|a, by| Some(a << by)),
        BinaryOp::WordShr => shift(|a, by| Some(((a as u64) >> by) as Value)),
        BinaryOp::WordLt => Ok(((a as u64) < b as u64).into()),
        BinaryOp::WordLe => Ok((a as u64 <= b as u64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_as_in_c_and_rust_but_faults_instead_of_wrapping() {
        let check = |op, a, b, expected| assert_eq!(binary(op, a, b), expected, "{op:?} {a} {b}");
        check(BinaryOp::Rem, -7, 3, Ok(-1));
        check(BinaryOp::Div, -7, 2, Ok(-3));
        check(BinaryOp::Div, 1, 0, Err(Fault::DivisionByZero));
        check(BinaryOp::Rem, 1, 0, Err(Fault::DivisionByZero));
        check(BinaryOp::Rem, Value::MIN, 0, Err(Fault::DivisionByZero));
        check(BinaryOp::Rem, Value::MIN, -1, Ok(0));
        check(BinaryOp::Rem, Value::MAX, -1, Ok(0));
        check(BinaryOp::Rem, Value::MIN, Value::MIN, Ok(0));
        check(BinaryOp::Rem, Value::MIN, Value::MAX, Ok(-1));
        check(BinaryOp::Div, Value::MIN, -1, Err(Fault::Overflow));
        check(BinaryOp::Div, Value::MIN, 1, Ok(Value::MIN));
        check(BinaryOp::Mul, Value::MIN, -1, Err(Fault::Overflow));
        check(BinaryOp::Sub, 0, Value::MIN, Err(Fault::Overflow));
        check(BinaryOp::Sub, -1, Value::MIN, Ok(Value::MAX));
        check(BinaryOp::Shr, Value::MIN, 63, Ok(-1));
        check(BinaryOp::Shr, 1, -1, Err(Fault::Overflow));
        check(BinaryOp::Add, Value::MAX, 1, Err(Fault::Overflow));
        check(BinaryOp::Shl, 3, 4, Ok(48));
        check(BinaryOp::Shl, 1, 63, Err(Fault::Overflow));
        check(BinaryOp::Shl, 1, 64, Err(Fault::Overflow));
        check(BinaryOp::Shr, -8, 1, Ok(-4));
        check(BinaryOp::And, 2, 4, Ok(1));
        check(BinaryOp::Or, 0, 0, Ok(0));
        check(BinaryOp::WordAdd, Value::MAX, 1, Ok(Value::MIN));
        check(BinaryOp::WordSub, Value::MIN, 1, Ok(Value::MAX));
        check(BinaryOp::WordMul, Value::MIN, 2, Ok(0));
        check(BinaryOp::WordDiv, -1, 2, Ok(Value::MAX));
        check(BinaryOp::WordDiv, 1, 0, Err(Fault::DivisionByZero));
        check(BinaryOp::WordRem, -1, 10, Ok(5));
        check(BinaryOp::WordRem, -1, 0, Err(Fault::DivisionByZero));
        check(BinaryOp::WordShl, 3, 63, Ok(Value::MIN));
        check(BinaryOp::WordShl, 1, 64, Err(Fault::Overflow));
        check(BinaryOp::WordShr, -1, 63, Ok(1));
        check(BinaryOp::WordShr, 1, -1, Err(Fault::Overflow));
        check(BinaryOp::WordLt, -1, 0, Ok(0));
        check(BinaryOp::WordLt, 0, -1, Ok(1));
        check(BinaryOp::WordLe, -1, -1, Ok(1));
        assert_eq!(unary(UnaryOp::Neg, Value::MIN), Err(Fault::Overflow));
        assert_eq!(unary(UnaryOp::BitNot, Value::MIN), Ok(Value::MAX));
    }
}
