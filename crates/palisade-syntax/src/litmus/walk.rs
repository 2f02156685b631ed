//! One thread's instructions to statements.

use super::flags::Flags;
use super::ir::{Instr, Mem, Opnd};
use super::liveness::{CARRY, FLAGS, Live, OVERFLOW, SIGN, ZERO, flags_set, looks_at};
use super::mnemonics::{Arith, BitOp, Cc, Op, Shift};
use super::registers::{Family, Register, Width};
use super::state::{Extra, Located, State, Unfound};
use super::values::{Facts, Maker, Val};
use super::variables::too_wide;
use crate::generate::goto;
use palisade_base::Diagnostic;
use palisade_program::written::{BinaryOp, Expr, ExprKind, Rmw, StmtKind};
use std::sync::Arc;

/// The code of a thread with what is known about it.
#[derive(Clone, Copy)]
pub(super) struct Code<'c> {
    pub(super) instrs: &'c [Option<Instr>],
    /// What is needed behind each instruction.
    pub(super) live: &'c [Live],
    /// The name of the label that a jump to each position uses; the last is the end of the thread.
    pub(super) labels: &'c [Option<Arc<str>>],
}

/// Where the result of an instruction goes.
enum Destination {
    Register(Register),
    Memory(Located),
}

type Done = Result<(), Unfound>;

impl State<'_, '_> {
    /// Translates one instruction; whether the next one is done with it.
    pub(super) fn instruction(&mut self, code: Code<'_>, position: usize) -> bool {
        let Some(instr) = &code.instrs[position] else { return false };
        self.span = instr.span;
        let step = Step { code, position, instr };
        // What could not be done was reported.
        self.step(step).unwrap_or(false)
    }

    fn step(&mut self, step: Step<'_>) -> Result<bool, Unfound> {
        let instr = step.instr;
        match instr.op {
            Op::Nothing => {}
            Op::Mfence => self.emit(StmtKind::Fence),
            Op::Sfence => self.emit(StmtKind::StoreFence),
            Op::Jmp => self.jump(step),
            Op::Jcc(cc) => {
                let condition = self.flag_condition(cc);
                self.branch(step, condition);
            }
            Op::Mov => self.mov(instr)?,
            Op::MovZero(from) | Op::MovSign(from) => self.extend(instr, from)?,
            Op::Lea => self.lea(instr)?,
            Op::Set(cc) => {
                let condition = self.flag_condition(cc);
                self.set(instr, condition)?;
            }
            Op::Cmov(cc) => self.cmov(instr, cc)?,
            Op::Cmp | Op::Test => return self.compare(step),
            Op::Binary(op) => return self.arithmetic(step, op),
            Op::Inc => return self.stepwise(step, BinaryOp::Add),
            Op::Dec => return self.stepwise(step, BinaryOp::Sub),
            Op::Neg => return self.negate(step),
            Op::Not => self.complement(instr)?,
            Op::Shift(shift) => return self.shift(step, shift),
            Op::Bit(op) => self.bit(step, op)?,
            Op::Xchg | Op::XchgUnlocked => self.exchange(instr)?,
            Op::Xadd => return self.exchange_add(step),
            Op::Cmpxchg => return self.compare_exchange(step),
        }
        Ok(false)
    }

    // Operands.

    /// A constant, register or memory operand of a width.
    fn value(&mut self, operand: &Opnd, width: Width) -> Result<Val, Unfound> {
        match operand {
            Opnd::Register(register, _) => Ok(self.read_register(*register)),
            Opnd::Number(number, span) => match width.signed(*number) {
                Some(number) => Ok(Maker { span: *span, ..self.maker() }.constant(number)),
                None => self.fail(|| too_wide(*number, width, *span)),
            },
            Opnd::Address(var, bytes, span) => self.address(*var, *bytes, *span),
            Opnd::Memory(memory) => {
                let located = self.locate(memory, Some(width))?;
                Ok(self.load(&located))
            }
        }
    }

    /// A destination and the width the instruction works on.
    fn destination(&mut self, instr: &Instr) -> Result<(Destination, Width), Unfound> {
        match instr.destination.expect("checked: the instruction has a destination") {
            Opnd::Register(register, _) => Ok((Destination::Register(register), register.part.width())),
            Opnd::Memory(memory) => {
                let located = self.locate_for(&memory, instr)?;
                let width = located.width;
                Ok((Destination::Memory(located), width))
            }
            Opnd::Number(..) | Opnd::Address(..) => unreachable!("checked: a constant is no destination"),
        }
    }

