//! Undoing steps. The rules and the argument for them are in the header of [`super`].

use super::draft::{Draft, Possible, Writer, last_letters};
use super::element::{Content, Element, End, Memory, Process, Queue, Word};
use super::setup::{ProcessKind, Setup, Sharing, Wait};
use crate::bad::Bad;
use crate::facts::writes;
use crate::symbol::Symbol;
use palisade_automata::{Edge, Letter, StateId, ValueId};
use palisade_base::{Id, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;

/// How a predecessor was derived: what happens between it and its successor.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub act: Act,
    /// The process of the predecessor that acts.
    pub actor: usize,
    /// For each process of the predecessor, its index in the successor. `None` if the successor does not
    /// mention it.
    pub becomes: Vec<Option<usize>>,
    /// Queues of the predecessor's processes that take effect as a whole before the step.
    pub flushed: Vec<(usize, CellId)>,
    /// For each process of the predecessor, the letters that are at the end of the buffer before the step,
    /// oldest first.
    pub before: Vec<Word>,
    /// For each process of the successor, the number of its newest letters that are at the end of the buffer
    /// after the step.
    pub after: Vec<usize>,
    pub required: Required,
}

/// The requirement of a read on the actor's word (with the letters of `before`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Required {
    /// Nothing.
    Nothing,
    /// That its pointer is at its first letter, which was already required.
    First,
    /// A letter that was not yet required.
    New(usize),
}

/// The action of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// It takes an edge. It gets to the edge's source by silent edges.
    Edge { kind: u32, edge: usize },
    /// Its oldest pending store to a cell takes effect, with this value (PSO).
    Effect(CellId, ValueId),
}

/// Receives a step in progress: the draft of the predecessor, and what a read required.
type Give<'g> = &'g mut dyn FnMut(Draft, Required);

impl Setup {
    /// Passes a sufficient set of predecessors of an element to `give`.
    pub fn predecessors(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        if let Some(alone) = self.alone(element) {
            self.undo_edges_of(element, alone, give);
            return;
        }
        for actor in 0..element.processes.len() {
            // Equal processes have equal requirements, so one represents all.
            let same = actor > 0 && element.processes[actor] == element.processes[actor - 1];
            if !same || self.sharing == Sharing::One {
                self.undo_edges_of(element, actor, give);
            }
        }
        self.undo_effects(element, give);
        self.undo_locked_of_others(element, give);
    }

    /// A process whose last instruction can be moved to the end of the run.
    fn alone(&self, element: &Element) -> Option<usize> {
        element.processes.iter().position(|process| {
            let kind = &self.kinds[process.kind as usize];
            let can_be_last = |&number: &usize| {
                let edge = &kind.edges[number];
                match &edge.letter {
                    // A read that may see a store which takes effect later must come before that effect.
                    Letter::Read(cell, value) => !kind.may_be_newest(edge.source, *cell, *value),
                    Letter::Fence => process.word.is_empty(),
                    Letter::StoreFence => true,
                    // The store is still pending.
                    Letter::Write(cell, _) => process.queue(*cell).is_some_and(|q| !q.values.is_empty()),
                    Letter::Silent | Letter::Locked { .. } => false,
                }
            };
            let state = process.state.filter(|&state| !kind.is_start[state]);
            state.is_some_and(|state| kind.incoming[state].iter().all(can_be_last))
        })
    }

    fn undo_edges_of(&self, element: &Element, actor: usize, give: &mut dyn FnMut(Element, Step)) {
        let process = &element.processes[actor];
        let kind = &self.kinds[process.kind as usize];
        match process.state {
            Some(state) => {
                for &number in &kind.incoming[state] {
                    limits::checkpoint();
                    self.undo_edge(element, actor, number, give);
                }
            }
            // Its pending values were stored, and one of these stores was the last.
            None => {
                for queue in &process.queues {
                    let last = queue.values.last().and_then(|&last| kind.stores.get(&(queue.cell, last)));
                    for &number in last.into_iter().flatten() {
                        self.undo_edge(element, actor, number, give);
                    }
                }
            }
        }
    }

