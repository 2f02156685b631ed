//! Exchanges: `xchg`, `xadd` and `cmpxchg`.

use super::arithmetic::Change;
use super::bank::bit;
use super::flags::Flags;
use super::ir::{Instr, Opnd};
use super::liveness::ZERO;
use super::mnemonics::{Cc, Op};
use super::registers::{Family, Register};
use super::state::{Extra, State, Unresolved};
use super::values::{Facts, Maker, Val};
use super::walk::{Destination, Done, Step};
use palisade_program::written::{BinaryOp, Rmw, StmtKind};

impl State<'_, '_> {
    pub(super) fn exchange(&mut self, instr: &Instr) -> Done {
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

    pub(super) fn exchange_add(&mut self, step: Step<'_>) -> Result<bool, Unresolved> {
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

    pub(super) fn compare_exchange(&mut self, step: Step<'_>) -> Result<bool, Unresolved> {
        let instr = step.instr;
        let (destination, width) = self.destination(instr)?;
        let accumulator = Register::accumulator(width);
        let expected = self.read_register(accumulator);
        let new = self.source(instr, width)?;
        let old = self.old(&destination);
        let needed = step.needed();
        let accumulator_dead = step.live() & bit(Family::ACCUMULATOR) == 0;
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

    /// Handles the result of a `cas`.
    fn swapped(&mut self, step: Step<'_>, swapped: Val) -> Result<bool, Unresolved> {
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
