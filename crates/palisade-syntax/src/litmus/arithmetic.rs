//! Comparisons and arithmetic, with the flags they set.

use super::flags::Flags;
use super::ir::{Instr, Opnd};
use super::liveness::{CARRY, OVERFLOW};
use super::memory::Located;
use super::mnemonics::{Arith, BitOp, Op, Shift};
use super::registers::Width;
use super::state::{Extra, State, Unresolved};
use super::values::{Facts, Maker, Val};
use super::walk::{Destination, Done, Step, same_register};
use palisade_base::Diagnostic;
use palisade_program::written::{BinaryOp, Expr, ExprKind, Rmw, StmtKind};

impl State<'_, '_> {
    pub(super) fn compare(&mut self, step: Step<'_>) -> Result<bool, Unresolved> {
        let instr = step.instr;
        let width = self.read_width(instr)?;
        let first = instr.destination.expect("checked: two operands");
        let second = instr.source.expect("checked: two operands");
        let same = same_register(&first, &second);
        let a = self.value(&first, width)?;
        let b = self.value(&second, width)?;
        if step.needed() == 0 {
            // The loads happen, but the result is unused. They cannot be observed, so no statement is
            // emitted.
            return Ok(false);
        }
        self.conclude(step, |state| match instr.op {
            Op::Test if same => Flags::Logic(a),
            Op::Test => {
                let result = state.maker().bitwise(BinaryOp::BitAnd, a, b);
                Flags::Logic(result)
            }
            _ => Flags::Difference(a, b, width),
        })
    }

    pub(super) fn arithmetic(&mut self, step: Step<'_>, op: Arith) -> Result<bool, Unresolved> {
        let instr = step.instr;
        let (destination, width) = self.destination(instr)?;
        let cleared = matches!(op, Arith::Xor | Arith::Sub)
            && instr.destination.zip(instr.source).is_some_and(|(a, b)| same_register(&a, &b));
        if cleared {
            let zero = self.maker().constant(0);
            self.put(&destination, zero.clone());
            return self.conclude(step, |_| Flags::Logic(zero));
        }
        let operand = self.source(instr, width)?;
        let change = match op {
            Arith::Add => Change { op: BinaryOp::Add, rmw: Rmw::FetchAdd },
            Arith::Sub => Change { op: BinaryOp::Sub, rmw: Rmw::FetchSub },
            Arith::And => Change { op: BinaryOp::BitAnd, rmw: Rmw::FetchAnd },
            Arith::Or => Change { op: BinaryOp::BitOr, rmw: Rmw::FetchOr },
            Arith::Xor => Change { op: BinaryOp::BitXor, rmw: Rmw::FetchXor },
        };
        let flags = move |maker: Maker, a: Val, b: Val| match op {
            Arith::Add => Flags::Sum(a, b, width),
            Arith::Sub => Flags::Difference(a, b, width),
            _ => Flags::Logic(maker.bitwise(change.op, a, b)),
        };
        self.change(step, destination, width, change, operand, flags)
    }

    pub(super) fn stepwise(&mut self, step: Step<'_>, op: BinaryOp) -> Result<bool, Unresolved> {
        let (destination, width) = self.destination(step.instr)?;
        let rmw = if op == BinaryOp::Add { Rmw::FetchAdd } else { Rmw::FetchSub };
        let one = self.maker().constant(1);
        self.change(step, destination, width, Change { op, rmw }, one, move |_, a, _| {
            Flags::Step(op, a, width)
        })
    }

