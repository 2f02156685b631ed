//! Values of a given width in a language of 64-bit integers.
//!
//! *Representation.* A variable or register part of `w` bits is represented by the signed integer with the
//! same bits. Conversions and wrap-around are emitted only where a value can be outside the range. For that,
//! each value carries its smallest and largest possible number, and the variables that it can be the address
//! of.
//!
//! *Guarantee.* Expressions compute exactly what x86 computes, with one exception: a 64-bit counter in a loop
//! is assumed not to pass 2^62 in small steps, which would take more than 2^30 iterations.

use crate::generate::{self, int};
use palisade_base::Span;
use palisade_program::written::{BinaryOp, Expr, ExprKind, PlaceKind, UnaryOp};

use super::registers::Width;

/// What is known about a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) least: i128,
    pub(super) greatest: i128,
    /// The variables that it can be the address of, as a bit set; see [`super::knowledge::Knowledge::bit`].
    pub(super) points: u64,
}

impl Facts {
    pub(super) fn exactly(value: i64) -> Facts {
        Facts { least: value.into(), greatest: value.into(), points: 0 }
    }

    pub(super) fn between(least: i128, greatest: i128) -> Facts {
        Facts { least, greatest, points: 0 }
    }

    /// Any value of a width.
    fn any(width: Width) -> Facts {
        Facts::between(width.least(), width.greatest())
    }

    fn within(&self, least: i128, greatest: i128) -> bool {
        least <= self.least && self.greatest <= greatest
    }

    /// Adds the possible values of `other`. Returns whether that changed anything.
    pub(super) fn join(&mut self, other: &Facts) -> bool {
        let joined = Facts {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
            points: self.points | other.points,
        };
        let grows = joined != *self;
        *self = joined;
        grows
    }

    /// Widens the bounds so that they are stable after at most a few more steps.
    pub(super) fn widen(&mut self, width: Width) {
        let limits = if width == Width::QUAD && self.within(-COUNTER, COUNTER) {
            (-COUNTER, COUNTER)
        } else {
            (width.least(), width.greatest())
        };
        (self.least, self.greatest) = limits;
    }
}

/// Counters are assumed not to pass this value.
const COUNTER: i128 = 1 << 62;
/// A counter changes by at most this much per step.
const COUNTER_STEP: i128 = 1 << 32;

/// A value: what is known about it, and its expression unless only facts are wanted.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub(super) expr: Option<Expr>,
    pub(super) facts: Facts,
    /// Whether evaluating it loads from memory.
    pub(super) loads: bool,
}

impl Val {
    pub(super) fn new(expr: Option<Expr>, facts: Facts) -> Val {
        Val { expr, facts, loads: false }
    }

    /// Whether it can be used several times: it loads nothing and is short.
    pub(super) fn is_atom(&self) -> bool {
        match self.expr.as_ref().map(|expr| &expr.kind) {
            None | Some(ExprKind::Int(_)) => true,
            Some(ExprKind::Unary(UnaryOp::Neg, operand)) => matches!(operand.kind, ExprKind::Int(_)),
            Some(ExprKind::Read(place)) => !self.loads && matches!(place.kind, PlaceKind::Named(_)),
            _ => false,
        }
    }
}

/// Creates values. Without `build` there are no expressions, only facts.
#[derive(Clone, Copy)]
pub(super) struct Maker {
    pub(super) build: bool,
    pub(super) span: Span,
}

impl Maker {
    pub(super) fn constant(self, value: i64) -> Val {
        Val::new(self.build.then(|| int(value, self.span)), Facts::exactly(value))
    }

    pub(super) fn unary(self, op: UnaryOp, operand: Val, facts: Facts) -> Val {
        let loads = operand.loads;
        let expr = operand.expr.map(|operand| generate::unary(op, operand, self.span));
        Val { expr, facts, loads }
    }

    pub(super) fn binary(self, op: BinaryOp, left: Val, right: Val, facts: Facts) -> Val {
        let loads = left.loads || right.loads;
        let expr =
            left.expr.zip(right.expr).map(|(left, right)| generate::binary(op, left, right, self.span));
        Val { expr, facts, loads }
    }

    /// A comparison: 0 or 1.
    pub(super) fn compare(self, op: BinaryOp, left: Val, right: Val) -> Val {
        self.binary(op, left, right, Facts::between(0, 1))
    }

    /// `!v`
    pub(super) fn not(self, value: Val) -> Val {
        self.unary(UnaryOp::Not, value, Facts::between(0, 1))
    }

    fn mask(width: Width) -> i64 {
        (1_i64 << width.0) - 1
    }

