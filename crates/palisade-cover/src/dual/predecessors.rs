//! Undoing steps. The rules and the argument for them are in the header of [`super`].

use super::element::{Content, Element, Process, Word};
use super::setup::{ProcessKind, Setup};
use crate::bad::Bad;
use crate::facts::{initial_values, writes};
use crate::symbol::Symbol;
use palisade_automata::{Edge, Letter, StateId, ValueId};
use palisade_base::{Id, limits};
use palisade_program::running::CellId;
use smallvec::SmallVec;

/// How a predecessor was derived: what happens between it and its successor.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The edge taken: kind and index.
    pub kind: u32,
    pub edge: usize,
    /// The process of the predecessor that takes it.
    pub actor: usize,
    /// The source state of the edge. The actor gets there by silent edges.
    pub from: StateId,
    /// For each process of the predecessor, its index in the successor. `None` if the successor does not
    /// mention it.
    pub becomes: Vec<Option<usize>>,
    /// For each process of the predecessor, the letters that reach its buffer before the step, newest first.
    pub before: Vec<Word>,
    /// For each process of the successor, the number of its newest letters that reach its buffer after the
    /// step.
    pub after: Vec<usize>,
}

/// An element that is being changed.
#[derive(Clone)]
struct Draft {
    memory: SmallVec<[Content; 16]>,
    processes: SmallVec<[Process; 6]>,
    /// The number of letters each process has lost at its new end.
    dropped: SmallVec<[usize; 6]>,
}

impl Draft {
    fn of(element: &Element) -> Draft {
        Draft {
            memory: element.memory.clone(),
            processes: element.processes.iter().cloned().collect(),
            dropped: element.processes.iter().map(|_| 0).collect(),
        }
    }

    fn any_dropped(&self) -> bool {
        self.dropped.iter().any(|&dropped| dropped > 0)
    }
}

/// `None` as soon as an element turns out to contain no reachable configuration.
type Possible = Option<()>;

impl Setup {
    /// Passes a sufficient set of predecessors of an element to `give`.
    pub fn predecessors(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        if let Some(alone) = self.alone(element) {
            self.undo_steps_of(element, alone, give);
            return;
        }
        for actor in 0..element.processes.len() {
            // Equal processes have equal requirements, so one represents all.
            if actor == 0 || element.processes[actor] != element.processes[actor - 1] {
                self.undo_steps_of(element, actor, give);
            }
        }
        self.undo_writes_of_others(element, give);
    }

    /// A process whose last step can be moved to the end of the run.
    pub fn alone(&self, element: &Element) -> Option<usize> {
        element.processes.iter().position(|process| {
            let kind = &self.kinds[process.kind as usize];
            !kind.is_start[process.state]
                && (kind.only_reads[process.state]
                    || process.word.is_empty() && kind.only_reads_and_fences[process.state])
        })
    }

