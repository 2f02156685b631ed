//! Elements of the search: upward-closed sets of load-buffer configurations. The header of [`super`] defines
//! their meaning.

use crate::symbol::Symbol;
use crate::values::{SetId, ValueSets};
use palisade_automata::StateId;
use palisade_base::Id;
use palisade_program::running::CellId;
use palisade_wqo::{Keys, embeds, injects};
use smallvec::SmallVec;

/// A word over messages, newest first.
pub(crate) type Word = SmallVec<[Symbol; 6]>;

/// The requirements on one process.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Process {
    /// Which automaton.
    pub kind: u32,
    /// Its state.
    pub state: StateId,
    /// The required content of its buffer.
    pub word: Word,
}

impl Clone for Process {
    fn clone(&self) -> Process {
        // Letters are copied as a block, which the derived code does not do.
        Process { word: Word::from_slice(&self.word), ..*self }
    }
}

/// What memory must hold: for each cell, one of these values.
pub(crate) type Memory = SmallVec<[SetId; 16]>;

/// The processes of an element.
pub(crate) type Processes = SmallVec<[Process; 4]>;

/// An element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Element {
    /// The requirement on each cell.
    pub memory: Memory,
    /// The requirements on processes, sorted.
    pub processes: Processes,
}

impl Element {
    pub fn new(memory: Memory, processes: Processes) -> Element {
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

    /// The sum of the word lengths, three and a half times the number of processes, and the number of known cells,
    /// all doubled. With four times the number of processes, more elements would have the same weight, and some
    /// violations would be found later.
    pub fn weight(&self) -> usize {
        let words: usize = self.processes.iter().map(|process| process.word.len()).sum();
        let known = self.memory.iter().filter(|&&content| content != SetId::ALL).count();
        2 * words + 7 * self.processes.len() + 2 * known
    }

    /// The kinds and states of the processes, sorted.
    pub fn keys(&self) -> Keys<u64> {
        self.processes.iter().map(key).collect()
    }
}

/// Kind and state of a process in one number. They have the same order.
pub(crate) fn key(process: &Process) -> u64 {
    u64::from(process.kind) << 32 | u64::from(process.state.0)
}

/// What comparisons look at: an element, or one that a search has packed.
pub(crate) trait View {
    /// The number of processes.
    fn count(&self) -> usize;
    /// The [`key`] of a process. Keys do not decrease.
    fn key(&self, place: usize) -> u64;
    /// The word of a process.
    fn word(&self, place: usize) -> &[Symbol];
    /// The requirement on a cell.
    fn content(&self, cell: CellId) -> SetId;
    /// The cells of which something is required.
    fn known(&self) -> impl Iterator<Item = (CellId, SetId)>;
}

impl View for Element {
    fn count(&self) -> usize {
        self.processes.len()
    }

    fn key(&self, place: usize) -> u64 {
        key(&self.processes[place])
    }

    fn word(&self, place: usize) -> &[Symbol] {
        &self.processes[place].word
    }

    fn content(&self, cell: CellId) -> SetId {
        self.memory[cell.index()]
    }

    fn known(&self) -> impl Iterator<Item = (CellId, SetId)> {
        let cells = self.memory.iter().enumerate().filter(|(_, set)| **set != SetId::ALL);
        cells.map(|(cell, &set)| (CellId::from_index(cell), set))
    }
}

/// Whether each process of the first element can be mapped to a process of the second with the same state and a word
/// above its own. Processes are sorted, so those with the same state are adjacent, and usually there is only one.
pub(crate) fn processes_below(a: &impl View, b: &impl View, sets: &ValueSets) -> bool {
    let below = |few: usize, many: usize| {
        embeds(a.word(few), b.word(many), |letter: Symbol, above| letter.is_below(above, sets))
    };
    let (mut few, mut many) = (0, 0);
    while few < a.count() {
        let wanted = a.key(few);
        let same = (few..a.count()).take_while(|&place| a.key(place) == wanted).count();
        while many < b.count() && b.key(many) < wanted {
            many += 1;
        }
        let there = (many..b.count()).take_while(|&place| b.key(place) == wanted).count();
        let fits = match (same, there) {
            (1, 1) => below(few, many),
            _ => injects(same, there, |item, place| below(few + item, many + place)),
        };
        if !fits {
            return false;
        }
        few += same;
        many += there;
    }
    true
}
