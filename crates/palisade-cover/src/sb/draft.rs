//! Elements under construction: requirements on memory, dropping letters, and the normal form. The argument
//! is in the header of [`super`].

use super::element::{Content, Element, Memory, Process, Queue, Word, letters};
use super::setup::{Setup, Sharing};
use crate::facts::initial_values;
use crate::symbol::Symbol;
use palisade_automata::ValueId;
use palisade_base::{Id, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;
use smallvec::SmallVec;

/// An element that is being changed.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub memory: Memory,
    pub processes: SmallVec<[Process; 6]>,
    pub order: SmallVec<[u8; 12]>,
    /// The number of letters each process has lost at its new end.
    pub dropped: SmallVec<[usize; 6]>,
}

/// `None` if nothing reachable is left.
pub(crate) type Possible = Option<()>;

/// The process that puts something at the end of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writer {
    /// A process, by a store to a cell. Its own letter on the cell is that store.
    Store(usize, CellId),
    /// A process, by a locked instruction. It has seen all of the buffer.
    Locked(usize),
}

impl Draft {
    pub fn of(element: &Element) -> Draft {
        Draft {
            memory: element.memory.clone(),
            processes: element.processes.iter().cloned().collect(),
            order: element.order.clone(),
            dropped: element.processes.iter().map(|_| 0).collect(),
        }
    }

    pub fn any_dropped(&self) -> bool {
        self.dropped.iter().any(|&dropped| dropped > 0)
    }

    pub fn add(&mut self, process: Process) -> usize {
        self.processes.push(process);
        self.dropped.push(0);
        self.processes.len() - 1
    }

    /// The letters of a chain, newest first. A chain is the letters of one process, or of all processes in
    /// one buffer.
    fn newest_first(&self, chain: usize, sharing: Sharing) -> SmallVec<[(usize, Symbol); 12]> {
        let mut letters = match sharing {
            Sharing::One => letters(&self.processes, &self.order, None),
            Sharing::PerProcess => letters(&self.processes, &self.order, Some(chain)),
        };
        letters.reverse();
        letters
    }
}

impl Setup {
    /// The value of a cell at the end of the buffer, if it is known or follows from the state of the cell's
    /// only writer.
    pub fn value(&self, memory: &[Content], processes: &[Process], cell: CellId) -> Option<ValueId> {
        memory[cell.index()].value().or_else(|| self.implied(processes, cell))
    }

    /// The value of a cell that follows from the state of its only writer.
    fn implied(&self, processes: &[Process], cell: CellId) -> Option<ValueId> {
        self.sole[cell].implied(|kind| processes.iter().find(|process| process.kind == kind)?.state)
    }

    /// Whether the state of a cell's only writer allows the cell to hold a value.
    fn allowed(&self, processes: &[Process], cell: CellId, value: ValueId) -> bool {
        self.sole[cell].allows(value, |kind| processes.iter().find(|process| process.kind == kind)?.state)
    }

    /// Requires that the end of the buffer holds a value.
    pub fn require(&self, draft: &mut Draft, cell: CellId, value: ValueId) -> Possible {
        match self.value(&draft.memory, &draft.processes, cell) {
            Some(held) => (held == value).then_some(()),
            None => {
                draft.memory[cell.index()] = Content::known(value);
                self.allowed(&draft.processes, cell, value).then_some(())
            }
        }
    }

    /// Requires that the end of the buffer held a value when a locked instruction looked at it. The value may
    /// follow from a process's state after the instruction without following from its state before it, so it
    /// is stored explicitly.
    pub fn require_in_front(&self, draft: &mut Draft, cell: CellId, value: ValueId) -> Possible {
        self.require(draft, cell, value)?;
        if draft.memory[cell.index()] == Content::ANY {
            draft.memory[cell.index()] = Content::known(value);
        }
        Some(())
    }

