//! Elements of the search: upward-closed sets of load-buffer configurations. The header of [`super`] defines
//! their meaning.

use crate::symbol::Symbol;
use crate::values::{SetId, ValueSets};
use palisade_automata::StateId;
use palisade_base::Id;
use palisade_program::running::CellId;
use palisade_wqo::{embeds, injects};
use smallvec::SmallVec;

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

/// What memory must hold: for each cell, one of these values.
pub(crate) type Memory = SmallVec<[SetId; 16]>;

/// An element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Element {
    /// The requirement on each cell.
    pub memory: Memory,
    /// The requirements on processes, sorted.
    pub processes: Vec<Process>,
}

impl Element {
    pub fn new(memory: Memory, processes: Vec<Process>) -> Element {
        debug_assert!(processes.is_sorted(), "processes are sorted");
        Element { memory, processes }
    }

    /// Bits for the letters of processes (several letters share a bit). An element below this one has no
    /// other bits.
    pub fn letters(&self, sets: &ValueSets) -> u64 {
        let mut letters = 0;
        for process in &self.processes {
            for symbol in &process.word {
                let place = [process.kind, process.state.0, u32::from(symbol.is_own())];
                let hash = place.iter().fold(symbol.cell().0, |hash, part| {
                    (hash.rotate_left(5) ^ part).wrapping_mul(0x9E37_79B9)
                });
                let lacking = sets.filter(symbol.cell(), symbol.set());
                letters |= 1 << (hash >> 26) | lacking.rotate_left(hash >> 20);
            }
        }
        letters
    }

    pub fn content(&self, cell: CellId) -> SetId {
        self.memory[cell.index()]
    }

    /// The sum of the word lengths, four times the number of processes, and the number of known cells.
    pub fn weight(&self) -> usize {
        let words: usize = self.processes.iter().map(|process| process.word.len()).sum();
        let known = self.memory.iter().filter(|&&content| content != SetId::ALL).count();
        words + 4 * self.processes.len() + known
    }

    /// The kinds and states of the processes, sorted.
    pub fn keys(&self) -> Vec<u64> {
        self.processes.iter().map(|p| u64::from(p.kind) << 32 | u64::from(p.state.0)).collect()
    }

    /// Whether each process of this element can be mapped to a process of the other with the same state and a
    /// word above its own. Processes are sorted, so those with the same state are adjacent, and usually there
    /// is only one.
    pub fn processes_below(&self, other: &Element, sets: &ValueSets) -> bool {
        let below = |few: &Process, many: &Process| {
            embeds(&few.word, &many.word, |letter, above| is_below(sets, letter, above))
        };
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
                [one] => candidates.iter().any(|process| below(one, process)),
                several => injects(several.len(), candidates.len(), |few, many| {
                    below(&several[few], &candidates[many])
                }),
            }
        })
    }
}

/// Whether a letter is below another: it is a letter of the same kind on the same cell, and allows all values
/// that the other one allows.
fn is_below(sets: &ValueSets, letter: Symbol, above: Symbol) -> bool {
    letter == above
        || letter.with_set(SetId::ALL) == above.with_set(SetId::ALL)
            && sets.is_subset(letter.cell(), above.set(), letter.set())
}