    /// The lowest bits as a signed integer.
    pub(super) fn sign_extend(self, value: Val, width: Width) -> Val {
        if value.facts.within(width.least(), width.greatest()) || width == Width::QUAD {
            return value;
        }
        let sign = 1_i64 << (width.0 - 1);
        let masked = self.mask_bits(value, Self::mask(width));
        let flipped = self.binary(BinaryOp::BitXor, masked, self.constant(sign), Facts::any(width));
        self.binary(BinaryOp::Sub, flipped, self.constant(sign), Facts::any(width))
    }

    /// The lowest bits as an unsigned integer, of at most 32 bits.
    pub(super) fn zero_extend(self, value: Val, width: Width) -> Val {
        let mask = Self::mask(width);
        if value.facts.within(0, mask.into()) {
            return value;
        }
        self.mask_bits(value, mask)
    }

    fn mask_bits(self, mut value: Val, mask: i64) -> Val {
        // Sign extension does not change the lowest bits.
        value.expr = value.expr.map(|expr| without_extension(expr, mask));
        self.binary(BinaryOp::BitAnd, value, self.constant(mask), Facts::between(0, mask.into()))
    }

    /// `a + b` with wrap-around. Both must be atoms if [`Maker::may_overflow`] holds.
    pub(super) fn add(self, left: Val, right: Val, width: Width) -> Val {
        self.sum(BinaryOp::Add, left, right, width)
    }

    /// `a - b` with wrap-around, in the same way.
    pub(super) fn sub(self, left: Val, right: Val, width: Width) -> Val {
        self.sum(BinaryOp::Sub, left, right, width)
    }

    /// The bounds of a sum or difference before any wrap-around.
    fn sum_facts(op: BinaryOp, left: &Facts, right: &Facts, width: Width) -> Facts {
        let (least, greatest) = match op {
            BinaryOp::Add => (left.least + right.least, left.greatest + right.greatest),
            _ => (left.least - right.greatest, left.greatest - right.least),
        };
        let facts = Facts::between(least, greatest);
        let small_step = left.within(-COUNTER, COUNTER) && right.within(-COUNTER_STEP, COUNTER_STEP);
        if width == Width::QUAD && small_step && !facts.within(-COUNTER, COUNTER) {
            return Facts::between(least.max(-COUNTER), greatest.min(COUNTER));
        }
        facts
    }

    /// Whether a sum or difference can leave the range of its width.
    pub(super) fn may_overflow(op: BinaryOp, left: &Facts, right: &Facts, width: Width) -> bool {
        !Self::sum_facts(op, left, right, width).within(width.least(), width.greatest())
    }

    fn sum(self, op: BinaryOp, left: Val, right: Val, width: Width) -> Val {
        let facts = Self::sum_facts(op, &left.facts, &right.facts, width);
        if facts.within(width.least(), width.greatest()) {
            return self.binary(op, left, right, facts);
        }
        if width < Width::QUAD {
            let sum = self.binary(op, left, right, facts);
            return self.sign_extend(sum, width);
        }
        // Compute in halves: the low halves as unsigned numbers, their carry or borrow, and the high halves.
        let half = Width::LONG;
        let any = Facts::any(Width::QUAD);
        let low = self.binary(
            op,
            self.mask_bits(left.clone(), Self::mask(half)),
            self.mask_bits(right.clone(), Self::mask(half)),
            Facts::between(-(1 << 33), 1 << 33),
        );
        let high_of = |value: Val| self.shift(BinaryOp::Shr, value, 32, Facts::any(half));
        let carry = self.shift(BinaryOp::Shr, low.clone(), 32, Facts::between(-1, 1));
        let high = self.binary(op, high_of(left), high_of(right), Facts::between(-(1 << 33), 1 << 33));
        let high = self.binary(BinaryOp::Add, high, carry, Facts::between(-(1 << 34), 1 << 34));
        let high = self.shift(BinaryOp::Shl, self.sign_extend(high, half), 32, any);
        self.binary(BinaryOp::BitOr, high, self.mask_bits(low, Self::mask(half)), any)
    }

    pub(super) fn shift(self, op: BinaryOp, value: Val, count: u32, facts: Facts) -> Val {
        self.binary(op, value, self.constant(count.into()), facts)
    }

