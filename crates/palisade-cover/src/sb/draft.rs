//! Elements under construction: requirements on memory, dropping letters, and the normal form. The argument
//! is in the header of [`super`].

use super::element::{Content, Element, End, Memory, Process, Queue, Word, letters};
use super::setup::{ProcessKind, Setup, Sharing};
use crate::symbol::Symbol;
use crate::values::SetId;
use palisade_automata::StateId;
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
    /// A process that the step starts.
    pub child: Option<usize>,
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
            child: None,
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
    /// The values that the end of the buffer can hold in a cell, as far as they are known or follow from the
    /// state of the cell's only writer. `None` if there are none.
    pub fn values(&self, memory: &[Content], processes: &[Process], cell: CellId) -> Option<SetId> {
        self.sets.meet(cell, memory[cell.index()].set(), self.possible(processes, cell)?)
    }

    /// The values that the end of the buffer can hold, by the state of the cell's only writer. `None` if the
    /// writer is never in that state.
    pub fn possible(&self, processes: &[Process], cell: CellId) -> Option<SetId> {
        self.held[cell].possible(|kind| processes.iter().find(|process| process.kind == kind)?.state)
    }

    /// Requires that the end of the buffer holds one of these values. They are stored explicitly, even if they
    /// follow from the state of a process: they may not follow from its state before the step.
    pub fn require(&self, draft: &mut Draft, cell: CellId, set: SetId) -> Possible {
        let held = self.values(&draft.memory, &draft.processes, cell)?;
        self.sets.meet(cell, held, set)?;
        let content = &mut draft.memory[cell.index()];
        *content = content.with_set(self.sets.meet(cell, content.set(), set)?);
        Some(())
    }

    /// Places the newest letter of a process, which is the newest of its chain, at the end of the buffer.
    fn drop_letter(&self, draft: &mut Draft, process: usize, writer: Option<Writer>) -> Possible {
        let symbol = *draft.processes[process].word.last().expect("there is a letter");
        if symbol.is_own() && writer != Some(Writer::Store(process, symbol.cell())) {
            // The end of the buffer is another store.
            return None;
        }
        self.require(draft, symbol.cell(), symbol.set())?;
        self.remove_newest(draft, process);
        Some(())
    }

    /// Removes the newest letter of a process. The end of the buffer is as it requires.
    fn remove_newest(&self, draft: &mut Draft, process: usize) {
        if self.sharing == Sharing::One {
            debug_assert_eq!(draft.order.last().map(|&p| usize::from(p)), Some(process), "the newest letter");
            draft.order.pop();
        }
        let of = &mut draft.processes[process];
        let symbol = of.word.pop().expect("there is a letter");
        if self.model == Model::Pso && self.kinds[of.kind as usize].stored[symbol.cell()].is_some() {
            // The letter implied this.
            of.set_queue(Queue::empty(symbol.cell()));
        }
        draft.dropped[process] += 1;
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

    /// Drops the newest letters that allow all values that the end of the buffer can hold, and passes them to
    /// `exposed` with their chains.
    fn drop_exposed(&self, draft: &mut Draft, mut exposed: impl FnMut(usize, Symbol)) -> Possible {
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
                let held = self.values(&draft.memory, &draft.processes, symbol.cell())?;
                if symbol.is_own() || !self.sets.is_subset(symbol.cell(), held, symbol.set()) {
                    break;
                }
                self.remove_newest(draft, process);
                exposed(chain, symbol);
            }
        }
        Some(())
    }

    fn chains(&self, draft: &Draft) -> usize {
        match self.sharing {
            Sharing::One => 1,
            Sharing::PerProcess => draft.processes.len(),
        }
    }

    /// The element immediately after something is put at the end of the buffer, with one of these values in each
    /// cell. Memory holds it, and letters may be there. Produces all ways to choose these letters. Each choice
    /// includes all letters that cannot be older, and ends with one that requires what was put there. Choices that
    /// lead to the same element are made once.
    pub fn with_effect(
        &self,
        mut draft: Draft,
        effect: &[(CellId, SetId)],
        writer: Option<Writer>,
        give: &mut dyn FnMut(Draft),
    ) {
        let held = effect.iter().all(|&(cell, set)| self.require(&mut draft, cell, set).is_some());
        if held {
            self.choose_letters(draft, effect, writer, 0, give);
        }
    }

    fn choose_letters(
        &self,
        mut draft: Draft,
        effect: &[(CellId, SetId)],
        writer: Option<Writer>,
        chain: usize,
        give: &mut dyn FnMut(Draft),
    ) {
        let requires_it = |symbol: Symbol| effect.iter().any(|&(cell, _)| cell == symbol.cell());
        // A letter that the choices made so far expose could have been chosen in its chain as well, with the same
        // result.
        let mut again = false;
        let exposed = self.drop_exposed(&mut draft, |of, symbol| again |= of < chain && requires_it(symbol));
        if exposed.is_none() || again {
            return;
        }
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
            if dropped == least || dropped > least && requires_it(symbol) {
                self.choose_letters(draft.clone(), effect, writer, chain + 1, give);
            }
        }
    }

    /// Brings a draft into normal form:
    /// - letters at the end of the buffer are dropped;
    /// - known cells, own letters and entries of queues also allow all values that the invariants exclude. So what
    ///   follows from the invariants is not mentioned.
    ///
    /// Returns the queues that take effect as a whole before anything else happens, or `None` if no reachable
    /// configuration is in the element.
    pub fn normalise(&self, draft: &mut Draft) -> Option<Vec<(usize, CellId)>> {
        for index in 0..draft.processes.len() {
            let kind = &self.kinds[draft.processes[index].kind as usize];
            let of_kind = |other: &&Process| other.kind == draft.processes[index].kind;
            let mentioned = draft.processes[..=index].iter().filter(of_kind).count();
            if !kind.allows(mentioned) {
                return None;
            }
            self.normalise_process(&mut draft.processes[index])?;
        }
        self.drop_exposed(draft, |_, _| ())?;
        for index in 0..draft.memory.len() {
            let cell = CellId::from_index(index);
            let content = draft.memory[index];
            let possible = self.possible(&draft.processes, cell)?;
            self.sets.meet(cell, content.set(), possible)?;
            draft.memory[index] = match content.is_settled() {
                // Whatever is pending can take effect now.
                true if content.set() == SetId::ALL => Content::ANY,
                true => content,
                false => Content::known(self.widen(cell, content.set(), possible)),
            };
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

    /// Adds the values that the forward analysis excludes. `None` if it excludes the process.
    fn normalise_process(&self, process: &mut Process) -> Possible {
        let Some(state) = process.state else { return Some(()) };
        let kind = &self.kinds[process.kind as usize];
        for symbol in process.word.iter_mut().filter(|symbol| symbol.is_own()) {
            let (cell, own) = (symbol.cell(), kind.own(state, symbol.cell())?);
            self.sets.meet(cell, symbol.set(), own)?;
            *symbol = symbol.with_set(self.widen(cell, symbol.set(), own));
        }
        for queue in &mut process.queues {
            let entries = queue.values.len();
            for place in 0..entries {
                let possible = self.entry(kind, state, queue, place)?;
                self.sets.meet(queue.cell, queue.values[place], possible)?;
                queue.values[place] = self.widen(queue.cell, queue.values[place], possible);
            }
        }
        Some(())
    }

    /// The values that an entry of a queue can have at a state.
    pub fn entry(&self, kind: &ProcessKind, state: StateId, queue: &Queue, place: usize) -> Option<SetId> {
        match queue.end == End::Closed && place + 1 == queue.values.len() {
            true => kind.newest(state, queue.cell),
            false => kind.queued(Some(state), queue.cell),
        }
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

    /// The initial memory that is in the element, if there is any: for each cell, the values that it can have.
    /// Known cells hold initial values, all processes are at their start, nothing is pending, and all letters are
    /// at the first position.
    pub fn initial_memory(&self, element: &Element) -> Option<Vec<SetId>> {
        let at_start = |process: &Process| {
            let started =
                process.state.is_some_and(|state| self.kinds[process.kind as usize].is_start[state]);
            started && process.queues.iter().all(|queue| queue.values.is_empty())
        };
        let few = |(number, kind): (usize, &ProcessKind)| {
            let of_kind = element.processes.iter().filter(|process| process.kind as usize == number);
            kind.allows_initially(of_kind.count())
        };
        if !element.processes.iter().all(at_start) || !self.kinds.iter().enumerate().all(few) {
            return None;
        }
        let known = element.memory.iter().enumerate();
        let mut memory: Vec<SetId> = known
            .map(|(index, content)| {
                let cell = CellId::from_index(index);
                self.sets.meet(cell, content.set(), self.initial[cell])
            })
            .collect::<Option<_>>()?;
        for symbol in element.processes.iter().flat_map(|process| &process.word) {
            if symbol.is_own() {
                return None;
            }
            let content = &mut memory[symbol.cell().index()];
            *content = self.sets.meet(symbol.cell(), *content, symbol.set())?;
        }
        Some(memory)
    }
}

/// The last letters of a word, as many as were dropped.
pub(crate) fn last_letters(word: &Word, letters: usize) -> Word {
    word[word.len() - letters..].into()
}
