//! The flags: where they come from and what conditions read from them.
//!
//! Flags that are never read are never written. A comparison directly before the jump that uses it becomes
//! the condition of the jump. Otherwise the flags that are needed become registers `ZF`, `SF`, `CF` and `OF`.

use super::liveness::{CARRY, Live, OVERFLOW, SIGN, ZERO};
use super::mnemonics::Cc;
use super::registers::Width;
use super::state::{Extra, State};
use super::values::{Maker, Val};
use palisade_program::written::BinaryOp;

/// Where flags come from. Operands have their values from before the instruction; results are from after it.
#[derive(Clone)]
pub(super) enum Flags {
    /// `a - b`
    Difference(Val, Val, Width),
    /// `a + b`
    Sum(Val, Val, Width),
    /// A result, with no carry and no overflow: `&`, `|` and `^`.
    Logic(Val),
    /// `a + 1` or `a - 1`: the carry does not change.
    Step(BinaryOp, Val, Width),
    /// A shift: only the flags that follow from the result are known.
    Shifted(Val),
}

impl Flags {
    /// Whether every value can be used several times.
    pub(super) fn is_atomic(&self) -> bool {
        match self {
            Flags::Difference(a, b, _) | Flags::Sum(a, b, _) => a.is_atom() && b.is_atom(),
            Flags::Logic(a) | Flags::Step(_, a, _) | Flags::Shifted(a) => a.is_atom(),
        }
    }

    /// The result of the operation.
    fn result(&self, maker: Maker) -> Val {
        match self.clone() {
            Flags::Difference(a, b, width) => maker.sub(a, b, width),
            Flags::Sum(a, b, width) => maker.add(a, b, width),
            Flags::Logic(result) | Flags::Shifted(result) => result,
            Flags::Step(BinaryOp::Add, a, width) => maker.add(a, maker.constant(1), width),
            Flags::Step(_, a, width) => maker.sub(a, maker.constant(1), width),
        }
    }

    fn flag(&self, flag: Live, maker: Maker) -> Val {
        let zero = || maker.constant(0);
        match (flag, self.clone()) {
            (ZERO, Flags::Difference(a, b, _)) => maker.compare(BinaryOp::Eq, a, b),
            (ZERO, _) => maker.compare(BinaryOp::Eq, self.result(maker), zero()),
            (SIGN, _) => maker.compare(BinaryOp::Lt, self.result(maker), zero()),
            (CARRY, Flags::Difference(a, b, width)) => maker.below(BinaryOp::Lt, a, b, width),
            (CARRY, Flags::Sum(a, _, width)) => maker.below(BinaryOp::Lt, self.result(maker), a, width),
            (OVERFLOW, Flags::Difference(a, b, _)) => {
                let less = maker.compare(BinaryOp::Lt, a, b);
                let negative = maker.compare(BinaryOp::Lt, self.result(maker), zero());
                maker.compare(BinaryOp::Ne, less, negative)
            }
            (OVERFLOW, Flags::Sum(a, b, _)) => {
                let negative = |value| maker.compare(BinaryOp::Lt, value, zero());
                let same = maker.compare(BinaryOp::Eq, negative(a.clone()), negative(b));
                let differs = maker.compare(BinaryOp::Ne, negative(self.result(maker)), negative(a));
                maker.compare(BinaryOp::And, same, differs)
            }
            (OVERFLOW, Flags::Step(op, a, width)) => {
                let edge = if op == BinaryOp::Add { width.greatest() } else { width.least() };
                maker.compare(BinaryOp::Eq, a, maker.constant(i64::try_from(edge).expect("at most 64 bits")))
            }
            // There is no carry and no overflow. The carry of a step and of a shift is never requested here.
            _ => zero(),
        }
    }

