//! Instructions, identified by the place from which they call the runtime, with small numbers for the monitors.

use palisade_memory::Model;
use palisade_monitor::{Instruction, Violation};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Instructions, identified by the place from which they call the runtime.
#[derive(Clone, Debug)]
pub struct Places {
    places: Vec<u64>,
    known: FxHashMap<u64, Instruction>,
    /// The most recently used instructions, indexed by the low bits of their places.
    recent: Vec<(u64, Instruction)>,
}

/// A power of two.
const RECENT: usize = 1 << 10;

impl Default for Places {
    fn default() -> Places {
        Places {
            places: Vec::new(),
            known: FxHashMap::default(),
            recent: vec![(u64::MAX, Instruction(0)); RECENT],
        }
    }
}

impl Places {
    /// The instruction at a place.
    #[inline]
    pub(super) fn instruction(&mut self, place: u64) -> Instruction {
        let recent = &mut self.recent[(place ^ place >> 10) as usize % RECENT];
        if recent.0 == place {
            return recent.1;
        }
        let instruction = self.look_up(place);
        self.recent[(place ^ place >> 10) as usize % RECENT] = (place, instruction);
        instruction
    }

    fn look_up(&mut self, place: u64) -> Instruction {
        if let Some(&known) = self.known.get(&place) {
            return known;
        }
        let new = Instruction(self.places.len() as u32);
        self.places.push(place);
        self.known.insert(place, new);
        new
    }

    /// A violation, identified by the places of its instructions.
    pub(super) fn placed(&self, violation: Violation) -> PlacedViolation {
        let Violation { model, store, previous, access } = violation;
        PlacedViolation {
            model,
            store: self.place(store),
            previous: self.place(previous),
            access: self.place(access),
        }
    }

    /// Where an instruction is.
    fn place(&self, instruction: Instruction) -> u64 {
        self.places[instruction.0 as usize]
    }
}

/// A violation, identified by the places of its instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct PlacedViolation {
    /// The memory model.
    #[serde(with = "crate::elsewhere::model")]
    pub model: Model,
    /// The store that could still have been pending.
    pub store: u64,
    /// The thread's last action before the access.
    pub previous: u64,
    /// The access that could have come before the store.
    pub access: u64,
}