    /// `&`, `|` or `^`: closed on signed integers of any width.
    pub(super) fn bitwise(self, op: BinaryOp, left: Val, right: Val) -> Val {
        let (a, b) = (&left.facts, &right.facts);
        let bits = [a.least, a.greatest, b.least, b.greatest]
            .map(|bound| if bound < 0 { !bound } else { bound })
            .into_iter()
            .map(|bound| 128 - bound.leading_zeros())
            .max()
            .unwrap_or(63);
        let all = 1_i128 << bits;
        let facts = match op {
            BinaryOp::BitAnd if a.least >= 0 && b.least >= 0 => Facts::between(0, a.greatest.min(b.greatest)),
            BinaryOp::BitAnd if a.least >= 0 => Facts::between(0, a.greatest),
            BinaryOp::BitAnd if b.least >= 0 => Facts::between(0, b.greatest),
            _ if a.least >= 0 && b.least >= 0 => Facts::between(0, all - 1),
            _ => Facts::between(-all, all - 1),
        };
        self.binary(op, left, right, facts)
    }

    /// `~v`
    pub(super) fn complement(self, value: Val) -> Val {
        let facts = Facts::between(!value.facts.greatest, !value.facts.least);
        self.unary(UnaryOp::BitNot, value, facts)
    }

    /// `v << count` with wrap-around.
    pub(super) fn shift_left(self, value: Val, count: u32, width: Width) -> Val {
        let kept = Width(width.0 - count);
        let kept_value = if value.facts.within(kept.least(), kept.greatest()) {
            value
        } else if kept.0 == 63 {
            // There is no mask of 63 bits with a sign. Flip through the highest bit that is kept.
            let masked = self.mask_bits(value, i64::MAX);
            let flipped = self.binary(BinaryOp::BitXor, masked, self.constant(1 << 62), Facts::any(kept));
            self.binary(BinaryOp::Sub, flipped, self.constant(1 << 62), Facts::any(kept))
        } else {
            self.sign_extend(value, kept)
        };
        let facts = Facts::between(kept_value.facts.least << count, kept_value.facts.greatest << count);
        if count == 63 {
            // The value is 0 or -1. 2^63 is not a valid factor.
            return self.binary(BinaryOp::BitAnd, kept_value, self.constant(i64::MIN), facts);
        }
        self.shift(BinaryOp::Shl, kept_value, count, facts)
    }

    /// `v >> count`, filling with zeros.
    pub(super) fn shift_logical(self, value: Val, count: u32, width: Width) -> Val {
        if value.facts.least >= 0 {
            let facts = Facts::between(value.facts.least >> count, value.facts.greatest >> count);
            return self.shift(BinaryOp::Shr, value, count, facts);
        }
        if width < Width::QUAD {
            let value = self.zero_extend(value, width);
            let facts = Facts::between(0, value.facts.greatest >> count);
            return self.shift(BinaryOp::Shr, value, count, facts);
        }
        let mask = if count == 1 { i64::MAX } else { (1 << (64 - count)) - 1 };
        let shifted = self.shift(BinaryOp::Shr, value, count, Facts::any(width));
        self.mask_bits(shifted, mask)
    }

    /// `v >> count`, filling with the sign.
    pub(super) fn shift_arithmetic(self, value: Val, count: u32) -> Val {
        let facts = Facts::between(value.facts.least >> count, value.facts.greatest >> count);
        self.shift(BinaryOp::Shr, value, count, facts)
    }

    /// `a < b` as unsigned numbers of a width.
    pub(super) fn below(self, op: BinaryOp, left: Val, right: Val, width: Width) -> Val {
        if left.facts.least >= 0 && right.facts.least >= 0 {
            return self.compare(op, left, right);
        }
        if width < Width::QUAD {
            return self.compare(op, self.zero_extend(left, width), self.zero_extend(right, width));
        }
        let flip = |value| self.binary(BinaryOp::BitXor, value, self.constant(i64::MIN), Facts::any(width));
        self.compare(op, flip(left), flip(right))
    }
}