    /// Places the newest letter of a process, which is the newest of its chain, at the end of the buffer.
    fn drop_letter(&self, draft: &mut Draft, process: usize, writer: Option<Writer>) -> Possible {
        let symbol = *draft.processes[process].word.last().expect("there is a letter");
        if symbol.is_own() && writer != Some(Writer::Store(process, symbol.cell())) {
            // The end of the buffer is another store.
            return None;
        }
        self.require(draft, symbol.cell(), symbol.value())?;
        if self.sharing == Sharing::One {
            debug_assert_eq!(draft.order.last().map(|&p| usize::from(p)), Some(process), "the newest letter");
            draft.order.pop();
        }
        let of = &mut draft.processes[process];
        of.word.pop();
        if self.model == Model::Pso && self.kinds[of.kind as usize].stores_to[symbol.cell()] {
            // The letter implied this.
            of.set_queue(Queue::empty(symbol.cell()));
        }
        draft.dropped[process] += 1;
        Some(())
    }

    /// Places all letters of a process, and with one buffer those after them, at the end of the buffer.
    pub fn drop_all(&self, draft: &mut Draft, process: usize) -> Possible {
        while !draft.processes[process].word.is_empty() {
            let newest = match self.sharing {
                Sharing::One => usize::from(*draft.order.last().expect("letters are ordered")),
                Sharing::PerProcess => process,
            };
            self.drop_letter(draft, newest, None)?;
        }
        Some(())
    }

    /// Drops the newest letters whose value the end of the buffer is known to hold.
    fn drop_exposed(&self, draft: &mut Draft) {
        let chains = self.chains(draft);
        for chain in 0..chains {
            limits::checkpoint();
            loop {
                let process = match self.sharing {
                    Sharing::One => draft.order.last().map(|&process| usize::from(process)),
                    Sharing::PerProcess => Some(chain),
                };
                let newest =
                    process.and_then(|process| Some((process, *draft.processes[process].word.last()?)));
                let Some((process, symbol)) = newest else { break };
                let held = self.value(&draft.memory, &draft.processes, symbol.cell());
                if symbol.is_own() || held != Some(symbol.value()) {
                    break;
                }
                self.drop_letter(draft, process, None).expect("the value is held");
            }
        }
    }

    fn chains(&self, draft: &Draft) -> usize {
        match self.sharing {
            Sharing::One => 1,
            Sharing::PerProcess => draft.processes.len(),
        }
    }

    /// The element immediately after something is put at the end of the buffer. Memory holds it, and letters
    /// may be there. Produces all ways to choose these letters. Each choice includes all letters that cannot
    /// be older, and ends with one that requires what was put there.
    pub fn with_effect(
        &self,
        mut draft: Draft,
        effect: &[(CellId, ValueId)],
        writer: Option<Writer>,
        give: &mut dyn FnMut(Draft),
    ) {
        let held = effect.iter().all(|&(cell, value)| self.require(&mut draft, cell, value).is_some());
        if held {
            self.choose_letters(draft, effect, writer, 0, give);
        }
    }

    fn choose_letters(
        &self,
        mut draft: Draft,
        effect: &[(CellId, ValueId)],
        writer: Option<Writer>,
        chain: usize,
        give: &mut dyn FnMut(Draft),
    ) {
        self.drop_exposed(&mut draft);
        if chain == self.chains(&draft) {
            give(draft);
            return;
        }
        let letters = draft.newest_first(chain, self.sharing);
        let must = |&(process, symbol): &(usize, Symbol)| match writer {
            Some(Writer::Store(writer, cell)) => process == writer && symbol.cell() == cell,
            Some(Writer::Locked(writer)) => process == writer,
            None => false,
        };
        let least = letters.iter().rposition(must).map_or(0, |oldest| oldest + 1);
        if least == 0 {
            self.choose_letters(draft.clone(), effect, writer, chain + 1, give);
        }
        for (index, &(process, symbol)) in letters.iter().enumerate() {
            if self.drop_letter(&mut draft, process, writer).is_none() {
                return;
            }
            let dropped = index + 1;
            if dropped == least || dropped > least && effect.contains(&symbol.message()) {
                self.choose_letters(draft.clone(), effect, writer, chain + 1, give);
            }
        }
    }

