//! Elements of the search: upward-closed sets of single-buffer configurations. The header of [`super`]
//! defines their meaning.

use crate::symbol::Symbol;
use crate::values::{SetId, ValueSets};
use palisade_automata::StateId;
use palisade_base::Id;
use palisade_program::running::CellId;
use smallvec::SmallVec;

/// The positions that one process requires, oldest first.
pub(crate) type Word = SmallVec<[Symbol; 6]>;

/// Whether the newest entry of a queue is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum End {
    /// The values must be among the pending ones, in order.
    Open,
    /// In addition, the last one is the newest. Without values, nothing is pending.
    Closed,
}

/// The requirement on a process's stores to one cell that have not taken effect (PSO only).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Queue {
    pub cell: CellId,
    pub end: End,
    /// Entries with one of these values each, oldest first.
    pub values: SmallVec<[SetId; 4]>,
}

impl Queue {
    pub fn empty(cell: CellId) -> Queue {
        Queue { cell, end: End::Closed, values: SmallVec::new() }
    }

    /// Whether it requires that nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.end == End::Closed && self.values.is_empty()
    }
}

/// The requirements on one process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Process {
    /// Which automaton.
    pub kind: u32,
    /// Its state; `None` for any.
    pub state: Option<StateId>,
    /// The positions it requires. Its pointer is at the first one or before it.
    pub word: Word,
    /// Its queues, by cell. A cell without a requirement has no queue here.
    pub queues: SmallVec<[Queue; 2]>,
}

impl Process {
    pub fn at(kind: u32, state: Option<StateId>) -> Process {
        Process { kind, state, word: Word::new(), queues: SmallVec::new() }
    }

    pub fn has_letter(&self, cell: CellId) -> bool {
        self.word.iter().any(|symbol| symbol.cell() == cell)
    }

    pub fn queue(&self, cell: CellId) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.cell == cell)
    }

    /// Replaces the requirement on a queue.
    pub fn set_queue(&mut self, queue: Queue) {
        match self.queues.binary_search_by_key(&queue.cell, |queue| queue.cell) {
            Ok(place) => self.queues[place] = queue,
            Err(place) => self.queues.insert(place, queue),
        }
    }

    pub fn forget_queue(&mut self, cell: CellId) {
        self.queues.retain(|queue| queue.cell != cell);
    }
}

/// The requirement on a memory cell at the end of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Content(u16);

impl Content {
    pub const ANY: Content = Content(0);

    /// It holds one of these values.
    pub fn known(set: SetId) -> Content {
        Content(set.0 << 1)
    }

    /// It holds one of these values, and no process has a pending store to the cell.
    pub fn settled(set: SetId) -> Content {
        Content(set.0 << 1 | 1)
    }

    pub fn set(self) -> SetId {
        SetId(self.0 >> 1)
    }

    pub fn is_settled(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same with other values.
    pub fn with_set(self, set: SetId) -> Content {
        if self.is_settled() { Content::settled(set) } else { Content::known(set) }
    }
}

/// The requirements on memory, by cell.
pub(crate) type Memory = SmallVec<[Content; 16]>;

/// An element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Element {
    pub memory: Memory,
    /// The requirements on processes, sorted.
    pub processes: Vec<Process>,
    /// The order of all letters in one buffer: the process of each letter, oldest first. Empty if letters of
    /// different processes are not ordered.
    pub order: SmallVec<[u8; 12]>,
}

impl Element {
    pub fn new(memory: Memory, processes: Vec<Process>, order: SmallVec<[u8; 12]>) -> Element {
        debug_assert!(processes.is_sorted(), "processes are sorted");
        Element { memory, processes, order }
    }

    pub fn content(&self, cell: CellId) -> Content {
        self.memory[cell.index()]
    }

    /// The number of its letters, its pending values and its known cells, and twice that of its processes.
    pub fn requirements(&self) -> usize {
        let of = |p: &Process| p.word.len() + p.queues.iter().map(|queue| queue.values.len()).sum::<usize>();
        self.processes.iter().map(|process| of(process) + 2).sum::<usize>() + self.known().count()
    }

    /// The requirements, without known cells that follow from a newest letter once its position is the end of the
    /// buffer.
    pub fn weight(&self, sets: &ValueSets) -> usize {
        let follows = |&(cell, content): &(CellId, Content)| {
            let allows_no_more = |letter: Symbol| sets.is_subset(cell, letter.set(), content.set());
            let mut newest = self.newest_letters().filter(|letter| !letter.is_own() && letter.cell() == cell);
            newest.any(allows_no_more)
        };
        self.requirements() - self.known().filter(follows).count()
    }

    /// The known cells.
    fn known(&self) -> impl Iterator<Item = (CellId, Content)> {
        let cells =
            self.memory.iter().enumerate().map(|(index, &content)| (CellId::from_index(index), content));
        cells.filter(|&(_, content)| content != Content::ANY)
    }

    /// The letters that no other letter is newer than: in one buffer the last of all, otherwise the last of each process.
    fn newest_letters(&self) -> impl Iterator<Item = Symbol> {
        let last = self.order.last().map(|&process| usize::from(process));
        let processes = self.processes.iter().enumerate();
        let of_last = processes.filter(move |&(process, _)| last.is_none_or(|last| last == process));
        of_last.filter_map(|(_, process)| process.word.last().copied())
    }

    /// The kinds and states of the processes, sorted. A process that may be at any state has no key, since
    /// elements above may have it at some state.
    pub fn keys(&self) -> Vec<u64> {
        let known = self.processes.iter().filter_map(|p| Some((p.kind, p.state?)));
        known.map(|(kind, state)| u64::from(kind) << 32 | u64::from(state.0)).collect()
    }

    /// The approximate number of bytes it takes beyond its own size.
    pub fn bytes(&self) -> usize {
        let spilled = |p: &Process| {
            let word = if p.word.spilled() { 4 * p.word.capacity() } else { 0 };
            let queues = if p.queues.spilled() { size_of::<Queue>() * p.queues.capacity() } else { 0 };
            word + queues
        };
        size_of::<Process>() * self.processes.capacity() + self.processes.iter().map(spilled).sum::<usize>()
    }

    /// All letters of some processes, oldest first. With `order`, as they are arranged in one buffer.
    pub fn letters(&self, of: Option<usize>) -> SmallVec<[(usize, Symbol); 12]> {
        letters(&self.processes, &self.order, of)
    }
}

/// The letters of one process, or of all in one buffer, oldest first.
pub(crate) fn letters(
    processes: &[Process],
    order: &[u8],
    of: Option<usize>,
) -> SmallVec<[(usize, Symbol); 12]> {
    if let Some(process) = of {
        return processes[process].word.iter().map(|&symbol| (process, symbol)).collect();
    }
    let mut next: SmallVec<[usize; 8]> = processes.iter().map(|_| 0).collect();
    let in_order = order.iter().map(|&process| {
        let process = usize::from(process);
        next[process] += 1;
        (process, processes[process].word[next[process] - 1])
    });
    in_order.collect()
}