/// Removes a sign extension. For `((e & m) ^ s) - s`, as [`Maker::sign_extend`] emits it, returns `e` if `m`
/// contains all the wanted bits.
fn without_extension(expr: Expr, wanted: i64) -> Expr {
    let mask = match &expr.kind {
        ExprKind::Binary(BinaryOp::Sub, flipped, sign) => match (&flipped.kind, &sign.kind) {
            (ExprKind::Binary(BinaryOp::BitXor, masked, flip), ExprKind::Int(sign)) => {
                match (&masked.kind, &flip.kind) {
                    (ExprKind::Binary(BinaryOp::BitAnd, _, mask), ExprKind::Int(flip)) if flip == sign => {
                        match mask.kind {
                            ExprKind::Int(mask) if mask == flip.wrapping_mul(2).wrapping_sub(1) => Some(mask),
                            _ => None,
                        }
                    }
                    _ => None,
                }
            }
            _ => None,
        },
        _ => None,
    };
    if mask.is_none_or(|mask| wanted & !mask != 0) {
        return expr;
    }
    let ExprKind::Binary(_, flipped, _) = expr.kind else { unreachable!("matched above") };
    let ExprKind::Binary(_, masked, _) = flipped.kind else { unreachable!("matched above") };
    let ExprKind::Binary(_, inner, _) = masked.kind else { unreachable!("matched above") };
    *inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_program::running;

    /// The value of an expression over literals.
    fn eval(expr: &Expr) -> i64 {
        match &expr.kind {
            ExprKind::Int(value) => *value,
            ExprKind::Unary(op, a) => running::unary(*op, eval(a)).expect("no fault"),
            ExprKind::Binary(op, a, b) => running::binary(*op, eval(a), eval(b)).expect("no fault"),
            other => panic!("unexpected {other:?}"),
        }
    }

    const INTERESTING: [i64; 15] = [
        0,
        1,
        -1,
        2,
        127,
        128,
        -128,
        0x7fff,
        0x7fff_ffff,
        0x8000_0000,
        -0x8000_0000,
        1 << 62,
        i64::MAX,
        i64::MIN,
        12345,
    ];

    /// The lowest bits as a signed integer.
    fn cut(value: i128, width: Width) -> i64 {
        let shift = 128 - width.0;
        i64::try_from(value << shift >> shift).expect("at most 64 bits")
    }

    #[test]
    fn arithmetic_wraps_as_on_the_machine() {
        let maker = Maker { build: true, span: Span::NONE };
        for width in [Width::BYTE, Width::WORD, Width::LONG, Width::QUAD] {
            // Constants of which only the width is known, as for registers.
            let value = |v: i64| Val { facts: Facts::any(width), ..maker.constant(cut(v.into(), width)) };
            let result = |val: Val| {
                let computed = eval(&val.expr.expect("built"));
                assert!(
                    val.facts.within(computed.into(), computed.into()) || val.facts.least <= computed.into()
                );
                assert!(val.facts.least <= computed.into() && i128::from(computed) <= val.facts.greatest);
                computed
            };
            for a in INTERESTING {
                let wide = i128::from(cut(a.into(), width));
                let unsigned = wide & ((1_i128 << width.0) - 1);
                for b in INTERESTING {
                    let other = i128::from(cut(b.into(), width));
                    assert_eq!(
                        result(maker.add(value(a), value(b), width)),
                        cut(wide + other, width),
                        "{a} + {b}"
                    );
                    assert_eq!(
                        result(maker.sub(value(a), value(b), width)),
                        cut(wide - other, width),
                        "{a} - {b}"
                    );
                    let below = unsigned < other & ((1_i128 << width.0) - 1);
                    assert_eq!(result(maker.below(BinaryOp::Lt, value(a), value(b), width)), below.into());
                    for (op, expected) in [
                        (BinaryOp::BitAnd, wide & other),
                        (BinaryOp::BitOr, wide | other),
                        (BinaryOp::BitXor, wide ^ other),
                    ] {
                        assert_eq!(result(maker.bitwise(op, value(a), value(b))), cut(expected, width));
                    }
                }
                for count in [1, 2, 7, width.0 - 1] {
                    assert_eq!(
                        result(maker.shift_left(value(a), count, width)),
                        cut(wide << count, width),
                        "{a} << {count}"
                    );
                    assert_eq!(
                        result(maker.shift_logical(value(a), count, width)),
                        cut(unsigned >> count, width)
                    );
                    assert_eq!(result(maker.shift_arithmetic(value(a), count)), cut(wide >> count, width));
                }
                assert_eq!(result(maker.complement(value(a))), cut(!wide, width));
            }
        }
    }

    #[test]
    fn values_in_range_are_unchanged() {
        let maker = Maker { build: true, span: Span::NONE };
        let small = || Val { facts: Facts::between(0, 5), ..maker.constant(5) };
        assert_eq!(maker.sign_extend(small(), Width::BYTE).expr, small().expr);
        assert_eq!(maker.zero_extend(small(), Width::LONG).expr, small().expr);
        let sum = maker.add(small(), small(), Width::BYTE);
        assert_eq!((sum.facts.least, sum.facts.greatest), (0, 10));
        assert_eq!(sum.expr, Some(generate::binary(BinaryOp::Add, Expr::int(5), Expr::int(5), Span::NONE)));
    }
}
