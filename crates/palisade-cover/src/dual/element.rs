//! Elements of the search: upward-closed sets of load-buffer configurations. The header of [`super`] defines
//! their meaning.

use crate::symbol::Symbol;
use palisade_automata::{StateId, ValueId};
use palisade_base::Id;
use palisade_program::running::CellId;
use palisade_wqo::{injects, is_subword};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// A word over messages, newest first.
pub(crate) type Word = SmallVec<[Symbol; 6]>;

/// The requirements on one process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Process {
    /// Which automaton.
    pub kind: u32,
    /// Its state.
    pub state: StateId,
    /// The required content of its buffer.
    pub word: Word,
}

/// The requirement on a memory cell: a value or anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Content(u16);

impl Content {
    pub const ANY: Content = Content(0);

    pub fn known(value: ValueId) -> Content {
        Content(value.0 as u16 + 1)
    }

    pub fn value(self) -> Option<ValueId> {
        self.0.checked_sub(1).map(|value| ValueId(value.into()))
    }
}

/// An element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Element {
    /// The requirement on each cell.
    pub memory: SmallVec<[Content; 16]>,
    /// The requirements on processes, sorted.
    pub processes: Vec<Process>,
}

impl Element {
    pub fn new(memory: SmallVec<[Content; 16]>, processes: Vec<Process>) -> Element {
        debug_assert!(processes.is_sorted(), "processes are sorted");
        Element { memory, processes }
    }

    /// Which of the first 64 cells are known.
    pub fn known(&self) -> u64 {
        let cells = self.memory.iter().take(64).enumerate();
        cells.filter(|(_, content)| **content != Content::ANY).fold(0, |bits, (cell, _)| bits | 1 << cell)
    }

    /// Bits for the letters of processes (several letters share a bit). An element below this one has no
    /// other bits.
    pub fn letters(&self) -> u64 {
        let mut letters = 0;
        for process in &self.processes {
            for symbol in &process.word {
                letters |= 1 << (FxBuildHasher.hash_one((process.kind, process.state, symbol)) >> 58);
            }
        }
        letters
    }

    pub fn content(&self, cell: CellId) -> Content {
        self.memory[cell.index()]
    }

    /// The sum of the word lengths, twice the number of processes, and the number of known cells.
    pub fn weight(&self) -> usize {
        let words: usize = self.processes.iter().map(|process| process.word.len()).sum();
        let known = self.memory.iter().filter(|&&content| content != Content::ANY).count();
        words + 2 * self.processes.len() + known
    }

    /// The kinds and states of the processes, sorted.
    pub fn keys(&self) -> Vec<u64> {
        self.processes.iter().map(|p| u64::from(p.kind) << 32 | u64::from(p.state.0)).collect()
    }

    /// Whether each process of this element can be mapped to a process of the other with the same state and a
    /// word above its own. Processes are sorted, so those with the same state are adjacent, and usually there
    /// is only one.
    pub fn processes_below(&self, other: &Element) -> bool {
        let key = |process: &Process| (process.kind, process.state);
        let mut rest = &other.processes[..];
        let mut groups = self.processes.chunk_by(|a, b| key(a) == key(b));
        groups.all(|group| {
            let wanted = key(&group[0]);
            let Some(first) = rest.iter().position(|process| key(process) >= wanted) else { return false };
            let there = rest[first..].iter().take_while(|process| key(process) == wanted).count();
            let candidates = &rest[first..first + there];
            rest = &rest[first + there..];
            match group {
                [one] => candidates.iter().any(|process| is_subword(&one.word, &process.word)),
                several => injects(several.len(), candidates.len(), |few, many| {
                    is_subword(&several[few].word, &candidates[many].word)
                }),
            }
        })
    }
}
