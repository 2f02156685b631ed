//! The registers that each thread needs, and how many of their bits.
//!
//! A program keeps only those bits of a register that the test uses. A test that only uses `eax` gets a
//! register `eax`.

use super::ir::{Instr, Opnd};
use super::mnemonics::Op;
use super::registers::{Family, Part, Register, Width};
use super::test::{Condition, Location, Side, Test};
use super::variables::Variables;
use palisade_base::Span;
use rustc_hash::FxHashMap;

/// The registers of a thread.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    /// How many bits are kept; `None` if the thread does not use the register.
    pub(super) widths: [Option<Width>; Family::COUNT],
    /// The registers in the order of their first use.
    pub(super) order: Vec<Family>,
    /// The registers that the final condition mentions, as a bit set.
    pub(super) observed: u32,
    /// The registers that the code or the initial state sets, as a bit set.
    set: u32,
}

impl Bank {
    fn new() -> Bank {
        Bank { widths: [None; Family::COUNT], order: Vec::new(), observed: 0, set: 0 }
    }

    fn uses(&mut self, register: Register) {
        let kept = &mut self.widths[usize::from(register.family.0)];
        if kept.is_none() {
            self.order.push(register.family);
        }
        *kept = (*kept).max(Some(register.part.reach()));
    }

    fn sets(&mut self, register: Register) {
        self.uses(register);
        self.set |= bit(register.family);
    }

    fn operand(&mut self, operand: &Opnd) {
        match operand {
            Opnd::Register(register, _) => self.uses(*register),
            Opnd::Memory(memory) => {
                memory
                    .base
                    .into_iter()
                    .chain(memory.index.map(|(index, _)| index))
                    .for_each(|r| self.uses(r));
            }
            Opnd::Number(..) | Opnd::Address(..) => {}
        }
    }

    /// How many bits are kept of a register that the thread uses.
    pub(super) fn width(&self, family: Family) -> Width {
        self.widths[usize::from(family.0)].unwrap_or(Width::QUAD)
    }
}

/// A bit set with one register.
pub(super) fn bit(family: Family) -> u32 {
    1 << family.0
}

/// The registers of each thread, in the order of the threads. Registers among `locations` are kept like those
/// of a condition. Also returns the spans where a condition mentions a register that is never set.
pub(super) fn banks(
    test: &Test<'_>,
    code: &[Vec<Option<Instr>>],
    variables: &Variables<'_>,
    locations: &[Location<'_>],
) -> (Vec<Bank>, Vec<Span>) {
    let mut banks: Vec<Bank> = test.threads.iter().map(|_| Bank::new()).collect();
    for ((thread, instrs), bank) in test.threads.iter().zip(code).zip(&mut banks) {
        for instr in instrs.iter().flatten() {
            instr.destination.iter().chain(&instr.source).for_each(|operand| bank.operand(operand));
            for operand in [instr.destination, instr.source.filter(|_| changes_source(instr.op))] {
                if let Some(Opnd::Register(register, _)) = operand {
                    bank.sets(register);
                }
            }
            if instr.op == Op::Cmpxchg {
                let width = instr.width.expect("its source is a register");
                bank.sets(Register::accumulator(width));
            }
        }
        for family in (0..Family::COUNT as u8).map(Family) {
            if let Some((register, _)) = variables.registers.get(&(thread.number, family)) {
                // If the thread does not use the register, only the width matters.
                if bank.widths[usize::from(family.0)].is_some() {
                    bank.uses(*register);
                }
                bank.set |= bit(family);
            }
        }
    }
    let by_number: FxHashMap<u32, usize> =
        test.threads.iter().enumerate().map(|(position, thread)| (thread.number, position)).collect();
    let mut never_set = Vec::new();
    let conditions = test.filter.iter().chain(test.question.as_ref().map(|(_, condition, _)| condition));
    for condition in conditions {
        observed(condition, &mut |location| {
            let Location::Register { thread, register, span } = *location else { return };
            let Some(&position) = by_number.get(&thread) else { return };
            let bank = &mut banks[position];
            bank.uses(register);
            bank.observed |= bit(register.family);
            if bank.set & bit(register.family) == 0 {
                never_set.push(span);
                bank.set |= bit(register.family);
            }
        });
    }
    for location in locations {
        if let Location::Register { thread, register, .. } = *location
            && let Some(&position) = by_number.get(&thread)
        {
            banks[position].uses(register);
            banks[position].observed |= bit(register.family);
        }
    }
    (banks, never_set)
}

fn changes_source(op: Op) -> bool {
    matches!(op, Op::Xchg | Op::XchgUnlocked | Op::Xadd)
}

/// Calls `visit` with every location of a condition.
pub(super) fn observed<'c, 'a>(condition: &'c Condition<'a>, visit: &mut impl FnMut(&'c Location<'a>)) {
    match condition {
        Condition::Constant(..) => {}
        Condition::Atom(atom) => {
            visit(&atom.left);
            if let Side::Location(location) = &atom.right {
                visit(location);
            }
        }
        Condition::Not(operand, _) => observed(operand, visit),
        Condition::And(parts) | Condition::Or(parts) => parts.iter().for_each(|part| observed(part, visit)),
        Condition::Implies(left, right) => {
            observed(left, visit);
            observed(right, visit);
        }
    }
}

/// The name of a register, given how many of its bits are kept.
pub(super) fn name(family: Family, width: Width) -> String {
    const OLD: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    match (OLD.get(usize::from(family.0)), Part::low(width)) {
        (Some(name), Part::All64) => format!("r{name}"),
        (Some(name), Part::Low32) => format!("e{name}"),
        (Some(name), Part::Low16) => (*name).to_owned(),
        (Some(name), _) => format!("{}l", name.strip_suffix('x').unwrap_or(name)),
        (None, Part::All64) => format!("r{}", family.0),
        (None, Part::Low32) => format!("r{}d", family.0),
        (None, Part::Low16) => format!("r{}w", family.0),
        (None, _) => format!("r{}b", family.0),
    }
}