    /// A memory operand that the instruction changes.
    fn locate_for(&mut self, memory: &Mem, instr: &Instr) -> Result<Located, Unfound> {
        let located = self.locate(memory, instr.width)?;
        self.whole_variable(&located, instr.span)?;
        Ok(located)
    }

    fn source(&mut self, instr: &Instr, width: Width) -> Result<Val, Unfound> {
        let operand = instr.source.expect("checked: the instruction has a source");
        self.value(&operand, width)
    }

    /// The width of an instruction that changes nothing in memory.
    fn read_width(&mut self, instr: &Instr) -> Result<Width, Unfound> {
        if let Some(width) = instr.width {
            return Ok(width);
        }
        for operand in [instr.destination, instr.source].into_iter().flatten() {
            if let Opnd::Memory(memory) = operand {
                return Ok(self.locate(&memory, None)?.width);
            }
        }
        Ok(Width::LONG)
    }

    fn old(&mut self, destination: &Destination) -> Val {
        match destination {
            Destination::Register(register) => self.read_register(*register),
            Destination::Memory(located) => self.load(located),
        }
    }

    fn put(&mut self, destination: &Destination, value: Val) {
        match destination {
            Destination::Register(register) => self.write_register(*register, value),
            Destination::Memory(located) => self.store(located, value),
        }
    }

    /// Addresses count cells, not bytes: there is no calculating with them.
    fn no_address(&mut self, values: &[&Val]) -> Done {
        if values.iter().all(|value| value.facts.points == 0) {
            return Ok(());
        }
        let span = self.span;
        self.fail(|| {
            Diagnostic::error("address-arithmetic", "calculating with addresses is not supported")
                .at(span, "")
                .help("use an offset in the memory operand: `8(%rax)` or `[rax+8]`")
        })
    }

    // Control flow.

    fn jump(&mut self, step: Step<'_>) {
        let label = step.label();
        self.emit(StmtKind::Goto(palisade_program::written::Name::new(label, self.span)));
    }

    fn branch(&mut self, step: Step<'_>, condition: Val) {
        let label = step.label();
        if let Some(condition) = condition.expr {
            let then = vec![goto(&label, self.span)];
            self.emit(StmtKind::If { condition, then, otherwise: Vec::new() });
        }
    }

    /// Deals with the flags of an instruction: writes those that are needed, or, if the next instruction is the only one
    /// that looks at them, does that one, too, and says so. Values are written once, unless they are atoms.
    fn conclude(&mut self, step: Step<'_>, flags: impl FnOnce(&mut Self) -> Flags) -> Result<bool, Unfound> {
        let needed = step.needed();
        if needed == 0 {
            return Ok(false);
        }
        let mut flags = flags(self);
        let Some((next, cc)) = step.only_reader(needed) else {
            if needed.count_ones() > 1 && !flags.is_atomic() || needed & (SIGN | CARRY | OVERFLOW) != 0 {
                flags = self.atomic_flags(flags);
            }
            self.write_flags(&flags, needed);
            return Ok(false);
        };
        if !flags.is_direct(cc) {
            flags = self.atomic_flags(flags);
        }
        let condition = flags.condition(cc, self.maker());
        let reader = Step { position: step.position + 1, instr: next, ..step };
        self.span = step.instr.span.to(next.span);
        match next.op {
            Op::Jcc(_) => self.branch(reader, condition),
            _ => {
                self.span = next.span;
                // An error in it was reported; it is done all the same.
                self.set(next, condition).ok();
            }
        }
        Ok(true)
    }

    /// Makes every value of the flags one that can be written several times.
    fn atomic_flags(&mut self, flags: Flags) -> Flags {
        let (first, second) = (Extra::Temporary, Extra::Result);
        match flags {
            Flags::Difference(a, b, width) => {
                Flags::Difference(self.atom(first, a), self.atom(second, b), width)
            }
            Flags::Sum(a, b, width) => Flags::Sum(self.atom(first, a), self.atom(second, b), width),
            Flags::Logic(a) => Flags::Logic(self.atom(first, a)),
            Flags::Step(op, a, width) => Flags::Step(op, self.atom(first, a), width),
            Flags::Shifted(a) => Flags::Shifted(self.atom(first, a)),
        }
    }

    // Moves.

    fn mov(&mut self, instr: &Instr) -> Done {
        let (destination, width) = self.destination(instr)?;
        let value = self.source(instr, width)?;
        self.put(&destination, value);
        Ok(())
    }