    fn undo_steps_of(&self, element: &Element, actor: usize, give: &mut dyn FnMut(Element, Step)) {
        let process = &element.processes[actor];
        let kind = &self.kinds[process.kind as usize];
        for &number in &kind.incoming[process.state] {
            limits::checkpoint();
            let edge = &kind.edges[number];
            let mut finish = |draft: Draft| self.finish(element, draft, actor, number, edge, give);
            match &edge.letter {
                Letter::Read(cell, value) => {
                    self.undo_read(element, actor, kind, *cell, *value, edge, &mut finish)
                }
                Letter::Write(cell, value) => {
                    self.with_value(Draft::of(element), *cell, *value, Some(actor), &mut |mut draft| {
                        if self.undo_own_write(&mut draft, actor, *cell, *value).is_some() {
                            finish(draft);
                        }
                    });
                }
                Letter::Fence => {
                    let mut draft = Draft::of(element);
                    let all = draft.processes[actor].word.len();
                    if self.drop_letters(&mut draft, actor, all).is_some() {
                        finish(draft);
                    }
                }
                Letter::Locked { guard, effect } => {
                    self.with_values(Draft::of(element), effect, Some(actor), &mut |mut draft| {
                        let all = draft.processes[actor].word.len();
                        if self.drop_letters(&mut draft, actor, all).is_some()
                            && self.undo_locked(&mut draft, guard, effect).is_some()
                        {
                            finish(draft);
                        }
                    });
                }
                Letter::Silent | Letter::StoreFence => {
                    unreachable!("silent edges are not among the incoming ones")
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn undo_read(
        &self,
        element: &Element,
        actor: usize,
        kind: &ProcessKind,
        cell: CellId,
        value: ValueId,
        edge: &Edge,
        finish: &mut dyn FnMut(Draft),
    ) {
        let word = &element.processes[actor].word;
        if let Some(own) = word.iter().find(|symbol| symbol.is_own() && symbol.cell() == cell) {
            if own.value() == value {
                finish(Draft::of(element));
            }
            return;
        }
        // From the buffer: the message is the oldest one required.
        let message = Symbol::plain(cell, value);
        let mut draft = Draft::of(element);
        if word.last() != Some(&message) {
            draft.processes[actor].word.push(message);
        }
        finish(draft);
        // From an own message, older than all required plain ones of the cell.
        let own = Symbol::own(cell, value);
        if kind.may_be_pending(edge.source, own) {
            let first = word.iter().rposition(|symbol| symbol.cell() == cell).map_or(0, |last| last + 1);
            for place in first..=word.len() {
                let mut draft = Draft::of(element);
                draft.processes[actor].word.insert(place, own);
                finish(draft);
            }
        }
    }

    fn undo_own_write(&self, draft: &mut Draft, actor: usize, cell: CellId, value: ValueId) -> Possible {
        let word = &draft.processes[actor].word;
        match word.iter().rposition(|symbol| symbol.cell() == cell) {
            None => {}
            Some(last) if word[last].is_own() => {
                if word[last].value() != value {
                    return None;
                }
                self.drop_letters(draft, actor, last)?;
                draft.processes[actor].word.remove(0);
            }
            Some(last) => self.drop_letters(draft, actor, last + 1)?,
        }
        draft.memory[cell.index()] = Content::ANY;
        Some(())
    }

    fn undo_locked(
        &self,
        draft: &mut Draft,
        guard: &[(CellId, ValueId)],
        effect: &[(CellId, ValueId)],
    ) -> Possible {
        for &(cell, _) in effect {
            draft.memory[cell.index()] = Content::ANY;
        }
        for &(cell, value) in guard {
            if effect.iter().all(|&(written, _)| written != cell) {
                self.require(draft, cell, value)?;
            }
            // The value may follow from a process's state after the instruction without following from its
            // state before it.
            draft.memory[cell.index()] = Content::known(value);
        }
        Some(())
    }

    /// Processes that the element does not mention enter by writing a value that the element requires.
    fn undo_writes_of_others(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        let known =
            element.memory.iter().enumerate().filter_map(|(index, content)| {
                content.value().map(|value| (CellId::from_index(index), value))
            });
        let mut wanted: Vec<(CellId, ValueId)> = known.collect();
        for process in &element.processes {
            let plain = process.word.iter().take_while(|symbol| !symbol.is_own());
            wanted.extend(plain.map(|symbol| (symbol.cell(), symbol.value())));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut entering: Vec<(u32, usize)> = wanted
            .iter()
            .filter_map(|cell_and_value| self.writers.get(cell_and_value))
            .flatten()
            .copied()
            .collect();
        entering.sort_unstable();
        entering.dedup();
        for (kind_number, number) in entering {
            limits::checkpoint();
            let kind = &self.kinds[kind_number as usize];
            let mentioned = element.processes.iter().filter(|process| process.kind == kind_number).count();
            if !kind.allows(mentioned + 1) {
                continue;
            }
            let edge = &kind.edges[number];
            let effect = writes(&edge.letter);
            let guard: &[_] = match &edge.letter {
                Letter::Locked { guard, .. } => guard,
                _ => &[],
            };
            let is_required = effect.iter().any(|&(cell, _)| element.content(cell) != Content::ANY);
            self.with_values(Draft::of(element), &effect, None, &mut |mut draft| {
                if (is_required || draft.any_dropped())
                    && self.undo_locked(&mut draft, guard, &effect).is_some()
                {
                    let state = edge.target;
                    draft.processes.push(Process { kind: kind_number, state, word: Word::new() });
                    draft.dropped.push(0);
                    let actor = element.processes.len();
                    self.finish(element, draft, actor, number, edge, give);
                }
            });
        }
    }

    /// The elements before a free write. In each word, the newest free letter that has only plain letters
    /// newer than it is dropped together with these.
    pub fn undo_free_writes(&self, element: &Element, give: &mut dyn FnMut(Element)) {
        for (index, process) in element.processes.iter().enumerate() {
            let mut plain = process.word.iter().take_while(|symbol| !symbol.is_own());
            let free = plain.position(|symbol| self.is_free(symbol.cell(), symbol.value()));
            let Some(place) = free else { continue };
            let mut draft = Draft::of(element);
            let dropped = self.drop_letters(&mut draft, index, place);
            if dropped.is_some() && self.memory(&draft, process.word[place].cell()).is_none() {
                draft.processes[index].word.remove(0);
                if self.normalise(&mut draft).is_some() {
                    draft.processes.sort();
                    give(Element::new(draft.memory, draft.processes.into_vec()));
                }
            }
        }
    }

    /// The element in normal form.
    pub fn simplified(&self, element: &Element) -> Element {
        let mut draft = Draft::of(element);
        match self.normalise(&mut draft) {
            Some(()) => {
                draft.processes.sort();
                Element::new(draft.memory, draft.processes.into_vec())
            }
            None => element.clone(),
        }
    }

    /// Whether a process that is not followed may write the value.
    pub fn is_free(&self, cell: CellId, value: ValueId) -> bool {
        !self.free.is_empty() && self.free.contains(&(cell, value))
    }

    /// The value of a cell in memory, if it is known or follows from the state of the cell's only writer.
    fn memory(&self, draft: &Draft, cell: CellId) -> Option<ValueId> {
        draft.memory[cell.index()].value().or_else(|| self.implied(&draft.processes, cell))
    }

    /// The value of a cell that follows from the state of its only writer.
    pub fn implied(&self, processes: &[Process], cell: CellId) -> Option<ValueId> {
        self.sole[cell].implied(|kind| Some(processes.iter().find(|process| process.kind == kind)?.state))
    }

    /// Whether the state of a cell's only writer allows memory to hold a value.
    fn allowed(&self, processes: &[Process], cell: CellId, value: ValueId) -> bool {
        let state_of = |kind| Some(processes.iter().find(|process| process.kind == kind)?.state);
        self.sole[cell].allows(value, state_of)
    }

    /// Requires that memory holds a value.
    fn require(&self, draft: &mut Draft, cell: CellId, value: ValueId) -> Possible {
        match self.memory(draft, cell) {
            Some(held) => (held == value).then_some(()),
            // A process that is not followed may have written it.
            None if self.is_free(cell, value) => Some(()),
            None => {
                draft.memory[cell.index()] = Content::known(value);
                self.allowed(&draft.processes, cell, value).then_some(())
            }
        }
    }

    /// Undoes the propagation of the newest letters of a process. Memory held their values.
    fn drop_letters(&self, draft: &mut Draft, process: usize, letters: usize) -> Possible {
        for _ in 0..letters {
            let symbol = draft.processes[process].word[0];
            // Free letters are dropped by separate steps.
            if symbol.is_own() || self.is_free(symbol.cell(), symbol.value()) {
                return None;
            }
            self.require(draft, symbol.cell(), symbol.value())?;
            draft.processes[process].word.remove(0);
            draft.dropped[process] += 1;
        }
        Some(())
    }

    /// Undoes the propagation of newest letters whose value memory is known to hold, or whose value a process
    /// that is not followed may have written.
    fn drop_exposed(&self, draft: &mut Draft) {
        for process in 0..draft.processes.len() {
            while let Some(&symbol) = draft.processes[process].word.first() {
                let (cell, value) = (symbol.cell(), symbol.value());
                let held = match self.memory(draft, cell) {
                    Some(held) => held == value,
                    None => self.is_free(cell, value),
                };
                if symbol.is_own() || !held {
                    break;
                }
                draft.processes[process].word.remove(0);
                draft.dropped[process] += 1;
            }
        }
    }

    /// The element immediately after a write of this value. Memory holds it, and letters that require it may
    /// have been propagated since. Produces all ways to choose these letters, except for the writer's own
    /// letters.
    fn with_value(
        &self,
        mut draft: Draft,
        cell: CellId,
        value: ValueId,
        writer: Option<usize>,
        give: &mut dyn FnMut(Draft),
    ) {
        if self.require(&mut draft, cell, value).is_none() {
            return;
        }
        self.drop_exposed(&mut draft);
        self.drop_through(draft, Symbol::plain(cell, value), 0, writer, give);
    }

    fn with_values(
        &self,
        draft: Draft,
        effect: &[(CellId, ValueId)],
        writer: Option<usize>,
        give: &mut dyn FnMut(Draft),
    ) {
        match effect.split_first() {
            None => give(draft),
            Some((&(cell, value), rest)) => self.with_value(draft, cell, value, writer, &mut |draft| {
                self.with_values(draft, rest, writer, give);
            }),
        }
    }

    /// For each process from `first` on: keep its word, or drop all letters up to and including one that
    /// equals `message`.
    fn drop_through(
        &self,
        draft: Draft,
        message: Symbol,
        first: usize,
        writer: Option<usize>,
        give: &mut dyn FnMut(Draft),
    ) {
        let Some(process) = (first..draft.processes.len()).find(|&process| Some(process) != writer) else {
            give(draft);
            return;
        };
        let plain = draft.processes[process].word.iter().take_while(|symbol| !symbol.is_own());
        let places: SmallVec<[usize; 4]> =
            plain.enumerate().filter(|(_, symbol)| **symbol == message).map(|(place, _)| place).collect();
        for place in places {
            let mut dropped = draft.clone();
            if self.drop_letters(&mut dropped, process, place + 1).is_none() {
                break;
            }
            self.drop_exposed(&mut dropped);
            self.drop_through(dropped, message, process + 1, writer, give);
        }
        self.drop_through(draft, message, process + 1, writer, give);
    }

    /// Moves the actor to the start of the edge, brings the predecessor into normal form, and passes it on.
    fn finish(
        &self,
        successor: &Element,
        mut draft: Draft,
        actor: usize,
        edge_number: usize,
        edge: &Edge,
        give: &mut dyn FnMut(Element, Step),
    ) {
        let kind_number = draft.processes[actor].kind;
        let after = draft.dropped[..successor.processes.len()].to_vec();
        draft.dropped.iter_mut().for_each(|dropped| *dropped = 0);
        for &root in &self.kinds[kind_number as usize].roots[edge.source] {
            let mut draft = draft.clone();
            draft.processes[actor].state = root;
            let words: SmallVec<[Word; 6]> =
                draft.processes.iter().map(|process| process.word.clone()).collect();
            if self.normalise(&mut draft).is_none() {
                continue;
            }
            let mut order: Vec<usize> = (0..draft.processes.len()).collect();
            order.sort_by(|&a, &b| draft.processes[a].cmp(&draft.processes[b]));
            let step = Step {
                kind: kind_number,
                edge: edge_number,
                actor: order.iter().position(|&index| index == actor).expect("the actor is there"),
                from: edge.source,
                becomes: order
                    .iter()
                    .map(|&index| (index < successor.processes.len()).then_some(index))
                    .collect(),
                before: order.iter().map(|&index| words[index][..draft.dropped[index]].into()).collect(),
                after: after.clone(),
            };
            let processes = order.iter().map(|&index| draft.processes[index].clone()).collect();
            give(Element::new(draft.memory, processes), step);
        }
    }

    /// Brings a draft into normal form: exposed letters are dropped, and implied memory is not mentioned.
    /// `None` if no reachable configuration is in the element.
    fn normalise(&self, draft: &mut Draft) -> Possible {
        for (index, process) in draft.processes.iter().enumerate() {
            let kind = &self.kinds[process.kind as usize];
            let mentioned =
                draft.processes[..=index].iter().filter(|other| other.kind == process.kind).count();
            let pending = |symbol: &Symbol| !symbol.is_own() || kind.may_be_pending(process.state, *symbol);
            if !kind.allows(mentioned) || !process.word.iter().all(pending) {
                return None;
            }
        }
        for index in 0..draft.memory.len() {
            let free = |value| self.is_free(CellId::from_index(index), value);
            if draft.memory[index].value().is_some_and(free) {
                draft.memory[index] = Content::ANY;
            }
        }
        self.drop_exposed(draft);
        for index in 0..draft.memory.len() {
            let cell = CellId::from_index(index);
            if let Some(value) = draft.memory[index].value() {
                if !self.allowed(&draft.processes, cell, value) {
                    return None;
                }
                if self.implied(&draft.processes, cell).is_some() {
                    draft.memory[index] = Content::ANY;
                }
            }
        }
        Some(())
    }

    /// The elements for a bad combination, with each process moved back to the start of its silent edges.
    /// Each comes with the states that the combination names, in the order of the element's processes.
    pub fn bad_elements(&self, bad: &Bad, give: &mut dyn FnMut(Element, Vec<StateId>)) {
        let mut memory: SmallVec<[Content; 16]> = std::iter::repeat_n(Content::ANY, self.cells).collect();
        for &(cell, value) in &bad.memory {
            memory[cell.index()] = Content::known(value);
        }
        self.choose_roots(&memory, &mut Vec::new(), &bad.processes, give);
    }

    fn choose_roots(
        &self,
        memory: &SmallVec<[Content; 16]>,
        chosen: &mut Vec<(Process, StateId)>,
        rest: &[(u32, StateId)],
        give: &mut dyn FnMut(Element, Vec<StateId>),
    ) {
        let Some((&(kind, state), rest)) = rest.split_first() else {
            let mut sorted = chosen.clone();
            sorted.sort();
            let mut draft = Draft {
                memory: memory.clone(),
                processes: sorted.iter().map(|(process, _)| process.clone()).collect(),
                dropped: sorted.iter().map(|_| 0).collect(),
            };
            if self.normalise(&mut draft).is_some() {
                let states = sorted.into_iter().map(|(_, state)| state).collect();
                give(Element::new(draft.memory, draft.processes.into_vec()), states);
            }
            return;
        };
        for &root in &self.kinds[kind as usize].roots[state] {
            chosen.push((Process { kind, state: root, word: Word::new() }, state));
            self.choose_roots(memory, chosen, rest, give);
            chosen.pop();
        }
    }

    /// An initial memory that is in the element, if there is one. Known cells hold initial values, all
    /// processes are at their start, and all letters can be propagated from that memory.
    pub fn initial_memory(&self, element: &Element) -> Option<Vec<Option<ValueId>>> {
        let at_start = |process: &Process| self.kinds[process.kind as usize].is_start[process.state];
        if !element.processes.iter().all(at_start) {
            return None;
        }
        let known = element.memory.iter().map(|content| content.value());
        let letters = element.processes.iter().flat_map(|process| &process.word);
        initial_values(known, letters, &self.initial)
    }
}
