//! What is known of the values of a test: bounds for every register and variable, and what each can point to.

use super::bank::Bank;
use super::registers::{Family, Part, Register, Width};
use super::test::Test;
use super::values::Facts;
use super::variables::{Start, VarId, Variables};
use palisade_base::IdVec;

/// What is known of a whole test.
pub(super) struct Knowledge {
    /// Of each register of each thread, at any time.
    pub(super) registers: Vec<[Option<Facts>; Family::COUNT]>,
    /// Of each register of each thread, at the start.
    pub(super) starts: Vec<[Option<Facts>; Family::COUNT]>,
    pub(super) variables: IdVec<VarId, Facts>,
    /// The bit that stands for a variable in [`Facts::points`]; the last bit stands for all further ones.
    pub(super) bits: IdVec<VarId, u64>,
    /// The variables of each bit.
    pub(super) by_bit: Vec<Vec<VarId>>,
    /// Whether the last walk learned something.
    pub(super) grown: bool,
}

impl Knowledge {
    /// What the initial state says.
    pub(super) fn new(test: &Test<'_>, banks: &[Bank], variables: &Variables<'_>) -> Knowledge {
        let mut by_bit: Vec<Vec<VarId>> = Vec::new();
        let mut bits = IdVec::new();
        for (id, variable) in variables.all.iter_enumerated() {
            let taken = if variable.address_taken {
                if by_bit.len() < 64 {
                    by_bit.push(Vec::new());
                }
                let last = by_bit.len() - 1;
                by_bit[last].push(id);
                1 << last
            } else {
                0
            };
            bits.push(taken);
        }
        let mut knowledge = Knowledge {
            registers: Vec::new(),
            starts: Vec::new(),
            variables: IdVec::new(),
            bits,
            by_bit,
            grown: false,
        };
        for (thread, bank) in test.threads.iter().zip(banks) {
            let mut registers = [None; Family::COUNT];
            for &family in &bank.order {
                let start = variables.registers.get(&(thread.number, family));
                let facts = start.map_or(Facts::exactly(0), |(register, start)| {
                    knowledge.start(variables, *start, |number| held(number, *register, bank.width(family)))
                });
                registers[usize::from(family.0)] = Some(facts);
            }
            knowledge.registers.push(registers);
        }
        knowledge.starts = knowledge.registers.clone();
        for (id, variable) in variables.all.iter_enumerated() {
            let width = variables.width(id);
            let mut facts: Option<Facts> = None;
            for start in &variable.init {
                let found = knowledge.start(variables, *start, |number| width.signed(number).unwrap_or(0));
                match &mut facts {
                    Some(facts) => _ = facts.join(&found),
                    None => facts = Some(found),
                }
            }
            knowledge.variables.push(facts.unwrap_or(Facts::exactly(0)));
        }
        knowledge
    }

    fn start(&self, variables: &Variables<'_>, start: Start, number: impl Fn(i128) -> i64) -> Facts {
        match start {
            Start::Number(value, _) => Facts::exactly(number(value)),
            Start::Address(id, element) => {
                let address = variables.all[id].address + i64::from(element);
                Facts { points: self.bits[id], ..Facts::exactly(address) }
            }
        }
    }

    /// The variables in a set of bits.
    pub(super) fn pointees(&self, points: u64) -> impl Iterator<Item = VarId> {
        let bits = (0..self.by_bit.len()).filter(move |bit| points & 1 << bit != 0);
        bits.flat_map(|bit| self.by_bit[bit].iter().copied())
    }

    /// After many walks: takes everything that may still grow to its limits.
    pub(super) fn widen(&mut self, before: &Knowledge, banks: &[Bank], variables: &Variables<'_>) {
        for ((registers, old), bank) in self.registers.iter_mut().zip(&before.registers).zip(banks) {
            for (family, (now, old)) in registers.iter_mut().zip(old).enumerate() {
                if let (Some(now), Some(old)) = (now, old)
                    && now != old
                {
                    now.widen(bank.width(Family(family as u8)));
                }
            }
        }
        for (id, now) in
            self.variables.ids().zip(before.variables.iter()).map(|(id, old)| (id, *old)).collect::<Vec<_>>()
        {
            if self.variables[id] != now {
                self.variables[id].widen(variables.width(id));
            }
        }
    }

    pub(super) fn copy(&self) -> Knowledge {
        Knowledge {
            registers: self.registers.clone(),
            starts: Vec::new(),
            variables: self.variables.clone(),
            bits: IdVec::new(),
            by_bit: Vec::new(),
            grown: false,
        }
    }
}

/// What a register of which so many bits are kept holds when a part of it is given a number and the rest is 0.
pub(super) fn held(number: i128, register: Register, kept: Width) -> i64 {
    let part = register.part.width();
    let bits = (number & ((1 << part.0) - 1)) << if register.part == Part::High8 { 8 } else { 0 };
    kept.signed(bits & ((1 << kept.0) - 1)).expect("cut to the width")
}