    fn extend(&mut self, instr: &Instr, from: Option<Width>) -> Done {
        let (destination, width) = self.destination(instr)?;
        let from = match (from, instr.source) {
            (Some(from), _) => from,
            (None, Some(Opnd::Memory(memory))) => self.locate(&memory, None)?.width,
            _ => Width::BYTE,
        };
        if from >= width {
            let span = self.span;
            return self.fail(|| {
                Diagnostic::error("operand-size", format!("this widens {from} bits to {width}")).at(span, "")
            });
        }
        let value = self.source(instr, from)?;
        let value = match instr.op {
            Op::MovZero(_) => self.maker().zero_extend(value, from),
            _ => value,
        };
        self.put(&destination, value);
        Ok(())
    }

    fn lea(&mut self, instr: &Instr) -> Done {
        let Some(Opnd::Memory(memory)) = instr.source else { unreachable!("checked: lea takes an address") };
        let (destination, width) = self.destination(instr)?;
        let maker = self.maker();
        let value = match (memory.var, memory.base, memory.index) {
            (Some(var), None, None) => self.address(var, memory.displacement, memory.span)?,
            (None, base, index) => {
                let mut sum = maker.constant(memory.displacement);
                let base = base.map(|base| (base, 1));
                for (register, scale) in base.into_iter().chain(index) {
                    let value = self.read_register(register);
                    if memory.displacement == 0 && index.is_none() {
                        // A plain copy.
                        sum = value;
                        continue;
                    }
                    self.no_address(&[&value])?;
                    let shift = u32::try_from(scale).unwrap_or(1).trailing_zeros();
                    let scaled = if scale == 0 {
                        maker.constant(0)
                    } else if shift > 0 {
                        maker.shift_left(value, shift, Width::QUAD)
                    } else {
                        value
                    };
                    let (sum_atom, scaled) =
                        (self.atom(Extra::Temporary, sum), self.atom(Extra::Result, scaled));
                    sum = maker.add(sum_atom, scaled, Width::QUAD);
                }
                maker.sign_extend(sum, width)
            }
            _ => {
                let span = memory.span;
                return self.fail(|| {
                    Diagnostic::error(
                        "address-arithmetic",
                        "the address of an element that a register selects is not supported",
                    )
                    .at(span, "")
                });
            }
        };
        self.put(&destination, value);
        Ok(())
    }

    fn set(&mut self, instr: &Instr, condition: Val) -> Done {
        let (destination, _) = self.destination(instr)?;
        self.put(&destination, condition);
        Ok(())
    }

    fn cmov(&mut self, instr: &Instr, cc: Cc) -> Done {
        let condition = self.flag_condition(cc);
        let (destination, width) = self.destination(instr)?;
        let value = self.source(instr, width)?;
        let then = self.maybe(|state| state.put(&destination, value));
        let Destination::Register(register) = destination else {
            unreachable!("checked: cmov sets a register")
        };
        // Even without the move the upper half of a 64-bit register is cleared.
        let mut otherwise = Vec::new();
        if width == Width::LONG && self.bank.width(register.family) == Width::QUAD {
            otherwise = self.maybe(|state| {
                let value = state.read_register(register);
                state.write_register(register, value);
            });
        }
        if let Some(condition) = condition.expr {
            self.emit(StmtKind::If { condition, then, otherwise });
        }
        Ok(())
    }

    // Comparisons and arithmetic.