    /// The value of a condition, without flags in registers. If [`Flags::is_atomic`] does not hold and
    /// [`Flags::is_direct`] does, each value is used once.
    pub(super) fn condition(&self, cc: Cc, maker: Maker) -> Val {
        let (a, b, width) = match self.clone() {
            Flags::Difference(a, b, width) => (a, b, width),
            Flags::Logic(result) => (result, maker.constant(0), Width::QUAD),
            _ => return assemble(cc, |flag| self.flag(flag, maker), maker),
        };
        let compare = |op| maker.compare(op, a.clone(), b.clone());
        let below = |op| maker.below(op, a.clone(), b.clone(), width);
        match cc {
            Cc::Equal => compare(BinaryOp::Eq),
            Cc::NotEqual => compare(BinaryOp::Ne),
            Cc::Less => compare(BinaryOp::Lt),
            Cc::GreaterEqual => compare(BinaryOp::Ge),
            Cc::LessEqual => compare(BinaryOp::Le),
            Cc::Greater => compare(BinaryOp::Gt),
            Cc::Below => below(BinaryOp::Lt),
            Cc::AboveEqual => below(BinaryOp::Ge),
            Cc::BelowEqual => below(BinaryOp::Le),
            Cc::Above => below(BinaryOp::Gt),
            Cc::Sign | Cc::NotSign => {
                let result = self.result(maker);
                let op = if cc == Cc::Sign { BinaryOp::Lt } else { BinaryOp::Ge };
                maker.compare(op, result, maker.constant(0))
            }
            Cc::Overflow => self.flag(OVERFLOW, maker),
            Cc::NotOverflow => maker.not(self.flag(OVERFLOW, maker)),
        }
    }

    /// Whether a condition uses each value once.
    pub(super) fn is_direct(&self, cc: Cc) -> bool {
        let simple = matches!(self, Flags::Difference(..) | Flags::Logic(_));
        simple && !matches!(cc, Cc::Overflow | Cc::NotOverflow | Cc::Sign | Cc::NotSign)
    }
}

/// A condition over flags.
fn assemble(cc: Cc, mut flag: impl FnMut(Live) -> Val, maker: Maker) -> Val {
    let mut signs_differ = |op| {
        let (sign, overflow) = (flag(SIGN), flag(OVERFLOW));
        maker.compare(op, sign, overflow)
    };
    match cc {
        Cc::Less => signs_differ(BinaryOp::Ne),
        Cc::GreaterEqual => signs_differ(BinaryOp::Eq),
        Cc::LessEqual => {
            let less = signs_differ(BinaryOp::Ne);
            maker.compare(BinaryOp::Or, flag(ZERO), less)
        }
        Cc::Greater => {
            let not_less = signs_differ(BinaryOp::Eq);
            maker.compare(BinaryOp::And, maker.not(flag(ZERO)), not_less)
        }
        Cc::Equal => flag(ZERO),
        Cc::NotEqual => maker.not(flag(ZERO)),
        Cc::Below => flag(CARRY),
        Cc::AboveEqual => maker.not(flag(CARRY)),
        Cc::BelowEqual => {
            let carry = flag(CARRY);
            maker.compare(BinaryOp::Or, carry, flag(ZERO))
        }
        Cc::Above => {
            let carry = maker.not(flag(CARRY));
            maker.compare(BinaryOp::And, carry, maker.not(flag(ZERO)))
        }
        Cc::Sign => flag(SIGN),
        Cc::NotSign => maker.not(flag(SIGN)),
        Cc::Overflow => flag(OVERFLOW),
        Cc::NotOverflow => maker.not(flag(OVERFLOW)),
    }
}

fn extra(flag: Live) -> Extra {
    match flag {
        ZERO => Extra::Zero,
        SIGN => Extra::Sign,
        CARRY => Extra::Carry,
        _ => Extra::Overflow,
    }
}

impl State<'_, '_> {
    /// The value of a condition over the flags in registers.
    pub(super) fn flag_condition(&mut self, cc: Cc) -> Val {
        let maker = self.maker();
        assemble(cc, |flag| self.read_extra(extra(flag)), maker)
    }

    /// Writes the flags that are needed to registers.
    pub(super) fn write_flags(&mut self, flags: &Flags, needed: Live) {
        for flag in [ZERO, SIGN, CARRY, OVERFLOW] {
            if needed & flag != 0 {
                let value = flags.flag(flag, self.maker());
                self.set_extra(extra(flag), value);
            }
        }
    }

    /// Writes the carry to its register.
    pub(super) fn write_carry(&mut self, value: Val) {
        self.set_extra(Extra::Carry, value);
    }
}
