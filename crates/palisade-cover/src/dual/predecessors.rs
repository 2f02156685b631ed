//! Undoing steps. The rules and the argument for them are in the header of [`super`].

use super::element::{Element, Memory, Processes, View};
use super::process::{Part, Process, Requirement, Word};
use super::setup::{ProcessKind, Setup};
use crate::bad::Bad;
use crate::edges::{Act, SetEdge};
use crate::facts::Held;
use crate::symbol::Symbol;
use crate::values::SetId;
use palisade_automata::{StateId, ValueId};
use palisade_base::{Id, limits};
use palisade_program::running::CellId;
use smallvec::SmallVec;
use std::ops::Deref;

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
    /// The process of the successor that is started.
    pub child: Option<usize>,
}

/// The processes of an element that is being changed.
type Parts = SmallVec<[Part; 6]>;

/// An element that is being changed.
#[derive(Clone)]
struct Draft {
    memory: Memory,
    processes: Parts,
    /// The letters that processes have lost at their new ends, each after the newer ones of its process.
    dropped: SmallVec<[(u32, Symbol); 4]>,
    /// A process that the step starts.
    child: Option<usize>,
}

impl Draft {
    fn of(element: &Element) -> Draft {
        let processes = element.processes.iter().map(|process| Part::Same(process.clone())).collect();
        Draft {
            memory: Memory::from_slice(&element.memory),
            processes,
            dropped: SmallVec::new(),
            child: None,
        }
    }

    /// Adds a process at this state.
    fn mention(&mut self, kind: u32, state: StateId) {
        self.processes.push(Part::Changed(Box::new(Requirement { kind, state, word: Word::new() })));
    }

    /// Removes the newest letter of a process.
    fn drop_letter(&mut self, process: usize) {
        let letter = self.processes[process].change().word.remove(0);
        self.dropped.push((process as u32, letter));
    }
}

/// The letters that a process has lost, newest first.
fn lost_by(process: usize, dropped: &[(u32, Symbol)]) -> impl Iterator<Item = Symbol> {
    let of_process = dropped.iter().filter(move |(place, _)| *place as usize == process);
    of_process.map(|&(_, letter)| letter)
}

/// What predecessors are passed to, each with its step. Only witnesses ask for that.
pub(crate) type Give<'a> = dyn FnMut(Element, &dyn Fn() -> Step) + 'a;

/// `None` as soon as an element turns out to contain no reachable configuration.
type Possible = Option<()>;

