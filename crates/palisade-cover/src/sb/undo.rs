//! Undoing steps. The rules and the argument for them are in the header of [`super`].

use super::draft::{Draft, Possible, Writer, last_letters};
use super::element::{Content, Element, End, Memory, Process, Queue, Word};
use super::setup::{ProcessKind, Setup, Sharing, Wait};
use crate::bad::Bad;
use crate::edges::{Act, SetEdge};
use crate::symbol::Symbol;
use crate::values::SetId;
use palisade_automata::{StateId, ValueId};
use palisade_base::{Id, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;

/// How a predecessor was derived: what happens between it and its successor.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub what: Move,
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
    /// The process of the successor that is started.
    pub child: Option<usize>,
}

/// The requirement of a read on the actor's word (with the letters of `before`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Required {
    /// Nothing.
    Nothing,
    /// That its pointer is at its first letter, which was already required, maybe with more values.
    First,
    /// A letter that was not yet required.
    New(usize),
}

/// The action of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// It takes an edge. It gets to the edge's source by silent edges.
    Edge { kind: u32, edge: usize },
    /// Its oldest pending store to a cell takes effect, with one of these values (PSO).
    Effect(CellId, SetId),
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
        self.undo_spawns_of_others(element, give);
    }

    /// A process whose last instruction can be moved to the end of the run.
    fn alone(&self, element: &Element) -> Option<usize> {
        element.processes.iter().position(|process| {
            let kind = &self.kinds[process.kind as usize];
            let can_be_last = |&number: &usize| {
                let edge = &kind.edges[number];
                match &edge.act {
                    // A read that may see a store which takes effect later must come before that effect.
                    Act::Read(cell, set) => {
                        let newest = kind.newest(edge.source, *cell);
                        newest.is_none_or(|newest| self.sets.meet(*cell, newest, *set).is_none())
                    }
                    Act::Fence => process.word.is_empty(),
                    Act::StoreFence => true,
                    // The store is still pending.
                    Act::Write(cell, _) => process.queue(*cell).is_some_and(|q| !q.values.is_empty()),
                    Act::Silent | Act::Spawn(_) | Act::Locked { .. } => false,
                }
            };
            let state = process.state.filter(|&state| !kind.is_start[state]);
            state.is_some_and(|state| kind.arriving[state].iter().all(can_be_last))
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
                    let Some(&last) = queue.values.last() else { continue };
                    for &(value, number) in &kind.stores[queue.cell] {
                        if self.sets.contains(queue.cell, last, value) {
                            self.undo_edge(element, actor, number, give);
                        }
                    }
                }
            }
        }
    }

    fn undo_edge(&self, element: &Element, actor: usize, number: usize, give: &mut dyn FnMut(Element, Step)) {
        let kind_number = element.processes[actor].kind;
        let kind = &self.kinds[kind_number as usize];
        let edge = &kind.edges[number];
        let what = Move::Edge { kind: kind_number, edge: number };
        let draft = Draft::of(element);
        let mut finish = |draft: Draft, required| {
            self.finish(
                element,
                draft,
                actor,
                what,
                kind.roots[edge.source].iter().map(|&s| Some(s)),
                required,
                give,
            );
        };
        match &edge.act {
            Act::Read(cell, set) => self.undo_read(draft, actor, kind, edge, *cell, *set, &mut finish),
            Act::Write(cell, value) if self.model == Model::Pso => {
                self.undo_store(draft, actor, *cell, *value, &mut finish);
            }
            Act::Write(cell, value) => {
                let effect = [(*cell, self.sets.single(*cell, *value))];
                self.with_effect(draft, &effect, Some(Writer::Store(actor, *cell)), &mut |mut draft| {
                    draft.memory[cell.index()] = Content::ANY;
                    finish(draft, Required::Nothing);
                });
            }
            Act::Fence => {
                let mut draft = draft;
                if self.drop_all(&mut draft, actor).is_some()
                    && self.empty_queues(&mut draft, actor, edge.source, Wait::All).is_some()
                {
                    finish(draft, Required::Nothing);
                }
            }
            Act::StoreFence => {
                let mut draft = draft;
                if self.empty_queues(&mut draft, actor, edge.source, Wait::All).is_some() {
                    finish(draft, Required::Nothing);
                }
            }
            Act::Locked { .. } => self.undo_locked(draft, actor, kind, number, &mut finish),
            Act::Spawn(child) => {
                let mut draft = draft;
                if self.drop_all(&mut draft, actor).is_some()
                    && self.empty_queues(&mut draft, actor, edge.source, Wait::All).is_some()
                {
                    finish(draft.clone(), Required::Nothing);
                    self.undo_spawn(element, &draft, actor, *child, &mut finish);
                }
            }
            Act::Silent => unreachable!("silent edges are not among the incoming ones"),
        }
    }

    /// A process of the element is started. Everything that is required of it is at the end of the buffer.
    fn undo_spawn(&self, element: &Element, draft: &Draft, actor: usize, kind: u32, finish: Give<'_>) {
        for (child, process) in element.processes.iter().enumerate() {
            let same = child > 0 && *process == element.processes[child - 1] && child - 1 != actor;
            let is_start = &self.kinds[kind as usize].is_start;
            let starts = process.kind == kind && process.state.is_some_and(|state| is_start[state]);
            let pending = process.queues.iter().any(|queue| !queue.values.is_empty());
            if child == actor || same && self.sharing == Sharing::PerProcess || !starts || pending {
                continue;
            }
            let mut draft = draft.clone();
            if self.drop_all(&mut draft, child).is_some() {
                draft.child = Some(child);
                finish(draft, Required::Nothing);
            }
        }
    }

    /// Processes that the element does not mention enter by starting one that it mentions.
    fn undo_spawns_of_others(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        for (kind_number, kind) in self.kinds.iter().enumerate() {
            let of_kind = |process: &&Process| process.kind as usize == kind_number;
            if kind.spawns.is_empty() || !kind.allows(element.processes.iter().filter(of_kind).count() + 1) {
                continue;
            }
            for &number in &kind.spawns {
                let edge = &kind.edges[number];
                let Act::Spawn(child) = edge.act else { unreachable!("it starts a process") };
                let mut draft = Draft::of(element);
                let actor = draft.add(Process::at(kind_number as u32, None));
                if self.empty_queues(&mut draft, actor, edge.source, Wait::All).is_none() {
                    continue;
                }
                let what = Move::Edge { kind: kind_number as u32, edge: number };
                let roots = || kind.roots[edge.source].iter().map(|&state| Some(state));
                self.undo_spawn(element, &draft, actor, child, &mut |draft, required| {
                    self.finish(element, draft, actor, what, roots(), required, give);
                });
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn undo_read(
        &self,
        draft: Draft,
        actor: usize,
        kind: &ProcessKind,
        edge: &SetEdge,
        cell: CellId,
        set: SetId,
        finish: Give<'_>,
    ) {
        let process = &draft.processes[actor];
        let own = process.word.iter().position(|symbol| symbol.is_own() && symbol.cell() == cell);
        if let Some(own) = own {
            if let Some(both) = self.sets.meet(cell, process.word[own].set(), set) {
                finish(with_letter_in(&draft, actor, own, both), Required::Nothing);
            }
            return;
        }
        // From a store that has not taken effect.
        let empty = process.has_letter(cell) || draft.memory[cell.index()].is_settled();
        let queue = process.queue(cell).cloned();
        let empty = empty || queue.as_ref().is_some_and(Queue::is_empty);
        let newest = kind.newest(edge.source, cell).and_then(|newest| self.sets.meet(cell, newest, set));
        if let Some(newest) = newest.filter(|_| !empty) {
            let queue = queue.clone().unwrap_or(Queue { end: End::Open, ..Queue::empty(cell) });
            let mut close = |values: &[SetId]| {
                let mut draft = draft.clone();
                draft.processes[actor].set_queue(Queue { cell, end: End::Closed, values: values.into() });
                finish(draft, Required::Nothing);
            };
            // It is the last required entry, or a newer one. The second is above the first if every value of the
            // newer one is allowed for the last.
            let both = queue.values.last().and_then(|&last| self.sets.meet(cell, last, newest));
            if let Some(both) = both {
                let mut values = queue.values.clone();
                values.pop();
                values.push(both);
                close(&values);
            }
            if queue.end == End::Open && both != Some(newest) {
                let mut values = queue.values.clone();
                values.push(newest);
                close(&values);
            }
        }
        if queue.is_some_and(|queue| !queue.values.is_empty()) {
            return;
        }
        self.undo_read_at_pointer(&draft, actor, Symbol::plain_in(cell, set), finish);
        let readable = kind.readable(edge.source, cell);
        if let Some(own) = readable.and_then(|readable| self.sets.meet(cell, readable, set)) {
            self.undo_read_of_own(&draft, actor, Symbol::own_in(cell, own), finish);
        }
    }

    /// The process read at its pointer: at its first letter or before it.
    fn undo_read_at_pointer(&self, draft: &Draft, actor: usize, letter: Symbol, finish: Give<'_>) {
        let cell = letter.cell();
        let first = draft.processes[actor].word.first();
        let first = first.filter(|symbol| !symbol.is_own() && symbol.cell() == cell).map(|s| s.set());
        let both = first.and_then(|first| self.sets.meet(cell, first, letter.set()));
        if let Some(both) = both {
            finish(with_letter_in(draft, actor, 0, both), Required::First);
            // With one of these, the element with another letter is above that one.
            if both == letter.set() || Some(both) == first {
                return;
            }
        }
        let mut read = draft.clone();
        read.processes[actor].word.insert(0, letter);
        match self.sharing {
            Sharing::PerProcess => finish(read, Required::New(0)),
            Sharing::One => {
                let letters = super::element::letters(&draft.processes, &draft.order, None);
                let limit =
                    letters.iter().position(|&(process, _)| process == actor).unwrap_or(letters.len());
                for place in self.oldest(draft, &letters[..limit], letter)..=limit {
                    let mut read = read.clone();
                    read.order.insert(place, actor as u8);
                    finish(read, Required::New(0));
                }
            }
        }
    }

    /// The oldest position that matters for a new plain letter. The given letters, of other processes, are the oldest
    /// ones in the buffer.
    /// - If one of them allows no more values, the position after it covers all older ones.
    /// - If these are all letters, and the end of the buffer holds one of the new letter's values anyway, the end
    ///   covers all positions.
    fn oldest(&self, draft: &Draft, letters: &[(usize, Symbol)], letter: Symbol) -> usize {
        let cell = letter.cell();
        let is_enough = |held: SetId| self.sets.is_subset(cell, held, letter.set());
        let held = self.values(&draft.memory, &draft.processes, cell);
        if letters.len() == draft.order.len() && held.is_some_and(is_enough) {
            return letters.len();
        }
        let requires_it = |&(process, other): &(usize, Symbol)| {
            other.cell() == cell && is_enough(self.effective(&draft.processes[process], other))
        };
        letters.iter().rposition(requires_it).map_or(0, |place| place + 1)
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
            let last = queue.values.last();
            match (queue.end, last.is_some_and(|&last| self.sets.contains(cell, last, value))) {
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
        let Act::Locked { guard, effect } = &edge.act else { unreachable!("called for locked instructions") };
        self.with_effect(draft, &self.written(effect), Some(Writer::Locked(actor)), &mut |mut draft| {
            for &(cell, _) in effect {
                let content = &mut draft.memory[cell.index()];
                *content = content.with_set(SetId::ALL);
            }
            let mut guard = guard.iter();
            if guard.all(|&(cell, set)| self.require_before(&mut draft, effect, cell, set).is_some())
                && self.empty_queues(&mut draft, actor, edge.source, kind.waits[number]).is_some()
            {
                finish(draft, Required::Nothing);
            }
        });
    }

    /// Requires that the end of the buffer held one of these values when a locked instruction looked at it. What
    /// is known about cells that it wrote is not about that moment.
    fn require_before(
        &self,
        draft: &mut Draft,
        effect: &[(CellId, ValueId)],
        cell: CellId,
        set: SetId,
    ) -> Possible {
        if effect.iter().all(|&(written, _)| written != cell) {
            return self.require(draft, cell, set);
        }
        let content = &mut draft.memory[cell.index()];
        *content = content.with_set(set);
        Some(())
    }

    /// What is written, with sets of one value.
    fn written(&self, effect: &[(CellId, ValueId)]) -> Vec<(CellId, SetId)> {
        effect.iter().map(|&(cell, value)| (cell, self.sets.single(cell, value))).collect()
    }

    /// What the element requires at the end of the buffer at some point.
    fn wanted(&self, element: &Element) -> Vec<(CellId, SetId)> {
        let known = element.memory.iter().enumerate().filter(|(_, content)| **content != Content::ANY);
        let mut wanted: Vec<(CellId, SetId)> =
            known.map(|(index, content)| (CellId::from_index(index), content.set())).collect();
        for process in &element.processes {
            wanted.extend(process.word.iter().map(|symbol| (symbol.cell(), symbol.set())));
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
        let mut cells: Vec<CellId> = self.wanted(element).into_iter().map(|(cell, _)| cell).collect();
        cells.dedup();
        for cell in cells {
            for (actor, process) in element.processes.iter().enumerate() {
                let kind = &self.kinds[process.kind as usize];
                let same = actor > 0 && element.processes[actor] == element.processes[actor - 1];
                if let Some(queued) = kind.queued(process.state, cell).filter(|_| !same) {
                    self.undo_effect(element, Draft::of(element), actor, cell, queued, give);
                }
            }
            for (kind_number, kind) in self.kinds.iter().enumerate() {
                let of_kind = |process: &&Process| process.kind as usize == kind_number;
                let mentioned = element.processes.iter().filter(of_kind).count();
                let Some(stored) = kind.stored[cell].filter(|_| kind.allows(mentioned + 1)) else {
                    continue;
                };
                let mut draft = Draft::of(element);
                let actor = draft.add(Process::at(kind_number as u32, None));
                self.undo_effect(element, draft, actor, cell, stored, give);
            }
        }
    }

    /// A store of one of these values took effect.
    fn undo_effect(
        &self,
        element: &Element,
        draft: Draft,
        actor: usize,
        cell: CellId,
        stored: SetId,
        give: &mut dyn FnMut(Element, Step),
    ) {
        let content = element.content(cell);
        let state = draft.processes[actor].state;
        self.with_effect(draft, &[(cell, stored)], Some(Writer::Store(actor, cell)), &mut |mut draft| {
            if content == Content::ANY && !draft.any_dropped() {
                return;
            }
            let taken = draft.memory[cell.index()].set();
            draft.memory[cell.index()] = Content::ANY;
            let end = if content.is_settled() { End::Closed } else { End::Open };
            let nothing = Queue { end, ..Queue::empty(cell) };
            let mut queue = draft.processes[actor].queue(cell).cloned().unwrap_or(nothing);
            queue.values.insert(0, taken);
            draft.processes[actor].set_queue(queue);
            let what = Move::Effect(cell, taken);
            self.finish(element, draft, actor, what, std::iter::once(state), Required::Nothing, give);
        });
    }

    /// Processes that the element does not mention, or of which it knows only pending stores, enter by
    /// putting something required at the end of the buffer directly.
    fn undo_locked_of_others(&self, element: &Element, give: &mut dyn FnMut(Element, Step)) {
        let mut entering: Vec<(u32, usize)> = Vec::new();
        for (cell, set) in self.wanted(element) {
            let fits = self.writers[cell].iter().filter(|(value, ..)| self.sets.contains(cell, set, *value));
            entering.extend(fits.map(|&(_, kind, number)| (kind, number)));
        }
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
        let what = Move::Edge { kind: draft.processes[actor].kind, edge: number };
        let roots = || kind.roots[edge.source].iter().map(|&state| Some(state));
        let is_required = |cell: CellId| element.content(cell) != Content::ANY;
        match &edge.act {
            Act::Locked { effect, .. } => {
                self.undo_locked(draft, actor, kind, number, &mut |draft, _| {
                    // Without a change, the predecessor is above the element.
                    let changes = effect.iter().any(|&(cell, _)| {
                        let (before, after) = (draft.memory[cell.index()].set(), element.content(cell).set());
                        !self.sets.is_subset(cell, before, after)
                    });
                    if changes || draft.any_dropped() {
                        self.finish(element, draft, actor, what, roots(), Required::Nothing, give);
                    }
                });
            }
            Act::Write(cell, value) => {
                let effect = [(*cell, self.sets.single(*cell, *value))];
                self.with_effect(draft, &effect, Some(Writer::Store(actor, *cell)), &mut |mut draft| {
                    if is_required(*cell) || draft.any_dropped() {
                        draft.memory[cell.index()] = Content::ANY;
                        self.finish(element, draft, actor, what, roots(), Required::Nothing, give);
                    }
                })
            }
            _ => unreachable!("writers write"),
        }
    }

    /// Moves the actor to each of the states, brings the predecessor into normal form, and passes it on.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        &self,
        successor: &Element,
        mut draft: Draft,
        actor: usize,
        what: Move,
        states: impl Iterator<Item = Option<StateId>>,
        required: Required,
        give: &mut dyn FnMut(Element, Step),
    ) {
        let after = draft.dropped[..successor.processes.len()].to_vec();
        draft.dropped.iter_mut().for_each(|dropped| *dropped = 0);
        // The processes of the draft by their places in the successor.
        let mut of_successor: Vec<usize> = (0..draft.processes.len()).collect();
        let child = draft.child;
        if let Some(child) = child {
            draft.processes.remove(child);
            draft.dropped.remove(child);
            of_successor.remove(child);
            // It has no letters left.
            draft.order.iter_mut().filter(|process| usize::from(**process) > child).for_each(|p| *p -= 1);
        }
        let actor = of_successor.iter().position(|&place| place == actor).expect("the actor is there");
        for state in states {
            let mut draft = draft.clone();
            draft.processes[actor].state = state;
            let words: Vec<Word> = draft.processes.iter().map(|process| process.word.clone()).collect();
            let Some(flushed) = self.normalise(&mut draft) else { continue };
            let (element, places) = self.sorted(&draft);
            let place = |index: usize| places.iter().position(|&old| old == index).expect("it is there");
            let step = Step {
                what,
                actor: place(actor),
                becomes: places
                    .iter()
                    .map(|&index| Some(of_successor[index]).filter(|&old| old < successor.processes.len()))
                    .collect(),
                flushed: flushed.into_iter().map(|(process, cell)| (place(process), cell)).collect(),
                before: places.iter().map(|&old| last_letters(&words[old], draft.dropped[old])).collect(),
                after: after.clone(),
                required,
                child,
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
                Model::Pso => Content::settled(self.sets.single(cell, value)),
                Model::Sc | Model::Tso => Content::known(self.sets.single(cell, value)),
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
                child: None,
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

/// The draft with other values for a letter of a process.
fn with_letter_in(draft: &Draft, process: usize, place: usize, set: SetId) -> Draft {
    let mut draft = draft.clone();
    let letter = &mut draft.processes[process].word[place];
    *letter = letter.with_set(set);
    draft
}
