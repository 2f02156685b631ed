//! Translates the instructions of one thread into statements.

use super::flags::Flags;
use super::ir::{Instr, Mem, Opnd};
use super::liveness::{CARRY, FLAGS, Live, OVERFLOW, SIGN, flags_set, looks_at};
use super::memory::Located;
use super::mnemonics::{Cc, Op};
use super::registers::{Register, Width};
use super::state::{Extra, State, Unresolved};
use super::values::{Maker, Val};
use super::variables::too_wide;
use crate::generate::goto;
use palisade_base::Diagnostic;
use palisade_program::written::{BinaryOp, StmtKind};
use std::sync::Arc;

/// The code of a thread and what is known about it.
#[derive(Clone, Copy)]
pub(super) struct Code<'c> {
    pub(super) instrs: &'c [Option<Instr>],
    /// What is needed after each instruction.
    pub(super) live: &'c [Live],
    /// The name of the label for a jump to each position. The last position is the end of the thread.
    pub(super) labels: &'c [Option<Arc<str>>],
}

/// Where the result of an instruction goes.
pub(super) enum Destination {
    Register(Register),
    Memory(Located),
}

pub(super) type Done = Result<(), Unresolved>;

impl State<'_, '_> {
    /// Translates one instruction. Returns whether it included the next one.
    pub(super) fn instruction(&mut self, code: Code<'_>, position: usize) -> bool {
        let Some(instr) = &code.instrs[position] else { return false };
        self.span = instr.span;
        let step = Step { code, position, instr };
        // If it fails, the error has been reported.
        self.step(step).unwrap_or(false)
    }

    fn step(&mut self, step: Step<'_>) -> Result<bool, Unresolved> {
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
    pub(super) fn value(&mut self, operand: &Opnd, width: Width) -> Result<Val, Unresolved> {
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
    pub(super) fn destination(&mut self, instr: &Instr) -> Result<(Destination, Width), Unresolved> {
        match instr.destination.expect("checked: the instruction has a destination") {
            Opnd::Register(register, _) => Ok((Destination::Register(register), register.part.width())),
            Opnd::Memory(memory) => {
                let located = self.locate_for(&memory, instr)?;
                let width = located.width;
                Ok((Destination::Memory(located), width))
            }
            Opnd::Number(..) | Opnd::Address(..) => unreachable!("checked: a constant is not a destination"),
        }
    }

    /// A memory operand that the instruction changes.
    pub(super) fn locate_for(&mut self, memory: &Mem, instr: &Instr) -> Result<Located, Unresolved> {
        let located = self.locate(memory, instr.width)?;
        self.whole_variable(&located, instr.span)?;
        Ok(located)
    }

    pub(super) fn source(&mut self, instr: &Instr, width: Width) -> Result<Val, Unresolved> {
        let operand = instr.source.expect("checked: the instruction has a source");
        self.value(&operand, width)
    }

    /// The width of an instruction that changes nothing in memory.
    pub(super) fn read_width(&mut self, instr: &Instr) -> Result<Width, Unresolved> {
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

    pub(super) fn old(&mut self, destination: &Destination) -> Val {
        match destination {
            Destination::Register(register) => self.read_register(*register),
            Destination::Memory(located) => self.load(located),
        }
    }

    pub(super) fn put(&mut self, destination: &Destination, value: Val) {
        match destination {
            Destination::Register(register) => self.write_register(*register, value),
            Destination::Memory(located) => self.store(located, value),
        }
    }

    /// Addresses count cells, not bytes, so arithmetic on them is rejected.
    pub(super) fn no_address(&mut self, values: &[&Val]) -> Done {
        if values.iter().all(|value| value.facts.points == 0) {
            return Ok(());
        }
        let span = self.span;
        self.fail(|| {
            Diagnostic::error("address-arithmetic", "arithmetic on addresses is not supported")
                .at(span, "")
                .help("use an offset in the memory operand: `8(%rax)` or `[rax+8]`")
        })
    }

    // Control flow.

    fn jump(&mut self, step: Step<'_>) {
        let label = step.label();
        self.emit(StmtKind::Goto(palisade_program::written::Name::new(label, self.span)));
    }

    pub(super) fn branch(&mut self, step: Step<'_>, condition: Val) {
        let label = step.label();
        if let Some(condition) = condition.expr {
            let then = vec![goto(&label, self.span)];
            self.emit(StmtKind::If { condition, then, otherwise: Vec::new() });
        }
    }

    /// Handles the flags of an instruction. If only the next instruction reads them, translates that one too
    /// and returns true. Otherwise writes the flags that are needed, if any, and returns false. A value that
    /// is not an atom is used only once.
    pub(super) fn conclude(
        &mut self,
        step: Step<'_>,
        flags: impl FnOnce(&mut Self) -> Flags,
    ) -> Result<bool, Unresolved> {
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
                // An error in the next instruction has been reported. It counts as translated anyway.
                self.set(next, condition).ok();
            }
        }
        Ok(true)
    }

    /// Makes every value of the flags an atom, so that it can be used several times.
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
                Diagnostic::error("operand-size", format!("this cannot widen {from} bits to {width}"))
                    .at(span, "")
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
                        "the address of an element selected by a register is not supported",
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
        // Even if nothing is moved, the upper half of a 64-bit register is cleared.
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
}

/// The instruction being translated.
#[derive(Clone, Copy)]
pub(super) struct Step<'c> {
    pub(super) code: Code<'c>,
    pub(super) position: usize,
    pub(super) instr: &'c Instr,
}

impl<'c> Step<'c> {
    pub(super) fn live(self) -> Live {
        self.code.live[self.position]
    }

    /// The flags that this instruction has to provide.
    pub(super) fn needed(self) -> Live {
        self.live() & flags_set(self.instr.op) & FLAGS
    }

    /// The name of the label it jumps to.
    fn label(self) -> Arc<str> {
        let target = self.instr.target.expect("only jumps have labels");
        self.code.labels[target].clone().expect("every target has a label")
    }

    /// The next instruction and its condition, if it is the only one that reads the flags of this one.
    pub(super) fn only_reader(self, needed: Live) -> Option<(&'c Instr, Cc)> {
        let next = self.position + 1;
        let instr = self.code.instrs.get(next)?.as_ref()?;
        let (Op::Jcc(cc) | Op::Set(cc)) = instr.op else { return None };
        let is_only_reader = self.code.labels[next].is_none() && self.code.live[next] & FLAGS & needed == 0;
        let provides_all = looks_at(cc) & !flags_set(self.instr.op) == 0;
        (is_only_reader && provides_all && needed & looks_at(cc) == needed).then_some((instr, cc))
    }
}

pub(super) fn same_register(a: &Opnd, b: &Opnd) -> bool {
    matches!((a, b), (Opnd::Register(a, _), Opnd::Register(b, _)) if a == b)
}