    fn undo_edge(&self, element: &Element, actor: usize, number: usize, give: &mut dyn FnMut(Element, Step)) {
        let kind_number = element.processes[actor].kind;
        let kind = &self.kinds[kind_number as usize];
        let edge = &kind.edges[number];
        let act = Act::Edge { kind: kind_number, edge: number };
        let draft = Draft::of(element);
        let mut finish = |draft: Draft, required| {
            self.finish(
                element,
                draft,
                actor,
                act,
                kind.roots[edge.source].iter().map(|&s| Some(s)),
                required,
                give,
            );
        };
        match &edge.letter {
            Letter::Read(cell, value) => self.undo_read(draft, actor, kind, edge, *cell, *value, &mut finish),
            Letter::Write(cell, value) if self.model == Model::Pso => {
                self.undo_store(draft, actor, *cell, *value, &mut finish);
            }
            Letter::Write(cell, value) => {
                self.with_effect(
                    draft,
                    &[(*cell, *value)],
                    Some(Writer::Store(actor, *cell)),
                    &mut |mut draft| {
                        draft.memory[cell.index()] = Content::ANY;
                        finish(draft, Required::Nothing);
                    },
                );
            }
            Letter::Fence => {
                let mut draft = draft;
                if self.drop_all(&mut draft, actor).is_some()
                    && self.empty_queues(&mut draft, actor, edge.source, Wait::All).is_some()
                {
                    finish(draft, Required::Nothing);
                }
            }
            Letter::StoreFence => {
                let mut draft = draft;
                if self.empty_queues(&mut draft, actor, edge.source, Wait::All).is_some() {
                    finish(draft, Required::Nothing);
                }
            }
            Letter::Locked { .. } => self.undo_locked(draft, actor, kind, number, &mut finish),
            Letter::Silent => unreachable!("silent edges are not among the incoming ones"),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn undo_read(
        &self,
        draft: Draft,
        actor: usize,
        kind: &ProcessKind,
        edge: &Edge,
        cell: CellId,
        value: ValueId,
        finish: Give<'_>,
    ) {
        let process = &draft.processes[actor];
        if let Some(own) = process.word.iter().find(|symbol| symbol.is_own() && symbol.cell() == cell) {
            if own.value() == value {
                finish(draft, Required::Nothing);
            }
            return;
        }
        // From a store that has not taken effect.
        let empty = process.has_letter(cell) || draft.memory[cell.index()].is_settled();
        let queue = process.queue(cell).cloned();
        let empty = empty || queue.as_ref().is_some_and(Queue::is_empty);
        if !empty && kind.may_be_newest(edge.source, cell, value) {
            let mut queue = queue.clone().unwrap_or(Queue { end: End::Open, ..Queue::empty(cell) });
            let seen = queue.values.last() == Some(&value);
            if seen || queue.end == End::Open {
                if !seen {
                    queue.values.push(value);
                }
                queue.end = End::Closed;
                let mut draft = draft.clone();
                draft.processes[actor].set_queue(queue);
                finish(draft, Required::Nothing);
            }
        }
        if queue.is_some_and(|queue| !queue.values.is_empty()) {
            return;
        }
        self.undo_read_at_pointer(&draft, actor, Symbol::plain(cell, value), finish);
        if kind.may_read_own(edge.source, cell, value) {
            self.undo_read_of_own(&draft, actor, Symbol::own(cell, value), finish);
        }
    }

    /// The process read at its pointer, before all letters it requires.
    fn undo_read_at_pointer(&self, draft: &Draft, actor: usize, letter: Symbol, finish: Give<'_>) {
        if draft.processes[actor].word.first() == Some(&letter) {
            finish(draft.clone(), Required::First);
            return;
        }
        let mut read = draft.clone();
        read.processes[actor].word.insert(0, letter);
        match self.sharing {
            Sharing::PerProcess => finish(read, Required::New(0)),
            Sharing::One => {
                let letters = super::element::letters(&draft.processes, &draft.order, None);
                let limit =
                    letters.iter().position(|&(process, _)| process == actor).unwrap_or(letters.len());
                for place in 0..=limit {
                    // A position immediately before a letter with the same requirement is skipped: the
                    // position after that letter covers it.
                    let same = place < limit && letters[place].1.message() == letter.message();
                    if !same {
                        let mut read = read.clone();
                        read.order.insert(place, actor as u8);
                        finish(read, Required::New(0));
                    }
                }
            }
        }
    }

    /// The process read its own newest store, which had taken effect for the others. That store is not after
    /// a position at which the process reads the cell later.
    fn undo_read_of_own(&self, draft: &Draft, actor: usize, letter: Symbol, finish: Give<'_>) {
        let word = &draft.processes[actor].word;
        let last = word.iter().position(|symbol| symbol.cell() == letter.cell()).unwrap_or(word.len());
        match self.sharing {
            Sharing::PerProcess => {
                for place in 0..=last {
                    let mut read = draft.clone();
                    read.processes[actor].word.insert(place, letter);
                    finish(read, Required::New(place));
                }
            }
            Sharing::One => {
                let mut index = 0;
                for place in 0..=draft.order.len() {
                    let mut read = draft.clone();
                    read.processes[actor].word.insert(index, letter);
                    read.order.insert(place, actor as u8);
                    finish(read, Required::New(index));
                    if place < draft.order.len() && usize::from(draft.order[place]) == actor {
                        index += 1;
                        if index > last {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// The process put a store into its queue (PSO).
    fn undo_store(&self, mut draft: Draft, actor: usize, cell: CellId, value: ValueId, finish: Give<'_>) {
        let process = &mut draft.processes[actor];
        if process.has_letter(cell) || draft.memory[cell.index()].is_settled() {
            return;
        }
        if let Some(mut queue) = process.queue(cell).cloned() {
            match (queue.end, queue.values.last() == Some(&value)) {
                (End::Closed, false) => return,
                (End::Open, false) => {}
                (_, true) => {
                    queue.values.pop();
                    queue.end = End::Open;
                    if queue.values.is_empty() {
                        process.forget_queue(cell);
                    } else {
                        process.set_queue(queue);
                    }
                }
            }
        }
        finish(draft, Required::Nothing);
    }

    /// Requires that nothing the instruction waits for was pending at the state.
    fn empty_queues(&self, draft: &mut Draft, actor: usize, state: StateId, wait: Wait) -> Possible {
        let process = &mut draft.processes[actor];
        if process.queues.iter().any(|queue| wait.is_for(queue.cell) && !queue.values.is_empty()) {
            return None;
        }
        if self.model == Model::Pso {
            let kind = &self.kinds[process.kind as usize];
            for cell in (0..self.cells).map(CellId::from_index) {
                if wait.is_for(cell) && kind.may_have_queue(Some(state), cell) {
                    process.set_queue(Queue::empty(cell));
                }
            }
        }
        Some(())
    }

    fn undo_locked(&self, draft: Draft, actor: usize, kind: &ProcessKind, number: usize, finish: Give<'_>) {
        let edge = &kind.edges[number];
        let Letter::Locked { guard, effect } = &edge.letter else {
            unreachable!("called for locked instructions")
        };
        self.with_effect(draft, effect, Some(Writer::Locked(actor)), &mut |mut draft| {
            for &(cell, _) in effect {
                let content = &mut draft.memory[cell.index()];
                let read = guard.iter().find(|(guarded, _)| *guarded == cell);
                *content = read.map_or(Content::ANY, |&(_, value)| content.with_value(value));
            }
            let mut only_read =
                guard.iter().filter(|(cell, _)| effect.iter().all(|(written, _)| written != cell));
            if only_read.all(|&(cell, value)| self.require_in_front(&mut draft, cell, value).is_some())
                && self.empty_queues(&mut draft, actor, edge.source, kind.waits[number]).is_some()
            {
                finish(draft, Required::Nothing);
            }
        });
    }

    /// The values that the element requires at the end of the buffer at some point.
    fn wanted(&self, element: &Element) -> Vec<(CellId, ValueId)> {
        let known = element.memory.iter().enumerate();
        let known = known.filter_map(|(index, content)| Some((CellId::from_index(index), content.value()?)));
        let mut wanted: Vec<(CellId, ValueId)> = known.collect();
        for process in &element.processes {
            wanted.extend(process.word.iter().map(|symbol| symbol.message()));
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// A required store of some process took effect (PSO).
    fn undo_effects(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        if self.model != Model::Pso {
            return;
        }
        for (cell, value) in self.wanted(element) {
            for (actor, process) in element.processes.iter().enumerate() {
                let kind = &self.kinds[process.kind as usize];
                let may = match process.state {
                    Some(state) => kind.may_be_queued(state, cell, value),
                    None => kind.stores.contains_key(&(cell, value)),
                };
                let same = actor > 0 && element.processes[actor] == element.processes[actor - 1];
                if may && !same {
                    self.undo_effect(element, Draft::of(element), actor, cell, value, give);
                }
            }
            for &kind_number in self.storing.get(&(cell, value)).into_iter().flatten() {
                let mentioned =
                    element.processes.iter().filter(|process| process.kind == kind_number).count();
                if self.kinds[kind_number as usize].allows(mentioned + 1) {
                    let mut draft = Draft::of(element);
                    let actor = draft.add(Process::at(kind_number, None));
                    self.undo_effect(element, draft, actor, cell, value, give);
                }
            }
        }
    }

    fn undo_effect(
        &self,
        element: &Element,
        draft: Draft,
        actor: usize,
        cell: CellId,
        value: ValueId,
        give: &mut dyn FnMut(Element, Step),
    ) {
        let content = element.content(cell);
        let state = draft.processes[actor].state;
        self.with_effect(draft, &[(cell, value)], Some(Writer::Store(actor, cell)), &mut |mut draft| {
            if content == Content::ANY && !draft.any_dropped() {
                return;
            }
            draft.memory[cell.index()] = Content::ANY;
            let end = if content.is_settled() { End::Closed } else { End::Open };
            let nothing = Queue { end, ..Queue::empty(cell) };
            let mut queue = draft.processes[actor].queue(cell).cloned().unwrap_or(nothing);
            queue.values.insert(0, value);
            draft.processes[actor].set_queue(queue);
            self.finish(
                element,
                draft,
                actor,
                Act::Effect(cell, value),
                std::iter::once(state),
                Required::Nothing,
                give,
            );
        });
    }

    /// Processes that the element does not mention, or of which it knows only pending stores, enter by
    /// putting something required at the end of the buffer directly.
    fn undo_locked_of_others(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        let wanted = self.wanted(element);
        let mut entering: Vec<(u32, usize)> =
            wanted.iter().filter_map(|message| self.writers.get(message)).flatten().copied().collect();
        entering.sort_unstable();
        entering.dedup();
        for (kind_number, number) in entering {
            limits::checkpoint();
            let kind = &self.kinds[kind_number as usize];
            let mentioned = element.processes.iter().filter(|process| process.kind == kind_number).count();
            if kind.allows(mentioned + 1) {
                let mut draft = Draft::of(element);
                let actor = draft.add(Process::at(kind_number, None));
                self.enter(element, draft, actor, kind, number, give);
            }
            for (actor, process) in element.processes.iter().enumerate() {
                if process.kind == kind_number && process.state.is_none() {
                    self.enter(element, Draft::of(element), actor, kind, number, give);
                }
            }
        }
    }

    fn enter(
        &self,
        element: &Element,
        draft: Draft,
        actor: usize,
        kind: &ProcessKind,
        number: usize,
        give: &mut dyn FnMut(Element, Step),
    ) {
        let edge = &kind.edges[number];
        let effect = writes(&edge.letter);
        let required = effect.iter().any(|&(cell, _)| element.content(cell) != Content::ANY);
        let act = Act::Edge { kind: draft.processes[actor].kind, edge: number };
        let roots = || kind.roots[edge.source].iter().map(|&state| Some(state));
        match edge.letter {
            Letter::Locked { .. } => {
                self.undo_locked(draft, actor, kind, number, &mut |draft, _| {
                    if required || draft.any_dropped() {
                        self.finish(element, draft, actor, act, roots(), Required::Nothing, give);
                    }
                });
            }
            _ => {
                self.with_effect(draft, &effect, Some(Writer::Store(actor, effect[0].0)), &mut |mut draft| {
                    if required || draft.any_dropped() {
                        draft.memory[effect[0].0.index()] = Content::ANY;
                        self.finish(element, draft, actor, act, roots(), Required::Nothing, give);
                    }
                })
            }
        }
    }

    /// Moves the actor to each of the states, brings the predecessor into normal form, and passes it on.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        &self,
        successor: &Element,
        mut draft: Draft,
        actor: usize,
        act: Act,
        states: impl Iterator<Item = Option<StateId>>,
        required: Required,
        give: &mut dyn FnMut(Element, Step),
    ) {
        let after = draft.dropped[..successor.processes.len()].to_vec();
        draft.dropped.iter_mut().for_each(|dropped| *dropped = 0);
        for state in states {
            let mut draft = draft.clone();
            draft.processes[actor].state = state;
            let words: Vec<Word> = draft.processes.iter().map(|process| process.word.clone()).collect();
            let Some(flushed) = self.normalise(&mut draft) else { continue };
            let (element, places) = self.sorted(&draft);
            let place = |index: usize| places.iter().position(|&old| old == index).expect("it is there");
            let step = Step {
                act,
                actor: place(actor),
                becomes: places
                    .iter()
                    .map(|&index| (index < successor.processes.len()).then_some(index))
                    .collect(),
                flushed: flushed.into_iter().map(|(process, cell)| (place(process), cell)).collect(),
                before: places.iter().map(|&old| last_letters(&words[old], draft.dropped[old])).collect(),
                after: after.clone(),
                required,
            };
            give(element, step);
        }
    }

    /// The elements for a bad combination, with each process moved back to the start of its silent edges.
    /// Each comes with the states that the combination names, in the order of the element's processes.
    pub fn bad_elements(&self, bad: &Bad, give: &mut dyn FnMut(Element, Vec<StateId>)) {
        let mut memory: Memory = std::iter::repeat_n(Content::ANY, self.cells).collect();
        for &(cell, value) in &bad.memory {
            // Properties that read memory are evaluated with nothing pending.
            memory[cell.index()] = match self.model {
                Model::Pso => Content::settled(value),
                Model::Sc | Model::Tso => Content::known(value),
            };
        }
        self.choose_roots(&memory, &mut Vec::new(), &bad.processes, give);
    }

    fn choose_roots(
        &self,
        memory: &Memory,
        chosen: &mut Vec<(Process, StateId)>,
        rest: &[(u32, StateId)],
        give: &mut dyn FnMut(Element, Vec<StateId>),
    ) {
        let Some((&(kind, state), rest)) = rest.split_first() else {
            let mut draft = Draft {
                memory: memory.clone(),
                processes: chosen.iter().map(|(process, _)| process.clone()).collect(),
                order: Default::default(),
                dropped: chosen.iter().map(|_| 0).collect(),
            };
            if self.normalise(&mut draft).is_some() {
                let (element, places) = self.sorted(&draft);
                give(element, places.into_iter().map(|place| chosen[place].1).collect());
            }
            return;
        };
        for &root in &self.kinds[kind as usize].roots[state] {
            chosen.push((Process::at(kind, Some(root)), state));
            self.choose_roots(memory, chosen, rest, give);
            chosen.pop();
        }
    }
}