    /// `destination op= operand`, locked or not. The flags depend on the values before the operation.
    fn change(
        &mut self,
        step: Step<'_>,
        destination: Destination,
        width: Width,
        change: Change,
        operand: Val,
        flags: impl FnOnce(Maker, Val, Val) -> Flags,
    ) -> Result<bool, Unresolved> {
        let old = self.old(&destination);
        let harmless =
            matches!(change.op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::BitOr | BinaryOp::BitXor)
                && operand.facts == Facts::exactly(0);
        if !harmless {
            self.no_address(&[&old, &operand])?;
        }
        let needed = step.needed();
        let overflows = change.is_sum() && Maker::may_overflow(change.op, &old.facts, &operand.facts, width);
        if let (Destination::Memory(located), true) = (&destination, step.instr.locked) {
            let operand = if needed != 0 || overflows { self.atom(Extra::Result, operand) } else { operand };
            let old =
                self.locked_change(located, width, change, &operand, needed != 0 || overflows, overflows);
            let maker = self.maker();
            return self.conclude(step, |_| flags(maker, old, operand));
        }
        if needed == 0 && !(overflows && width == Width::QUAD) {
            let result = change.apply(self.maker(), old, operand, width);
            self.put(&destination, result);
            return Ok(false);
        }
        let old = self.atom(Extra::Temporary, old);
        let operand = self.atom(Extra::Result, operand);
        let result = change.apply(self.maker(), old.clone(), operand.clone(), width);
        // The result can be read from its destination. If the destination is a register, the operands can no
        // longer be read.
        let from_result = needed & (CARRY | OVERFLOW) == 0 || !change.is_sum();
        if !from_result {
            let flags = flags(self.maker(), old, operand);
            self.write_flags(&flags, needed);
            self.put(&destination, result);
            return Ok(false);
        }
        let result = match destination {
            Destination::Register(register) => {
                self.put(&destination, result);
                self.read_register(register)
            }
            Destination::Memory(_) => {
                let result = self.atom(Extra::Temporary, result);
                self.put(&destination, result.clone());
                result
            }
        };
        self.conclude(step, |_| Flags::Logic(result))
    }

    /// A locked change of memory. Returns the previous value if it is needed.
    pub(super) fn locked_change(
        &mut self,
        located: &Located,
        width: Width,
        change: Change,
        operand: &Val,
        wants_old: bool,
        overflows: bool,
    ) -> Val {
        let old = self.load(located);
        let result = change.apply(self.maker(), Val { loads: false, ..old.clone() }, operand.clone(), width);
        self.note_store(located, &result.facts);
        if overflows {
            return self.atomic(|state| {
                state.set_extra(Extra::Temporary, old);
                let old = state.read_extra(Extra::Temporary);
                let result = change.apply(state.maker(), old.clone(), operand.clone(), width);
                state.store(located, result);
                old
            });
        }
        let fetched = self.fetch(change.rmw, located, vec![operand.clone()], old.facts);
        if wants_old {
            self.set_extra(Extra::Temporary, fetched);
            return self.read_extra(Extra::Temporary);
        }
        if let Some(fetched) = fetched.expr {
            self.emit(StmtKind::Eval(fetched));
        }
        self.maker().constant(0)
    }

    /// A locked instruction as an expression.
    pub(super) fn fetch(&self, rmw: Rmw, located: &Located, operands: Vec<Val>, facts: Facts) -> Val {
        let expr = located.place.clone().map(|place| {
            let operands = operands.into_iter().filter_map(|operand| operand.expr).collect();
            Expr::new(ExprKind::Locked(rmw, place, operands), self.span)
        });
        Val { loads: true, ..Val::new(expr, facts) }
    }

    pub(super) fn negate(&mut self, step: Step<'_>) -> Result<bool, Unresolved> {
        let (destination, width) = self.destination(step.instr)?;
        let old = self.old(&destination);
        self.no_address(&[&old])?;
        let locked = step.instr.locked;
        let needed = step.needed();
        let body = |state: &mut Self| {
            let old =
                if needed != 0 || width == Width::QUAD { state.atom(Extra::Temporary, old) } else { old };
            let zero = state.maker().constant(0);
            // The flags are those of `0 - old`.
            let flags = Flags::Difference(zero.clone(), old.clone(), width);
            if needed != 0 {
                state.write_flags(&flags, needed);
            }
            let result = state.maker().sub(zero, old, width);
            state.put(&destination, result);
        };
        if locked {
            self.atomic(body);
        } else {
            body(self);
        }
        Ok(false)
    }

    pub(super) fn complement(&mut self, instr: &Instr) -> Done {
        let (destination, width) = self.destination(instr)?;
        let old = self.old(&destination);
        self.no_address(&[&old])?;
        if let (Destination::Memory(located), true) = (&destination, instr.locked) {
            let ones = self.maker().constant(-1);
            let change = Change { op: BinaryOp::BitXor, rmw: Rmw::FetchXor };
            self.locked_change(located, width, change, &ones, false, false);
            return Ok(());
        }
        let result = self.maker().complement(old);
        self.put(&destination, result);
        Ok(())
    }