    /// Brings a draft into normal form: letters at the end of the buffer are dropped, and facts that follow
    /// from others are not mentioned. Returns the queues that take effect as a whole before anything else
    /// happens, or `None` if no reachable configuration is in the element.
    pub fn normalise(&self, draft: &mut Draft) -> Option<Vec<(usize, CellId)>> {
        for (index, process) in draft.processes.iter().enumerate() {
            let kind = &self.kinds[process.kind as usize];
            let mentioned =
                draft.processes[..=index].iter().filter(|other| other.kind == process.kind).count();
            if !kind.allows(mentioned) || !self.may_be(process) {
                return None;
            }
        }
        self.drop_exposed(draft);
        for index in 0..draft.memory.len() {
            let cell = CellId::from_index(index);
            if let Some(value) = draft.memory[index].value() {
                if !self.allowed(&draft.processes, cell, value) {
                    return None;
                }
                if !draft.memory[index].is_settled() && self.implied(&draft.processes, cell).is_some() {
                    draft.memory[index] = Content::ANY;
                }
            }
        }
        let mut flushed = Vec::new();
        for (index, process) in draft.processes.iter_mut().enumerate() {
            let empty: SmallVec<[CellId; 4]> =
                process.queues.iter().filter(|queue| queue.is_empty()).map(|queue| queue.cell).collect();
            for cell in empty {
                let content = draft.memory[cell.index()];
                let pending = self.kinds[process.kind as usize].may_have_queue(process.state, cell);
                if process.has_letter(cell) || content.is_settled() || !pending {
                    process.forget_queue(cell);
                } else if content == Content::ANY {
                    process.forget_queue(cell);
                    flushed.push((index, cell));
                }
            }
        }
        Some(flushed)
    }

    /// Whether the forward analysis allows the requirements on a process.
    fn may_be(&self, process: &Process) -> bool {
        let Some(state) = process.state else { return true };
        let kind = &self.kinds[process.kind as usize];
        let own = |symbol: &Symbol| !symbol.is_own() || kind.may_be_own(state, symbol.cell(), symbol.value());
        let queue = |queue: &Queue| {
            let newest = match (queue.end, queue.values.last()) {
                (super::element::End::Closed, Some(&last)) => kind.may_be_newest(state, queue.cell, last),
                _ => true,
            };
            newest && queue.values.iter().all(|&value| kind.may_be_queued(state, queue.cell, value))
        };
        process.word.iter().all(own) && process.queues.iter().all(queue)
    }

    /// Sorts the processes. Returns the element and, for each of its processes, the index of that process in
    /// the draft.
    pub fn sorted(&self, draft: &Draft) -> (Element, Vec<usize>) {
        let mut places: Vec<usize> = (0..draft.processes.len()).collect();
        places.sort_by(|&a, &b| draft.processes[a].cmp(&draft.processes[b]));
        let mut new = vec![0u8; places.len()];
        for (place, &old) in places.iter().enumerate() {
            new[old] = place as u8;
        }
        let order = draft.order.iter().map(|&process| new[usize::from(process)]).collect();
        let processes = places.iter().map(|&index| draft.processes[index].clone()).collect();
        (Element::new(draft.memory.clone(), processes, order), places)
    }

    /// An initial memory that is in the element, if there is one. Known cells hold initial values, all
    /// processes are at their start, nothing is pending, and all letters are at the first position.
    pub fn initial_memory(&self, element: &Element) -> Option<Vec<Option<ValueId>>> {
        let at_start = |process: &Process| {
            let started =
                process.state.is_some_and(|state| self.kinds[process.kind as usize].is_start[state]);
            started && process.queues.iter().all(|queue| queue.values.is_empty())
        };
        if !element.processes.iter().all(at_start) {
            return None;
        }
        let known = element.memory.iter().map(|content| content.value());
        let letters = element.processes.iter().flat_map(|process| &process.word);
        initial_values(known, letters, &self.initial)
    }
}

/// The last letters of a word, as many as were dropped.
pub(crate) fn last_letters(word: &Word, letters: usize) -> Word {
    word[word.len() - letters..].into()
}