impl Setup {
    /// Passes a sufficient set of predecessors of an element to `give`.
    pub fn predecessors(&self, element: &Element, give: &mut Give<'_>) {
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
        self.undo_spawns_of_others(element, give);
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

    fn undo_steps_of(&self, element: &Element, actor: usize, give: &mut Give<'_>) {
        let process = &element.processes[actor];
        let kind = &self.kinds[process.kind as usize];
        for &number in &kind.incoming[process.state] {
            limits::checkpoint();
            let edge = &kind.edges[number];
            let mut finish = |draft: Draft| self.finish(element, draft, actor, number, edge, give);
            match &edge.act {
                Act::Read(cell, set) => self.undo_read(element, actor, kind, *cell, *set, edge, &mut finish),
                Act::Write(cell, value) => {
                    self.with_value(Draft::of(element), *cell, *value, Some(actor), &mut |mut draft| {
                        if self.undo_own_write(&mut draft, actor, *cell, *value).is_some() {
                            finish(draft);
                        }
                    });
                }
                Act::Fence => {
                    let mut draft = Draft::of(element);
                    let all = draft.processes[actor].word.len();
                    if self.drop_letters(&mut draft, actor, all).is_some() {
                        finish(draft);
                    }
                }
                Act::Locked { guard, effect } => {
                    self.with_values(Draft::of(element), effect, Some(actor), &mut |mut draft| {
                        let all = draft.processes[actor].word.len();
                        if self.drop_letters(&mut draft, actor, all).is_some()
                            && self.undo_locked(&mut draft, guard, effect).is_some()
                        {
                            finish(draft);
                        }
                    });
                }
                Act::Spawn(_) => {
                    let mut draft = Draft::of(element);
                    let all = draft.processes[actor].word.len();
                    if self.drop_letters(&mut draft, actor, all).is_some() {
                        self.finish(element, draft.clone(), actor, number, edge, give);
                        self.undo_spawn(element, &draft, actor, number, edge, give);
                    }
                }
                Act::Silent | Act::StoreFence => {
                    unreachable!("silent edges are not among the incoming ones, nor are edges of PSO")
                }
            }
        }
    }

    /// A process of the element is started. Everything that is required of it was propagated since.
    fn undo_spawn(
        &self,
        element: &Element,
        draft: &Draft,
        actor: usize,
        number: usize,
        edge: &SetEdge,
        give: &mut Give<'_>,
    ) {
        let Act::Spawn(kind) = edge.act else { unreachable!("called for starts") };
        for (child, process) in element.processes.iter().enumerate() {
            let same = child > 0 && *process == element.processes[child - 1] && child - 1 != actor;
            let starts = process.kind == kind && self.kinds[kind as usize].is_start[process.state];
            if child == actor || same || !starts {
                continue;
            }
            let mut draft = draft.clone();
            if self.drop_letters(&mut draft, child, process.word.len()).is_some() {
                draft.child = Some(child);
                self.finish(element, draft, actor, number, edge, give);
            }
        }
    }

    /// Processes that the element does not mention enter by starting one that it mentions.
    fn undo_spawns_of_others(&self, element: &Element, give: &mut Give<'_>) {
        for (kind_number, kind) in self.kinds.iter().enumerate() {
            let of_kind = |process: &&Process| process.kind as usize == kind_number;
            if kind.spawns.is_empty() || !kind.allows(element.processes.iter().filter(of_kind).count() + 1) {
                continue;
            }
            for &number in &kind.spawns {
                let edge = &kind.edges[number];
                let mut draft = Draft::of(element);
                draft.mention(kind_number as u32, edge.target);
                self.undo_spawn(element, &draft, element.processes.len(), number, edge, give);
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
        set: SetId,
        edge: &SetEdge,
        finish: &mut dyn FnMut(Draft),
    ) {
        let word = &element.processes[actor].word;
        let with_set = |place: usize, set: SetId| {
            let mut draft = Draft::of(element);
            let letter = &mut draft.processes[actor].change().word[place];
            *letter = letter.with_set(set);
            draft
        };
        if let Some(own) = word.iter().position(|symbol| symbol.is_own() && symbol.cell() == cell) {
            if let Some(narrowed) = self.sets.meet(cell, word[own].set(), set) {
                finish(with_set(own, narrowed));
            }
            return;
        }
        // From the buffer: the message is the oldest one required, or older than that. In the first case the
        // message need not be deleted.
        let oldest = word.last().filter(|symbol| !symbol.is_own() && symbol.cell() == cell);
        let both = oldest.and_then(|symbol| self.sets.meet(cell, symbol.set(), set));
        if let Some(both) = both {
            finish(with_set(word.len() - 1, both));
        }
        // Without one of these conditions, the element above is below the longer one.
        if both.is_none_or(|both| both != set && Some(both) != oldest.map(|symbol| symbol.set())) {
            let mut draft = Draft::of(element);
            draft.processes[actor].change().word.push(Symbol::plain_in(cell, set));
            finish(draft);
        }
        // From an own message, older than all required plain ones of the cell.
        let pending = kind.pending(edge.source, cell).and_then(|pending| self.sets.meet(cell, pending, set));
        if let Some(pending) = pending {
            let first = word.iter().rposition(|symbol| symbol.cell() == cell).map_or(0, |last| last + 1);
            for place in first..=word.len() {
                let mut draft = Draft::of(element);
                draft.processes[actor].change().word.insert(place, Symbol::own_in(cell, pending));
                finish(draft);
            }
        }
    }

    fn undo_own_write(&self, draft: &mut Draft, actor: usize, cell: CellId, value: ValueId) -> Possible {
        let word = &draft.processes[actor].word;
        match word.iter().rposition(|symbol| symbol.cell() == cell) {
            None => {}
            Some(last) if word[last].is_own() => {
                if !self.sets.contains(cell, word[last].set(), value) {
                    return None;
                }
                self.drop_letters(draft, actor, last)?;
                draft.processes[actor].change().word.remove(0);
            }
            Some(last) => self.drop_letters(draft, actor, last + 1)?,
        }
        draft.memory[cell.index()] = SetId::ALL;
        Some(())
    }

    fn undo_locked(
        &self,
        draft: &mut Draft,
        guard: &[(CellId, SetId)],
        effect: &[(CellId, ValueId)],
    ) -> Possible {
        for &(cell, _) in effect {
            draft.memory[cell.index()] = SetId::ALL;
        }
        for &(cell, set) in guard {
            if effect.iter().all(|&(written, _)| written != cell) {
                self.require(draft, cell, set)?;
            }
            // The set may follow from a process's state after the instruction without following from its
            // state before it.
            let content = draft.memory[cell.index()];
            draft.memory[cell.index()] = self.sets.meet(cell, content, set)?;
        }
        Some(())
    }

    /// Processes that the element does not mention enter by writing a value that the element requires.
    fn undo_writes_of_others(&self, element: &Element, give: &mut Give<'_>) {
        let known = element.memory.iter().enumerate().filter(|(_, content)| **content != SetId::ALL);
        let mut wanted: SmallVec<[(CellId, SetId); 16]> =
            known.map(|(index, &content)| (CellId::from_index(index), content)).collect();
        for process in &element.processes {
            let plain = process.word.iter().take_while(|symbol| !symbol.is_own());
            wanted.extend(plain.map(|symbol| (symbol.cell(), symbol.set())));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut entering: SmallVec<[(u32, usize); 16]> = SmallVec::new();
        for (cell, set) in wanted {
            let writers = self.writers[cell].iter();
            let fits = writers.filter(|(value, ..)| self.sets.contains(cell, set, *value));
            entering.extend(fits.map(|&(_, kind, number)| (kind, number)));
        }
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
            let written;
            let (guard, effect): (&[_], &[_]) = match &edge.act {
                Act::Locked { guard, effect } => (guard, effect),
                Act::Write(cell, value) => {
                    written = [(*cell, *value)];
                    (&[], &written)
                }
                _ => unreachable!("writers write"),
            };
            let is_required = effect.iter().any(|&(cell, _)| element.content(cell) != SetId::ALL);
            self.with_values(Draft::of(element), effect, None, &mut |mut draft| {
                if (is_required || !draft.dropped.is_empty())
                    && self.undo_locked(&mut draft, guard, effect).is_some()
                {
                    draft.mention(kind_number, edge.target);
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
            let free = plain.position(|symbol| self.is_free(symbol.cell(), symbol.set()));
            let Some(place) = free else { continue };
            let mut draft = Draft::of(element);
            let dropped = self.drop_letters(&mut draft, index, place);
            if dropped.is_some() && self.memory(&draft, process.word[place].cell()) == Some(SetId::ALL) {
                draft.processes[index].change().word.remove(0);
                if self.normalise(&mut draft).is_some() {
                    give(self.element(draft));
                }
            }
        }
    }

    /// Elements with one requirement less: a process, a letter, or a known cell. Values that follow from the state
    /// of a process are first left out with it, then kept.
    pub fn with_one_less(&self, element: &Element, give: &mut dyn FnMut(Element) -> bool) {
        let mut try_it = |mut draft: Draft| self.normalise(&mut draft).is_some() && give(self.element(draft));
        for index in 0..element.processes.len() {
            let mut draft = Draft::of(element);
            let process = draft.processes.remove(index);
            if try_it(draft.clone()) {
                return;
            }
            let mut follows = false;
            for (cell, held) in self.held.iter_enumerated() {
                if let Held::ByWriter(kind, sets) = held
                    && *kind == process.kind
                    && let Some(possible) = sets[process.state]
                    && let Some(both) = self.sets.meet(cell, draft.memory[cell.index()], possible)
                    && both != draft.memory[cell.index()]
                {
                    draft.memory[cell.index()] = both;
                    follows = true;
                }
            }
            if follows && try_it(draft) {
                return;
            }
        }
        for (index, process) in element.processes.iter().enumerate() {
            for letter in 0..process.word.len() {
                let mut draft = Draft::of(element);
                draft.processes[index].change().word.remove(letter);
                if try_it(draft) {
                    return;
                }
            }
        }
        for cell in 0..element.memory.len() {
            if element.memory[cell] != SetId::ALL {
                let mut draft = Draft::of(element);
                draft.memory[cell] = SetId::ALL;
                if try_it(draft) {
                    return;
                }
            }
        }
    }

    /// The entry for a process.
    fn kept(&self, part: &Part) -> Process {
        match part {
            Part::Same(process) => process.clone(),
            Part::Changed(requirement) => self.processes.keep(requirement, &self.sets),
        }
    }

    /// The element that a draft has become.
    fn element(&self, draft: Draft) -> Element {
        let mut processes: Processes = draft.processes.iter().map(|part| self.kept(part)).collect();
        processes.sort();
        Element::new(draft.memory, processes)
    }

    /// The element in normal form.
    pub fn simplified(&self, element: &Element) -> Element {
        let mut draft = Draft::of(element);
        match self.normalise(&mut draft) {
            Some(()) => self.element(draft),
            None => element.clone(),
        }
    }

    /// Whether a process that is not followed may write the values of a set. In a set of a letter or of a
    /// known cell it can write all of them or none.
    pub fn is_free(&self, cell: CellId, set: SetId) -> bool {
        self.free_sets[cell].is_some_and(|free| self.sets.is_subset(cell, set, free))
    }

    /// The values that a cell in memory can have, as far as they are known or follow from the state of the
    /// cell's only writer. `None` if there are none.
    fn memory(&self, draft: &Draft, cell: CellId) -> Option<SetId> {
        self.sets.meet(cell, draft.memory[cell.index()], self.possible(&draft.processes, cell)?)
    }

    /// The values that memory can hold, by the state of the cell's only writer. `None` if the writer is never
    /// in that state.
    fn possible(&self, processes: &[Part], cell: CellId) -> Option<SetId> {
        let writer = |kind| processes.iter().find(|process| process.kind == kind).map(|writer| writer.state);
        self.held[cell].possible(writer)
    }

    /// The same for the processes of an element.
    pub fn possible_in(&self, element: &impl View, cell: CellId) -> Option<SetId> {
        self.held[cell].possible(|kind| {
            let mut processes = (0..element.count()).map(|place| element.process(place));
            processes.find(|process| process.kind == kind).map(|writer| writer.state)
        })
    }

    /// Whether the processes that are present can give the required values to cells and letters.
    fn is_present(&self, memory: &[SetId], processes: &[impl Deref<Target = Requirement>]) -> bool {
        let Some(present) = &self.present else { return true };
        let meets = |cell: CellId, set| self.sets.meet(cell, set, present[cell]).is_some();
        let mut letters = processes.iter().flat_map(|process| &process.word);
        letters.all(|letter| meets(letter.cell(), letter.set()))
            && memory.iter().enumerate().all(|(index, &set)| meets(CellId::from_index(index), set))
    }

    /// Whether the processes that are present can give the required values to the element's cells and letters.
    pub fn is_possible(&self, element: &Element) -> bool {
        self.is_present(&element.memory, &element.processes)
    }

    /// The set with all values that are not possible added. Where values stay apart, that is done only if it
    /// gives all values.
    fn widen(&self, cell: CellId, set: SetId, possible: SetId) -> SetId {
        match self.apart.contains(&cell) {
            true if self.sets.is_subset(cell, possible, set) => SetId::ALL,
            true => set,
            false => self.sets.widen(cell, set, possible),
        }
    }

    /// Requires that memory holds one of these values.
    fn require(&self, draft: &mut Draft, cell: CellId, set: SetId) -> Possible {
        let held = self.memory(draft, cell)?;
        // A process that is not followed may have written it.
        if held == SetId::ALL && self.is_free(cell, set) {
            return Some(());
        }
        self.sets.meet(cell, held, set)?;
        draft.memory[cell.index()] = self.sets.meet(cell, draft.memory[cell.index()], set)?;
        Some(())
    }

    /// Undoes the propagation of the newest letters of a process. Memory held their values.
    fn drop_letters(&self, draft: &mut Draft, process: usize, letters: usize) -> Possible {
        for _ in 0..letters {
            let symbol = draft.processes[process].word[0];
            // Free letters are dropped by separate steps.
            if symbol.is_own() || self.is_free(symbol.cell(), symbol.set()) {
                return None;
            }
            self.require(draft, symbol.cell(), symbol.set())?;
            draft.drop_letter(process);
        }
        Some(())
    }

    /// Undoes the propagation of newest letters that allow all values that memory can hold, or whose values a
    /// process that is not followed may have written.
    fn drop_exposed(&self, draft: &mut Draft) -> Possible {
        for process in 0..draft.processes.len() {
            while let Some(&symbol) = draft.processes[process].word.first() {
                let (cell, set) = (symbol.cell(), symbol.set());
                let held = self.memory(draft, cell)?;
                let is_held =
                    self.sets.is_subset(cell, held, set) || held == SetId::ALL && self.is_free(cell, set);
                if symbol.is_own() || !is_held {
                    break;
                }
                draft.drop_letter(process);
            }
        }
        Some(())
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
        let single = self.sets.single(cell, value);
        if self.require(&mut draft, cell, single).is_some() && self.drop_exposed(&mut draft).is_some() {
            self.drop_through(draft, (cell, value), 0, writer, give);
        }
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
    /// allows the written value.
    fn drop_through(
        &self,
        draft: Draft,
        (cell, value): (CellId, ValueId),
        first: usize,
        writer: Option<usize>,
        give: &mut dyn FnMut(Draft),
    ) {
        let Some(process) = (first..draft.processes.len()).find(|&process| Some(process) != writer) else {
            give(draft);
            return;
        };
        let plain = draft.processes[process].word.iter().take_while(|symbol| !symbol.is_own());
        let allows = |symbol: &Symbol| symbol.cell() == cell && self.sets.contains(cell, symbol.set(), value);
        let places: SmallVec<[usize; 4]> =
            plain.enumerate().filter(|(_, symbol)| allows(symbol)).map(|(place, _)| place).collect();
        for place in places {
            let mut dropped = draft.clone();
            if self.drop_letters(&mut dropped, process, place + 1).is_none() {
                break;
            }
            if self.drop_exposed(&mut dropped).is_some() {
                self.drop_through(dropped, (cell, value), process + 1, writer, give);
            }
        }
        self.drop_through(draft, (cell, value), process + 1, writer, give);
    }

    /// Moves the actor to the start of the edge, brings the predecessor into normal form, and passes it on.
    fn finish(
        &self,
        successor: &Element,
        mut draft: Draft,
        actor: usize,
        edge_number: usize,
        edge: &SetEdge,
        give: &mut Give<'_>,
    ) {
        let kind_number = draft.processes[actor].kind;
        let (after, child) = (std::mem::take(&mut draft.dropped), draft.child.take());
        // The processes of the draft by their places in the successor.
        let mut places: SmallVec<[usize; 6]> = (0..draft.processes.len()).collect();
        if let Some(child) = child {
            draft.processes.remove(child);
            places.remove(child);
        }
        let actor = places.iter().position(|&place| place == actor).expect("the actor is there");
        let Some((&last, others)) = self.kinds[kind_number as usize].roots[edge.source].split_last() else {
            return;
        };
        let mut finish = |mut draft: Draft, root: StateId| {
            if draft.processes[actor].state != root {
                draft.processes[actor].change().state = root;
            }
            if self.normalise(&mut draft).is_none() {
                return;
            }
            let parts = &draft.processes;
            let mut order: SmallVec<[usize; 8]> = (0..parts.len()).collect();
            order.sort_by(|&a, &b| Requirement::cmp(&parts[a], &parts[b]));
            let step = || Step {
                kind: kind_number,
                edge: edge_number,
                actor: order.iter().position(|&index| index == actor).expect("the actor is there"),
                from: edge.source,
                becomes: order
                    .iter()
                    .map(|&index| Some(places[index]).filter(|&place| place < successor.processes.len()))
                    .collect(),
                before: order.iter().map(|&index| lost_by(index, &draft.dropped).collect()).collect(),
                after: (0..successor.processes.len()).map(|place| lost_by(place, &after).count()).collect(),
                child,
            };
            let processes = order.iter().map(|&index| self.kept(&parts[index])).collect();
            give(Element::new(Memory::from_slice(&draft.memory), processes), &step);
        };
        others.iter().for_each(|&root| finish(draft.clone(), root));
        finish(draft, last);
    }

    /// Brings a draft into normal form:
    /// - exposed letters are dropped;
    /// - known cells and own letters also allow all values that the invariants exclude. So what follows from
    ///   the invariants is not mentioned.
    ///
    /// `None` if no reachable configuration is in the element.
    fn normalise(&self, draft: &mut Draft) -> Possible {
        for index in 0..draft.processes.len() {
            let process = &draft.processes[index];
            let kind = &self.kinds[process.kind as usize];
            let mentioned =
                draft.processes[..=index].iter().filter(|other| other.kind == process.kind).count();
            if !kind.allows(mentioned) || kind.impossible[process.state] {
                return None;
            }
            for place in 0..draft.processes[index].word.len() {
                let Requirement { state, ref word, .. } = *draft.processes[index];
                let symbol = word[place];
                if symbol.is_own() {
                    let cell = symbol.cell();
                    let pending = kind.pending(state, cell)?;
                    self.sets.meet(cell, symbol.set(), pending)?;
                    let widened = symbol.with_set(self.widen(cell, symbol.set(), pending));
                    if widened != symbol {
                        draft.processes[index].change().word[place] = widened;
                    }
                }
            }
        }
        if !self.free.is_empty() {
            for index in 0..draft.memory.len() {
                let content = draft.memory[index];
                if content != SetId::ALL && self.is_free(CellId::from_index(index), content) {
                    draft.memory[index] = SetId::ALL;
                }
            }
        }
        self.drop_exposed(draft)?;
        if !self.is_present(&draft.memory, &draft.processes) {
            return None;
        }
        for index in 0..draft.memory.len() {
            if draft.memory[index] == SetId::ALL {
                continue;
            }
            let cell = CellId::from_index(index);
            let possible = self.possible(&draft.processes, cell)?;
            self.sets.meet(cell, draft.memory[index], possible)?;
            draft.memory[index] = self.widen(cell, draft.memory[index], possible);
        }
        Some(())
    }

    /// The elements for a bad combination, with each process moved back to the start of its silent edges.
    /// Each comes with the states that the combination names, in the order of the element's processes.
    pub fn bad_elements(&self, bad: &Bad, give: &mut dyn FnMut(Element, Vec<StateId>)) {
        let mut memory: Memory = std::iter::repeat_n(SetId::ALL, self.cells).collect();
        for &(cell, value) in &bad.memory {
            memory[cell.index()] = self.sets.single(cell, value);
        }
        self.choose_roots(&memory, &mut Vec::new(), &bad.processes, give);
    }

    fn choose_roots(
        &self,
        memory: &Memory,
        chosen: &mut Vec<((u32, StateId), StateId)>,
        rest: &[(u32, StateId)],
        give: &mut dyn FnMut(Element, Vec<StateId>),
    ) {
        let Some((&(kind, state), rest)) = rest.split_first() else {
            let mut sorted = chosen.clone();
            sorted.sort();
            let mut draft = Draft {
                memory: memory.clone(),
                processes: Parts::new(),
                dropped: SmallVec::new(),
                child: None,
            };
            sorted.iter().for_each(|((kind, root), _)| draft.mention(*kind, *root));
            if self.normalise(&mut draft).is_some() {
                let states = sorted.into_iter().map(|(_, state)| state).collect();
                give(self.element(draft), states);
            }
            return;
        };
        for &root in &self.kinds[kind as usize].roots[state] {
            chosen.push(((kind, root), state));
            self.choose_roots(memory, chosen, rest, give);
            chosen.pop();
        }
    }

    /// The initial memory that is in the element, if there is any: for each cell, the values that it can have.
    /// Known cells hold initial values, all processes are at their start, and all letters can be propagated
    /// from that memory.
    pub fn initial_memory(&self, element: &Element) -> Option<Vec<SetId>> {
        let at_start = |process: &Process| self.kinds[process.kind as usize].is_start[process.state];
        let few = |(number, kind): (usize, &ProcessKind)| {
            let of_kind = element.processes.iter().filter(|process| process.kind as usize == number);
            kind.allows_initially(of_kind.count())
        };
        if !element.processes.iter().all(at_start) || !self.kinds.iter().enumerate().all(few) {
            return None;
        }
        let known = element.memory.iter().enumerate();
        let mut memory: Vec<SetId> = known
            .map(|(index, &content)| {
                let cell = CellId::from_index(index);
                self.sets.meet(cell, content, self.initial[cell])
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