    pub(super) fn shift(&mut self, step: Step<'_>, shift: Shift) -> Result<bool, Unresolved> {
        let (destination, width) = self.destination(step.instr)?;
        let count = match step.instr.source {
            None => 1,
            Some(Opnd::Number(count, _)) => (count & if width == Width::QUAD { 63 } else { 31 }) as u32,
            _ => unreachable!("checked: counts are constants"),
        };
        if count == 0 {
            return Ok(false);
        }
        let needed = step.needed();
        if needed & (CARRY | OVERFLOW) != 0 {
            let span = self.span;
            return self.fail(|| {
                Diagnostic::error("unsupported-flag", "the carry and overflow of shifts are not modelled")
                    .at(span, "")
            });
        }
        let old = self.old(&destination);
        self.no_address(&[&old])?;
        let maker = self.maker();
        let result = match shift {
            Shift::Arithmetic => maker.shift_arithmetic(old, count.min(width.0 - 1)),
            _ if count >= width.0 => maker.constant(0),
            Shift::Left => maker.shift_left(old, count, width),
            Shift::Logical => maker.shift_logical(old, count, width),
        };
        let result = if needed != 0 { self.atom(Extra::Temporary, result) } else { result };
        self.put(&destination, result.clone());
        self.conclude(step, |_| Flags::Shifted(result))
    }

    pub(super) fn bit(&mut self, step: Step<'_>, op: BitOp) -> Done {
        let instr = step.instr;
        let (destination, width) = if op == BitOp::Keep {
            let width = self.read_width(instr)?;
            match instr.destination.expect("checked: two operands") {
                Opnd::Register(register, _) => (Destination::Register(register), width),
                Opnd::Memory(memory) => (Destination::Memory(self.locate(&memory, Some(width))?), width),
                _ => unreachable!("checked: a constant is not a destination"),
            }
        } else {
            self.destination(instr)?
        };
        let Some(Opnd::Number(number, span)) = instr.source else {
            unreachable!("checked: bits are constants")
        };
        let Some(number) = u32::try_from(number).ok().filter(|&number| number < width.0) else {
            return self.fail(|| {
                Diagnostic::error(
                    "bad-operand",
                    format!("bit {number} is out of range for an operand of {width} bits"),
                )
                .at(span, "")
            });
        };
        let mask = width.signed(1 << number).expect("one bit of the width");
        let (op, rmw, operand) = match op {
            BitOp::Keep => (None, Rmw::FetchOr, 0),
            BitOp::Set => (Some(BinaryOp::BitOr), Rmw::FetchOr, mask),
            BitOp::Reset => (Some(BinaryOp::BitAnd), Rmw::FetchAnd, !mask),
            BitOp::Complement => (Some(BinaryOp::BitXor), Rmw::FetchXor, mask),
        };
        let old = self.old(&destination);
        self.no_address(&[&old])?;
        let wants_old = step.needed() & CARRY != 0;
        let operand = self.maker().constant(operand);
        let old = match (&destination, op) {
            (Destination::Memory(located), Some(op)) if instr.locked => {
                self.locked_change(located, width, Change { op, rmw }, &operand, wants_old, false)
            }
            (_, None) => old,
            (_, Some(op)) => {
                let old = if wants_old {
                    self.set_extra(Extra::Temporary, old);
                    self.read_extra(Extra::Temporary)
                } else {
                    old
                };
                let result = self.maker().bitwise(op, old.clone(), operand);
                self.put(&destination, result);
                old
            }
        };
        if wants_old {
            let maker = self.maker();
            let shifted = maker.shift_arithmetic(old, number);
            let bit = maker.bitwise(BinaryOp::BitAnd, shifted, maker.constant(1));
            self.write_carry(bit);
        }
        Ok(())
    }
}

/// How memory or a register changes.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) op: BinaryOp,
    pub(super) rmw: Rmw,
}

impl Change {
    fn is_sum(self) -> bool {
        matches!(self.op, BinaryOp::Add | BinaryOp::Sub)
    }

    pub(super) fn apply(self, maker: Maker, old: Val, operand: Val, width: Width) -> Val {
        match self.op {
            BinaryOp::Add => maker.add(old, operand, width),
            BinaryOp::Sub => maker.sub(old, operand, width),
            op => maker.bitwise(op, old, operand),
        }
    }
}