    fn compare(&mut self, step: Step<'_>) -> Result<bool, Unfound> {
        let instr = step.instr;
        let width = self.read_width(instr)?;
        let first = instr.destination.expect("checked: two operands");
        let second = instr.source.expect("checked: two operands");
        let same = same_register(&first, &second);
        let a = self.value(&first, width)?;
        let b = self.value(&second, width)?;
        if step.needed() == 0 {
            // The loads happen, though nobody looks at the result. They cannot be seen, so nothing is written.
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

    fn arithmetic(&mut self, step: Step<'_>, op: Arith) -> Result<bool, Unfound> {
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

    fn stepwise(&mut self, step: Step<'_>, op: BinaryOp) -> Result<bool, Unfound> {
        let (destination, width) = self.destination(step.instr)?;
        let rmw = if op == BinaryOp::Add { Rmw::FetchAdd } else { Rmw::FetchSub };
        let one = self.maker().constant(1);
        self.change(step, destination, width, Change { op, rmw }, one, move |_, a, _| {
            Flags::Step(op, a, width)
        })
    }

    /// `destination op= operand`, locked or not, with flags made from the values before.
    fn change(
        &mut self,
        step: Step<'_>,
        destination: Destination,
        width: Width,
        change: Change,
        operand: Val,
        flags: impl FnOnce(Maker, Val, Val) -> Flags,
    ) -> Result<bool, Unfound> {
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
        // The result is known from its destination, the operands no longer are if the destination is a register.
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

    /// A locked change of memory; the value before, if it is asked for.
    fn locked_change(
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
    fn fetch(&self, rmw: Rmw, located: &Located, operands: Vec<Val>, facts: Facts) -> Val {
        let expr = located.place.clone().map(|place| {
            let operands = operands.into_iter().filter_map(|operand| operand.expr).collect();
            Expr::new(ExprKind::Locked(rmw, place, operands), self.span)
        });
        Val { loads: true, ..Val::new(expr, facts) }
    }

    fn negate(&mut self, step: Step<'_>) -> Result<bool, Unfound> {
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

    fn complement(&mut self, instr: &Instr) -> Done {
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

    fn shift(&mut self, step: Step<'_>, shift: Shift) -> Result<bool, Unfound> {
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

    fn bit(&mut self, step: Step<'_>, op: BitOp) -> Done {
        let instr = step.instr;
        let (destination, width) = if op == BitOp::Keep {
            let width = self.read_width(instr)?;
            match instr.destination.expect("checked: two operands") {
                Opnd::Register(register, _) => (Destination::Register(register), width),
                Opnd::Memory(memory) => (Destination::Memory(self.locate(&memory, Some(width))?), width),
                _ => unreachable!("checked: a constant is no destination"),
            }
        } else {
            self.destination(instr)?
        };
        let Some(Opnd::Number(number, span)) = instr.source else {
            unreachable!("checked: bits are constants")
        };
        let Some(number) = u32::try_from(number).ok().filter(|&number| number < width.0) else {
            return self.fail(|| {
                Diagnostic::error("bad-operand", format!("there is no bit {number} in {width} bits"))
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

    // Exchanges.

    fn exchange(&mut self, instr: &Instr) -> Done {
        let (first, second) =
            (instr.destination.expect("checked: two operands"), instr.source.expect("checked: two operands"));
        let (memory, register) = match (first, second) {
            (Opnd::Memory(memory), Opnd::Register(register, _))
            | (Opnd::Register(register, _), Opnd::Memory(memory)) => (memory, register),
            (Opnd::Register(a, _), Opnd::Register(b, _)) => {
                let old = self.read_register(a);
                self.set_extra(Extra::Temporary, old);
                let other = self.read_register(b);
                self.write_register(a, other);
                let old = self.read_extra(Extra::Temporary);
                self.write_register(b, old);
                return Ok(());
            }
            _ => unreachable!("checked: at most one operand in memory, and no constants"),
        };
        let located = self.locate_for(&memory, instr)?;
        let new = self.read_register(register);
        let old = self.load(&located);
        if instr.op == Op::XchgUnlocked {
            self.set_extra(Extra::Temporary, old);
            self.store(&located, new);
            let old = self.read_extra(Extra::Temporary);
            self.write_register(register, old);
            return Ok(());
        }
        self.note_store(&located, &new.facts);
        let fetched = self.fetch(Rmw::Exchange, &located, vec![new], old.facts);
        self.write_register(register, fetched);
        Ok(())
    }

    fn exchange_add(&mut self, step: Step<'_>) -> Result<bool, Unfound> {
        let instr = step.instr;
        let (destination, width) = self.destination(instr)?;
        let Some(Opnd::Register(register, _)) = instr.source else { unreachable!("checked: a register") };
        let added = self.read_register(register);
        let old = self.old(&destination);
        self.no_address(&[&old, &added])?;
        let needed = step.needed();
        let change = Change { op: BinaryOp::Add, rmw: Rmw::FetchAdd };
        let overflows = Maker::may_overflow(change.op, &old.facts, &added.facts, width);
        match &destination {
            Destination::Memory(located) if instr.locked && needed == 0 && !overflows => {
                let result =
                    change.apply(self.maker(), Val { loads: false, ..old.clone() }, added.clone(), width);
                self.note_store(located, &result.facts);
                let fetched = self.fetch(Rmw::FetchAdd, located, vec![added], old.facts);
                self.write_register(register, fetched);
            }
            _ => {
                let body = |state: &mut Self| {
                    let added = state.atom(Extra::Result, added);
                    state.set_extra(Extra::Temporary, old);
                    let old = state.read_extra(Extra::Temporary);
                    if needed != 0 {
                        let flags = Flags::Sum(old.clone(), added.clone(), width);
                        state.write_flags(&flags, needed);
                    }
                    let sum = state.maker().add(old.clone(), added, width);
                    state.put(&destination, sum);
                    // If both are the same register, it ends up with the sum.
                    if !matches!(destination, Destination::Register(first) if first == register) {
                        state.write_register(register, old);
                    }
                };
                if instr.locked {
                    self.atomic(body);
                } else {
                    body(self);
                }
            }
        }
        Ok(false)
    }

    fn compare_exchange(&mut self, step: Step<'_>) -> Result<bool, Unfound> {
        let instr = step.instr;
        let (destination, width) = self.destination(instr)?;
        let accumulator = Register::accumulator(width);
        let expected = self.read_register(accumulator);
        let new = self.source(instr, width)?;
        let old = self.old(&destination);
        let needed = step.needed();
        let accumulator_dead = step.live() & super::bank::bit(Family::ACCUMULATOR) == 0;
        if let Destination::Memory(located) = &destination
            && instr.locked
            && accumulator_dead
            && needed & !ZERO == 0
        {
            self.note_store(located, &new.facts);
            let swapped = self.fetch(Rmw::Cas, located, vec![expected, new], Facts::between(0, 1));
            return self.swapped(step, swapped);
        }
        let body = |state: &mut Self| {
            let old = if instr.locked && needed == 0 {
                old
            } else {
                state.set_extra(Extra::Temporary, old);
                state.read_extra(Extra::Temporary)
            };
            if needed != 0 {
                let expected = state.atom(Extra::Result, expected.clone());
                let flags = Flags::Difference(expected, old.clone(), width);
                state.write_flags(&flags, needed);
            }
            let equal = state.maker().compare(BinaryOp::Eq, old.clone(), expected);
            let then = state.maybe(|state| state.put(&destination, new));
            let otherwise = state.maybe(|state| state.write_register(accumulator, old));
            if let Some(condition) = equal.expr {
                state.emit(StmtKind::If { condition, then, otherwise });
            }
        };
        if instr.locked {
            self.atomic(body);
        } else {
            body(self);
        }
        Ok(false)
    }

    /// What is done with the answer of a `cas`.
    fn swapped(&mut self, step: Step<'_>, swapped: Val) -> Result<bool, Unfound> {
        let needed = step.needed();
        match step.only_reader(needed) {
            _ if needed == 0 => {
                if let Some(swapped) = swapped.expr {
                    self.emit(StmtKind::Eval(swapped));
                }
                Ok(false)
            }
            Some((next, cc)) if matches!(next.op, Op::Jcc(_)) => {
                let condition = if cc == Cc::Equal { swapped } else { self.maker().not(swapped) };
                self.span = step.instr.span.to(next.span);
                self.branch(Step { position: step.position + 1, instr: next, ..step }, condition);
                Ok(true)
            }
            _ => {
                self.set_extra(Extra::Zero, swapped);
                Ok(false)
            }
        }
    }
}

/// How memory or a register changes.
#[derive(Clone, Copy)]
struct Change {
    op: BinaryOp,
    rmw: Rmw,
}

impl Change {
    fn is_sum(self) -> bool {
        matches!(self.op, BinaryOp::Add | BinaryOp::Sub)
    }

    fn apply(self, maker: Maker, old: Val, operand: Val, width: Width) -> Val {
        match self.op {
            BinaryOp::Add => maker.add(old, operand, width),
            BinaryOp::Sub => maker.sub(old, operand, width),
            op => maker.bitwise(op, old, operand),
        }
    }
}

/// The instruction at hand.
#[derive(Clone, Copy)]
struct Step<'c> {
    code: Code<'c>,
    position: usize,
    instr: &'c Instr,
}

impl<'c> Step<'c> {
    fn live(self) -> Live {
        self.code.live[self.position]
    }

    /// The flags that this instruction has to provide.
    fn needed(self) -> Live {
        self.live() & flags_set(self.instr.op) & FLAGS
    }

    /// The name of the label it jumps to.
    fn label(self) -> Arc<str> {
        let target = self.instr.target.expect("only jumps have labels");
        self.code.labels[target].clone().expect("every target has a label")
    }

    /// The next instruction and its condition, if it alone looks at the flags of this one.
    fn only_reader(self, needed: Live) -> Option<(&'c Instr, Cc)> {
        let next = self.position + 1;
        let instr = self.code.instrs.get(next)?.as_ref()?;
        let (Op::Jcc(cc) | Op::Set(cc)) = instr.op else { return None };
        let apart = self.code.labels[next].is_none() && self.code.live[next] & FLAGS & needed == 0;
        let provides_all = looks_at(cc) & !flags_set(self.instr.op) == 0;
        (apart && provides_all && needed & looks_at(cc) == needed).then_some((instr, cc))
    }
}

fn same_register(a: &Opnd, b: &Opnd) -> bool {
    matches!((a, b), (Opnd::Register(a, _), Opnd::Register(b, _)) if a == b)
}
