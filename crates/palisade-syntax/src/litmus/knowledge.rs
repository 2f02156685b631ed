//! Static knowledge about the values of a test: bounds for every register and variable, and what each can
//! point to.

use super::bank::Bank;
use super::registers::{Family, Part, Register, Width};
use super::test::Test;
use super::values::Facts;
use super::variables::{Start, VarId, Variables};
use palisade_base::IdVec;

/// What is known about a whole test.
pub(super) struct Knowledge {
    /// For each register of each thread: its values at any time.
    pub(super) registers: Vec<[Option<Facts>; Family::COUNT]>,
    /// For each register of each thread: its initial values.
    pub(super) starts: Vec<[Option<Facts>; Family::COUNT]>,
    /// For each group of variables: their values at any time. Almost every group has one variable.
    groups: Vec<Group>,
    group_of: IdVec<VarId, u32>,
    /// The group of each bit in [`Facts::points`]. The last bit represents all remaining variables, so that
    /// operations on a set of variables take constant time.
    by_bit: Vec<u32>,
    /// Whether the last walk learned something new.
    pub(super) grown: bool,
}

/// Variables that are treated as one.
#[derive(Clone)]
struct Group {
    facts: Facts,
    /// The bit that represents them; 0 if none of their addresses is taken.
    bit: u64,
    /// The widths, sorted, without duplicates.
    widths: Vec<Width>,
    has_array: bool,
}

impl Knowledge {
    /// The knowledge from the initial state.
    pub(super) fn new(test: &Test<'_>, banks: &[Bank], variables: &Variables<'_>) -> Knowledge {
        let mut knowledge = Knowledge {
            registers: Vec::new(),
            starts: Vec::new(),
            groups: Vec::new(),
            group_of: IdVec::new(),
            by_bit: Vec::new(),
            grown: false,
        };
        variables.all.ids().for_each(|id| knowledge.add(id, variables));
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
            let facts = facts.unwrap_or(Facts::exactly(0));
            let group = &mut knowledge.groups[knowledge.group_of[id] as usize];
            if group.widths.is_empty() {
                group.facts = facts;
            } else {
                group.facts.join(&facts);
            }
            if let Err(place) = group.widths.binary_search(&width) {
                group.widths.insert(place, width);
            }
        }
        knowledge
    }

    /// Adds a variable to a group.
    fn add(&mut self, id: VarId, variables: &Variables<'_>) {
        let variable = &variables.all[id];
        if variable.address_taken && self.by_bit.len() == 64 {
            let last = self.by_bit[63];
            self.group_of.push(last);
            self.groups[last as usize].has_array |= variable.len.is_some();
            return;
        }
        let number = u32::try_from(self.groups.len()).expect("fewer variables than bytes in a text");
        self.group_of.push(number);
        let mut bit = 0;
        if variable.address_taken {
            bit = 1 << self.by_bit.len();
            self.by_bit.push(number);
        }
        let has_array = variable.len.is_some();
        self.groups.push(Group { facts: Facts::exactly(0), bit, widths: Vec::new(), has_array });
    }

    fn start(&self, variables: &Variables<'_>, start: Start, number: impl Fn(i128) -> i64) -> Facts {
        match start {
            Start::Number(value, _) => Facts::exactly(number(value)),
            Start::Address(id, element) => {
                let address = variables.all[id].address + i64::from(element);
                Facts { points: self.bit(id), ..Facts::exactly(address) }
            }
        }
    }

    /// The bit of a variable.
    pub(super) fn bit(&self, id: VarId) -> u64 {
        self.groups[self.group_of[id] as usize].bit
    }

    /// What is known about the values of a variable.
    pub(super) fn variable(&self, id: VarId) -> Facts {
        self.groups[self.group_of[id] as usize].facts
    }

    /// Records that a variable can have these values.
    pub(super) fn learn(&mut self, id: VarId, facts: &Facts) {
        self.grown |= self.groups[self.group_of[id] as usize].facts.join(facts);
    }

    fn pointees(&self, points: u64) -> impl Iterator<Item = usize> {
        let bits = self.by_bit.iter().enumerate().filter(move |(bit, _)| points & 1 << bit != 0);
        bits.map(|(_, group)| *group as usize)
    }

    /// What is known about the values of all variables that a pointer can point to.
    pub(super) fn pointed(&self, points: u64) -> Facts {
        let all = self.pointees(points).map(|group| self.groups[group].facts);
        let join = |mut all: Facts, facts: Facts| {
            all.join(&facts);
            all
        };
        all.reduce(join).unwrap_or(Facts::exactly(0))
    }

    /// Records that all variables that a pointer can point to can have these values.
    pub(super) fn learn_pointed(&mut self, points: u64, facts: &Facts) {
        let groups: Vec<usize> = self.pointees(points).collect();
        for group in groups {
            self.grown |= self.groups[group].facts.join(facts);
        }
    }

    /// The widths of the variables that a pointer can point to, without duplicates.
    pub(super) fn pointed_widths(&self, points: u64) -> Vec<Width> {
        let mut widths: Vec<Width> =
            self.pointees(points).flat_map(|group| self.groups[group].widths.iter().copied()).collect();
        widths.sort_unstable();
        widths.dedup();
        widths
    }

    /// Whether a pointer can point into an array.
    pub(super) fn points_into_array(&self, points: u64) -> bool {
        self.pointees(points).any(|group| self.groups[group].has_array)
    }

    /// Widens everything that still grows to its limits, after many walks.
    pub(super) fn widen(&mut self, before: &Snapshot, banks: &[Bank]) {
        for ((registers, old), bank) in self.registers.iter_mut().zip(&before.registers).zip(banks) {
            for (family, (now, old)) in registers.iter_mut().zip(old).enumerate() {
                if let (Some(now), Some(old)) = (now, old)
                    && now != old
                {
                    now.widen(bank.width(Family(family as u8)));
                }
            }
        }
        for (group, old) in self.groups.iter_mut().zip(&before.groups) {
            if group.facts != *old {
                group.facts.widen(group.widths.last().copied().unwrap_or(Width::QUAD));
            }
        }
    }

    /// The current knowledge, for a later comparison.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            registers: self.registers.clone(),
            groups: self.groups.iter().map(|group| group.facts).collect(),
        }
    }
}

/// The knowledge at some earlier time.
pub(super) struct Snapshot {
    registers: Vec<[Option<Facts>; Family::COUNT]>,
    groups: Vec<Facts>,
}

/// The value of a register, given how many of its bits are kept, when a part of it is set to a number and the
/// rest is 0.
pub(super) fn held(number: i128, register: Register, kept: Width) -> i64 {
    let part = register.part.width();
    let bits = (number & ((1 << part.0) - 1)) << if register.part == Part::High8 { 8 } else { 0 };
    kept.signed(bits & ((1 << kept.0) - 1)).expect("cut to the width")
}
