//! What the monitors found: every violation once, identified by its instructions, with a count.

use crate::event::Instruction;
use palisade_memory::Model;
use rustc_hash::FxHashMap;

/// A violation of sequential consistency that a machine with store buffers allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Violation {
    /// The memory model.
    pub model: Model,
    /// The store that could still have been pending (`e` in the paper).
    pub store: Instruction,
    /// The last action of the process, which happens after the store (`prev`).
    pub previous: Instruction,
    /// The access that could have come before the store reached memory (`eᵢ`).
    pub access: Instruction,
}

/// How many times a violation was seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seen {
    /// The number of times.
    pub count: u64,
    /// The number of the event that showed it first, from 1.
    pub first: u64,
}

/// All violations that were seen.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    seen: FxHashMap<Violation, Seen>,
}

impl Violations {
    /// Counts what the event with this number shows: whether a store could still have been pending under TSO
    /// and under PSO, with the instructions of the store, `prev` and the access.
    #[cold]
    pub(crate) fn add_pending(
        &mut self,
        pending: [bool; 2],
        (store, previous, access): (Instruction, Instruction, Instruction),
        event: u64,
    ) {
        for (model, _) in [Model::Tso, Model::Pso].into_iter().zip(pending).filter(|(_, pending)| *pending) {
            let violation = Violation { model, store, previous, access };
            self.seen.entry(violation).or_insert(Seen { count: 0, first: event }).count += 1;
        }
    }

    /// All violations, in the order in which they were first seen. Those of the same event are ordered by
    /// model and instructions.
    pub fn sorted(&self) -> Vec<(Violation, Seen)> {
        let mut all: Vec<_> = self.seen.iter().map(|(&violation, &seen)| (violation, seen)).collect();
        all.sort_by_key(|&(violation, seen)| (seen.first, violation));
        all
    }

    /// The number of distinct violations.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}
