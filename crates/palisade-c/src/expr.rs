//! Expressions over registers, with the rules that simplify them.
//!
//! Numbers are 64-bit words. `WordAdd`, `WordSub` and `WordMul` wrap around; the signed operators of
//! [`BinaryOp`] that can overflow are not used here. Division and shifts are used only where an operand is a
//! constant for which they cannot fail, or where an earlier step has checked it.

use crate::flat::{ObjectId, RegId, Register};
use palisade_program::written::BinaryOp;

/// An expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Expr {
    Int(i64),
    Reg(RegId),
    /// The address of a byte of an object, or near it.
    Address(ObjectId, i64),
    /// Negation (`!`) of a truth value.
    Not(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// The lowest bits, sign-extended; for width 1 the lowest bit.
    Wrap(u32, Box<Expr>),
}

/// Whether the operator gives 0 or 1.
pub(crate) fn gives_truth(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::WordLt
            | BinaryOp::WordLe
    )
}

/// The smallest and largest canonical value of a width.
pub(crate) fn width_bounds(width: u32) -> (i64, i64) {
    match width {
        1 => (0, 1),
        64.. => (i64::MIN, i64::MAX),
        _ => (-(1 << (width - 1)), (1 << (width - 1)) - 1),
    }
}

/// A number cut to a width.
pub(crate) fn wrap_int(width: u32, value: i64) -> i64 {
    match width {
        1 => value & 1,
        64.. => value,
        _ => (value << (64 - width)) >> (64 - width),
    }
}

/// The mask of the lowest bits.
pub(crate) fn mask(width: u32) -> i64 {
    if width >= 64 { -1 } else { (1 << width) - 1 }
}

impl Expr {
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is a constant: a number or an address.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Expr::Int(_) | Expr::Address(..))
    }

    /// Visits the registers.
    pub(crate) fn for_each_register(&self, visit: &mut dyn FnMut(RegId)) {
        match self {
            Expr::Reg(register) => visit(*register),
            Expr::Int(_) | Expr::Address(..) => {}
            Expr::Not(a) | Expr::Wrap(_, a) => a.for_each_register(visit),
            Expr::Binary(_, a, b) => {
                a.for_each_register(visit);
                b.for_each_register(visit);
            }
        }
    }

    pub(crate) fn mentions(&self, register: RegId) -> bool {
        let mut found = false;
        self.for_each_register(&mut |other| found |= other == register);
        found
    }

    /// Visits the objects whose addresses occur.
    pub(crate) fn for_each_object(&self, visit: &mut dyn FnMut(ObjectId)) {
        match self {
            Expr::Address(object, _) => visit(*object),
            Expr::Int(_) | Expr::Reg(_) => {}
            Expr::Not(a) | Expr::Wrap(_, a) => a.for_each_object(visit),
            Expr::Binary(_, a, b) => {
                a.for_each_object(visit);
                b.for_each_object(visit);
            }
        }
    }

    /// The number of operators and leaves.
    pub(crate) fn size(&self) -> usize {
        match self {
            Expr::Int(_) | Expr::Reg(_) | Expr::Address(..) => 1,
            Expr::Not(a) | Expr::Wrap(_, a) => 1 + a.size(),
            Expr::Binary(_, a, b) => 1 + a.size() + b.size(),
        }
    }

    /// The object that a pointer points into by its form: the address of an object, plus something.
    pub(crate) fn base(&self) -> Option<ObjectId> {
        match self {
            Expr::Address(object, _) => Some(*object),
            Expr::Binary(BinaryOp::WordAdd, a, b) => match (a.base(), b.base()) {
                (Some(object), None) | (None, Some(object)) => Some(object),
                _ => None,
            },
            Expr::Binary(BinaryOp::WordSub, a, b) if b.base().is_none() => a.base(),
            _ => None,
        }
    }

    /// Replaces registers by expressions, and simplifies.
    pub(crate) fn substitute(&self, value: &dyn Fn(RegId) -> Option<Expr>, registers: &[Register]) -> Expr {
        match self {
            Expr::Reg(register) => value(*register).unwrap_or_else(|| self.clone()),
            Expr::Int(_) | Expr::Address(..) => self.clone(),
            Expr::Not(a) => not(a.substitute(value, registers)),
            Expr::Wrap(width, a) => wrap(*width, a.substitute(value, registers), registers),
            Expr::Binary(op, a, b) => {
                binary(*op, a.substitute(value, registers), b.substitute(value, registers), registers)
            }
        }
    }

    /// Bounds for its value.
    pub(crate) fn bounds(&self, registers: &[Register]) -> (i64, i64) {
        const ALL: (i64, i64) = (i64::MIN, i64::MAX);
        let bounds = |e: &Expr| e.bounds(registers);
        match self {
            Expr::Int(value) => (*value, *value),
            Expr::Address(..) => ALL,
            Expr::Reg(register) => width_bounds(registers[register.0 as usize].width),
            Expr::Not(_) => (0, 1),
            Expr::Wrap(width, a) => {
                let (lo, hi) = width_bounds(*width);
                let (a_lo, a_hi) = bounds(a);
                if lo <= a_lo && a_hi <= hi { (a_lo, a_hi) } else { (lo, hi) }
            }
            Expr::Binary(op, a, b) => {
                let ((a_lo, a_hi), (b_lo, b_hi)) = (bounds(a), bounds(b));
                let both = |lo: Option<i64>, hi: Option<i64>| lo.zip(hi).unwrap_or(ALL);
                match op {
                    BinaryOp::WordAdd => both(a_lo.checked_add(b_lo), a_hi.checked_add(b_hi)),
                    BinaryOp::WordSub => both(a_lo.checked_sub(b_hi), a_hi.checked_sub(b_lo)),
                    BinaryOp::WordMul if a_lo >= 0 && b_lo >= 0 => {
                        both(a_lo.checked_mul(b_lo), a_hi.checked_mul(b_hi))
                    }
                    BinaryOp::BitAnd if b_lo >= 0 && a_lo >= 0 => (0, a_hi.min(b_hi)),
                    BinaryOp::BitAnd if b_lo >= 0 => (0, b_hi),
                    BinaryOp::BitAnd if a_lo >= 0 => (0, a_hi),
                    // The result has no bits that neither operand may have, and is as narrow as the wider one.
                    BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                        let hi = a_hi.max(b_hi).max(!a_lo.min(b_lo)).max(0) as u64;
                        let hi = (hi + 1).next_power_of_two().saturating_sub(1).min(i64::MAX as u64) as i64;
                        if a_lo >= 0 && b_lo >= 0 { (0, hi) } else { (!hi, hi) }
                    }
                    BinaryOp::WordShr => match b.as_int() {
                        Some(by @ 1..=63) => {
                            (0, if a_lo >= 0 { a_hi >> by } else { (u64::MAX >> by) as i64 })
                        }
                        _ if a_lo >= 0 => (0, a_hi),
                        _ => ALL,
                    },
                    BinaryOp::Shr => (a_lo.min(0), a_hi.max(-1)),
                    BinaryOp::WordRem if b_lo > 0 => (0, b_hi - 1),
                    BinaryOp::WordDiv if a_lo >= 0 && b_lo > 0 => (0, a_hi),
                    op if gives_truth(*op) => (0, 1),
                    _ => ALL,
                }
            }
        }
    }

    /// Whether its value is 0 or 1.
    pub(crate) fn gives_truth(&self, registers: &[Register]) -> bool {
        let (lo, hi) = self.bounds(registers);
        lo >= 0 && hi <= 1
    }
}

