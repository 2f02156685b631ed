//! Elements of the search: upward-closed sets of load-buffer configurations. The header of [`super`] defines
//! their meaning.

use super::process::Process;
use crate::symbol::Symbol;
use crate::values::{SetId, ValueSets};
use palisade_base::Id;
use palisade_program::running::CellId;
use palisade_wqo::{Keys, embeds, injects};
use smallvec::SmallVec;

/// What memory must hold: for each cell, one of these values.
pub(crate) type Memory = SmallVec<[SetId; 16]>;

/// The processes of an element.
pub(crate) type Processes = SmallVec<[Process; 6]>;

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
    pub fn letters(&self) -> u64 {
        self.processes.iter().fold(0, |letters, process| letters | process.letters())
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
        self.processes.iter().map(|process| process.key()).collect()
    }
}

/// What comparisons look at: an element, or one that a search has packed.
pub(crate) trait View {
    /// The number of processes.
    fn count(&self) -> usize;
    /// A process. Their keys do not decrease.
    fn process(&self, place: usize) -> &Process;
    /// The requirement on a cell.
    fn content(&self, cell: CellId) -> SetId;
    /// The cells of which something is required.
    fn known(&self) -> impl Iterator<Item = (CellId, SetId)>;
}

impl View for Element {
    fn count(&self) -> usize {
        self.processes.len()
    }

    fn process(&self, place: usize) -> &Process {
        &self.processes[place]
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
        let (few, many) = (a.process(few), b.process(many));
        few == many || embeds(&few.word, &many.word, |letter: Symbol, above| letter.is_below(above, sets))
    };
    let (mut few, mut many) = (0, 0);
    while few < a.count() {
        let wanted = a.process(few).key();
        let same = (few..a.count()).take_while(|&place| a.process(place).key() == wanted).count();
        while many < b.count() && b.process(many).key() < wanted {
            many += 1;
        }
        let there = (many..b.count()).take_while(|&place| b.process(place).key() == wanted).count();
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
