//! What is known about registers and the stack frame at a place of a function.
//!
//! *Guarantee.* A register that holds nothing of the program's, such as one that a called function may have changed,
//! is not used: where it would be, the function is refused. So the machine code does not depend on it.

use crate::registers::{ARGUMENTS, Gpr, RSP, SAVED};
use std::collections::BTreeMap;

/// What is known about a register or a slot of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// What a register held when the function was entered, which its caller wants back.
    Entry(Gpr),
    /// An address in the frame, relative to that of the return address.
    Frame(i64),
    /// The address of the thread's own memory, from which positions of thread-local variables count.
    Thread,
    /// What a push left that only makes room, unless a pointer has led there since. Only in slots of the frame.
    Room,
    /// A value of which so many of the lowest bits are defined.
    Defined(u32),
}

pub(crate) const UNDEFINED: Known = Known::Defined(0);
pub(crate) const DEFINED: Known = Known::Defined(64);

impl Known {
    fn merge(self, other: Known) -> Known {
        match (self, other) {
            (a, b) if a == b => a,
            (Known::Entry(_) | Known::Thread, _) | (_, Known::Entry(_) | Known::Thread) => UNDEFINED,
            (a, b) => Known::Defined(a.bits().min(b.bits())),
        }
    }

    /// How many of the lowest bits are defined.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Known::Entry(_) | Known::Thread => 0,
            Known::Frame(_) | Known::Room => 64,
            Known::Defined(bits) => bits,
        }
    }
}

/// What is known at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    registers: [Known; 16],
    /// Slots of 8 bytes of the frame in which registers are saved, or that only make room.
    slots: BTreeMap<i64, Known>,
    /// Whether the flags are defined.
    pub(crate) flags: bool,
    /// Which vector registers are defined.
    pub(crate) vectors: u32,
}

impl State {
    /// What is known when a function is entered.
    pub(crate) fn entry(parameters: usize) -> State {
        let mut registers = [UNDEFINED; 16];
        for register in &ARGUMENTS[..parameters.min(6)] {
            registers[register.0 as usize] = DEFINED;
        }
        for register in SAVED {
            registers[register.0 as usize] = Known::Entry(register);
        }
        registers[RSP.0 as usize] = Known::Frame(0);
        State { registers, slots: BTreeMap::new(), flags: false, vectors: 0 }
    }

    pub(crate) fn get(&self, register: Gpr) -> Known {
        self.registers[register.0 as usize]
    }

    pub(crate) fn set(&mut self, register: Gpr, known: Known) {
        self.registers[register.0 as usize] = known;
    }

    /// The offset of the stack pointer.
    pub(crate) fn stack(&self) -> Option<i64> {
        match self.get(RSP) {
            Known::Frame(at) => Some(at),
            _ => None,
        }
    }

    /// What is known whichever way control came.
    pub(crate) fn merge(&self, other: &State) -> State {
        let mut merged = self.clone();
        for (mine, theirs) in merged.registers.iter_mut().zip(other.registers) {
            *mine = mine.merge(theirs);
        }
        let slot = |state: &State, at: &i64| state.slots.get(at).copied().unwrap_or(DEFINED);
        let all = self.slots.keys().chain(other.slots.keys());
        merged.slots = all
            .map(|at| (*at, slot(self, at).merge(slot(other, at))))
            .filter(|(_, known)| *known != DEFINED)
            .collect();
        merged.flags &= other.flags;
        merged.vectors &= other.vectors;
        merged
    }

    /// What is stored in the frame: what a register held at first, or something else.
    pub(crate) fn store(&mut self, at: i64, size: i64, known: Known) {
        // Room of which a part is used is still given back as a whole.
        let part = |slot: i64| slot < at || at + size < slot + 8;
        for (slot, kept) in self.slots.range_mut(at - 7..at + size) {
            if *kept == UNDEFINED && part(*slot) {
                *kept = Known::Room;
            }
        }
        let overlapping = self.slots.range(at - 7..at + size);
        let overlapping: Vec<i64> = overlapping
            .filter(|(slot, known)| **known != Known::Room || !part(**slot))
            .map(|(at, _)| *at)
            .collect();
        overlapping.iter().for_each(|at| _ = self.slots.remove(at));
        if size == 8 && known != DEFINED {
            self.slots.insert(at, known);
        }
    }

    /// What a load from the frame finds. Whether a variable was written is found out when the program runs.
    pub(crate) fn load(&self, at: i64, size: i64) -> Known {
        match (self.slots.get(&at), size) {
            (Some(Known::Room), _) => DEFINED,
            (Some(known), 8) => *known,
            _ if self.slots.range(at - 7..at + size).any(|(_, known)| *known != Known::Room) => UNDEFINED,
            _ => DEFINED,
        }
    }

    /// Whether a push has only made room here.
    pub(crate) fn is_room(&self, at: i64) -> bool {
        self.slots.get(&at) == Some(&Known::Room)
    }
}