/// 1 for 0, else 0, of a truth value.
pub(crate) fn not(e: Expr) -> Expr {
    match e {
        Expr::Int(value) => Expr::Int((value == 0).into()),
        Expr::Not(a) => *a,
        Expr::Binary(op, a, b) => match opposite(op) {
            Some(op) => Expr::Binary(op, a, b),
            None => Expr::Not(Box::new(Expr::Binary(op, a, b))),
        },
        e => Expr::Not(Box::new(e)),
    }
}

fn opposite(op: BinaryOp) -> Option<BinaryOp> {
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

/// The lowest bits, sign-extended.
pub(crate) fn wrap(width: u32, e: Expr, registers: &[Register]) -> Expr {
    let (lo, hi) = width_bounds(width);
    let (e_lo, e_hi) = e.bounds(registers);
    if lo <= e_lo && e_hi <= hi {
        return e;
    }
    match e {
        Expr::Int(value) if !crate::bits::is_function(value) => Expr::Int(wrap_int(width, value)),
        Expr::Wrap(inner, a) if width <= inner => wrap(width, *a, registers),
        // A mask that only removes bits that are dropped in any case.
        Expr::Binary(BinaryOp::BitAnd, a, bits)
            if matches!(*bits, Expr::Int(bits) if bits & mask(width) == mask(width))
                && a.base().is_none() =>
        {
            wrap(width, *a, registers)
        }
        e => Expr::Wrap(width, Box::new(e)),
    }
}

/// The lowest bits as a number that is not negative.
pub(crate) fn unsigned(width: u32, e: Expr, registers: &[Register]) -> Expr {
    if width >= 64 || e.bounds(registers).0 >= 0 {
        return e;
    }
    binary(BinaryOp::BitAnd, e, Expr::Int(mask(width)), registers)
}

/// Whether the order of operands does not matter.
fn commutes(op: BinaryOp) -> bool {
    use BinaryOp::{BitAnd, BitOr, BitXor, Eq, Ne, WordAdd, WordMul};
    matches!(op, WordAdd | WordMul | BitAnd | BitOr | BitXor | Eq | Ne)
}

/// Whether the result of an operator depends on more of an address than which one it is.
fn uses_bits(op: BinaryOp) -> bool {
    use BinaryOp::{And, Eq, Ne, Or, WordAdd};
    !matches!(op, Eq | Ne | And | Or | WordAdd)
}

/// An operator, simplified.
pub(crate) fn binary(op: BinaryOp, a: Expr, b: Expr, registers: &[Register]) -> Expr {
    use BinaryOp::{BitAnd, BitOr, BitXor, Eq, Ne, WordAdd, WordLe, WordLt, WordMul, WordSub};
    // What depends on the address of a function is left as it is, so that it can be seen.
    let of_function = |e: &Expr| e.as_int().is_some_and(crate::bits::is_function);
    if (of_function(&a) || of_function(&b)) && uses_bits(op) {
        return Expr::Binary(op, Box::new(a), Box::new(b));
    }
    if let (Expr::Int(a), Expr::Int(b)) = (&a, &b)
        && let Ok(value) = palisade_program::running::binary(op, *a, *b)
    {
        return Expr::Int(value);
    }
    // Constants go to the right.
    if commutes(op) && a.is_constant() && !b.is_constant() {
        return binary(op, b, a, registers);
    }
    match (op, a, b) {
        (WordAdd, Expr::Address(object, offset), Expr::Int(by))
        | (WordAdd, Expr::Int(by), Expr::Address(object, offset)) => {
            Expr::Address(object, offset.wrapping_add(by))
        }
        (WordSub, Expr::Address(object, offset), Expr::Int(by)) => {
            Expr::Address(object, offset.wrapping_sub(by))
        }
        (WordSub, Expr::Address(a, x), Expr::Address(b, y)) if a == b => Expr::Int(x.wrapping_sub(y)),
        (WordAdd | WordSub | BitOr | BitXor, a, Expr::Int(0)) | (WordMul, a, Expr::Int(1)) => a,
        (BitAnd, a, Expr::Int(-1)) => a,
        (WordMul | BitAnd, _, Expr::Int(0)) => Expr::Int(0),
        (WordSub, a, Expr::Int(by)) => binary(WordAdd, a, Expr::Int(by.wrapping_neg()), registers),
        (WordAdd, Expr::Binary(WordAdd, a, inner), Expr::Int(by)) if inner.is_constant() => {
            let sum = binary(WordAdd, *inner, Expr::Int(by), registers);
            binary(WordAdd, *a, sum, registers)
        }
        // An address and a varying part: the address goes to the right, with all constants.
        (WordAdd, Expr::Binary(WordAdd, a, inner), b) if inner.is_constant() && !b.is_constant() => {
            binary(WordAdd, binary(WordAdd, *a, b, registers), *inner, registers)
        }
        (BitAnd, Expr::Binary(BitAnd, a, inner), Expr::Int(bits)) if inner.as_int().is_some() => {
            let bits = bits & inner.as_int().unwrap_or(0);
            binary(BitAnd, *a, Expr::Int(bits), registers)
        }
        (BitXor, a, Expr::Int(1)) if a.gives_truth(registers) => not(a),
        // A mask that removes nothing.
        (BitAnd, a, Expr::Int(bits))
            if bits >= 0 && bits.wrapping_add(1).count_ones() <= 1 && {
                let (lo, hi) = a.bounds(registers);
                lo >= 0 && hi <= bits
            } =>
        {
            a
        }
        (Ne, a, Expr::Int(0)) if a.gives_truth(registers) => a,
        (Eq, a, Expr::Int(0)) if a.gives_truth(registers) => not(a),
        (Eq, a, Expr::Int(1)) if a.gives_truth(registers) => a,
        (Ne, a, Expr::Int(1)) if a.gives_truth(registers) => not(a),
        // No object is near null.
        (Eq, Expr::Address(..), Expr::Int(0)) => Expr::Int(0),
        (Ne, Expr::Address(..), Expr::Int(0)) => Expr::Int(1),
        (Eq, Expr::Address(a, x), Expr::Address(b, y)) if a == b => Expr::Int((x == y).into()),
        (Ne, Expr::Address(a, x), Expr::Address(b, y)) if a == b => Expr::Int((x != y).into()),
        // Comparisons with a value out of range.
        (Eq | Ne, a, Expr::Int(value))
            if {
                let (lo, hi) = a.bounds(registers);
                value < lo || hi < value
            } =>
        {
            Expr::Int((op == Ne).into())
        }
        (Eq, a, b) if a == b => Expr::Int(1),
        (Ne, a, b) if a == b => Expr::Int(0),
        (WordLt | WordLe, a, b) => {
            if a.bounds(registers).0 >= 0 && b.bounds(registers).0 >= 0 {
                let op = if op == WordLt { BinaryOp::Lt } else { BinaryOp::Le };
                return binary(op, a, b, registers);
            }
            Expr::Binary(op, Box::new(a), Box::new(b))
        }
        (op @ (BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge), a, b) => {
            let ((a_lo, a_hi), (b_lo, b_hi)) = (a.bounds(registers), b.bounds(registers));
            let (always, never) = match op {
                BinaryOp::Lt => (a_hi < b_lo, a_lo >= b_hi),
                BinaryOp::Le => (a_hi <= b_lo, a_lo > b_hi),
                BinaryOp::Gt => (a_lo > b_hi, a_hi <= b_lo),
                _ => (a_lo >= b_hi, a_hi < b_lo),
            };
            // Addresses have no order before they are laid out.
            if always || never {
                Expr::Int(always.into())
            } else {
                Expr::Binary(op, Box::new(a), Box::new(b))
            }
        }
        (op, a, b) => Expr::Binary(op, Box::new(a), Box::new(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RegId = RegId(0);
    const B: RegId = RegId(1);

    /// The value of an expression for values of the two registers.
    fn value(e: &Expr, a: i64, b: i64) -> Option<i64> {
        Some(match e {
            Expr::Int(value) => *value,
            Expr::Reg(register) => [a, b][register.0 as usize],
            Expr::Address(..) => return None,
            Expr::Not(e) => (value(e, a, b)? == 0).into(),
            Expr::Wrap(width, e) => wrap_int(*width, value(e, a, b)?),
            Expr::Binary(op, x, y) => {
                palisade_program::running::binary(*op, value(x, a, b)?, value(y, a, b)?).ok()?
            }
        })
    }

    /// Simplification and bounds, for operators that cannot fail, against evaluation.
    #[test]
    fn simplified_expressions_have_the_same_values() {
        let ops = [
            BinaryOp::WordAdd,
            BinaryOp::WordSub,
            BinaryOp::WordMul,
            BinaryOp::BitAnd,
            BinaryOp::BitOr,
            BinaryOp::BitXor,
            BinaryOp::Eq,
            BinaryOp::Ne,
            BinaryOp::Lt,
            BinaryOp::Le,
            BinaryOp::Gt,
            BinaryOp::Ge,
            BinaryOp::WordLt,
            BinaryOp::WordLe,
        ];
        for width in [1, 8, 32, 64] {
            let register = |name: &str| Register { name: name.to_owned(), width };
            let registers = [register("a"), register("b")];
            let (lo, hi) = width_bounds(width);
            let mut values = vec![lo, hi, 0, 1, hi / 2, wrap_int(width, -1), wrap_int(width, 7)];
            values.dedup();
            let constants = [0, 1, -1, 2, 255, 0x8000_0000, i64::MAX, i64::MIN];
            let mut leaves = vec![Expr::Reg(A), Expr::Reg(B)];
            leaves.extend(constants.map(Expr::Int));
            for &first in &ops {
                for &second in &ops {
                    for x in &leaves {
                        for y in &leaves {
                            let inner = binary(first, Expr::Reg(A), x.clone(), &registers);
                            let plain = Expr::Binary(first, Box::new(Expr::Reg(A)), Box::new(x.clone()));
                            let inner = wrap(16, inner, &registers);
                            let plain = Expr::Wrap(16, Box::new(plain));
                            let found = binary(second, inner, y.clone(), &registers);
                            let plain = Expr::Binary(second, Box::new(plain), Box::new(y.clone()));
                            check(&found, &plain, &registers, &values);
                        }
                    }
                }
            }
        }
    }

    #[track_caller]
    fn check(found: &Expr, plain: &Expr, registers: &[Register], values: &[i64]) {
        let (lo, hi) = found.bounds(registers);
        for &a in values {
            for &b in values {
                let expected = value(plain, a, b);
                assert_eq!(value(found, a, b), expected, "{plain:?} became {found:?} for {a}, {b}");
                let inside = expected.is_none_or(|value| lo <= value && value <= hi);
                assert!(inside, "{found:?} has bounds {lo}, {hi}, but is {expected:?} for {a}, {b}");
            }
        }
    }
}
