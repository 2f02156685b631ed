//! From a chain of elements to a run of the store-buffer machine.
//!
//! The chain, read from its initial element, is a run of the single-buffer semantics. Before and after each
//! step, letters that the elements had dropped get their positions. A thread's time is the position of its
//! pointer. In the store-buffer run (after appendix C of Abdulla, Atig, Chen, Leonardsson and Rezine) the
//! same stores reach memory in the same order, and each thread's instructions happen at its own time:
//! - A read at the pointer happens when the letter's position was the end of the buffer. A read of an own
//!   store happens at the thread's time, when that store is pending.
//! - A store enters the store buffer at its thread's time. It reaches memory at the time of its step (TSO) or
//!   of its effect (PSO). Pending stores that no element requires take effect immediately before the next
//!   required one to their cell, when a queue takes effect as a whole, or at the end.
//! - Fences and locked instructions happen at the time of their step, store-store fences at the thread's
//!   time.
//!
//! Elements use classes of bisimilar states and sets of values. The threads of the run go through single states,
//! which bisimulation allows from any state of a class. The run has one value for each set: it starts with some
//! initial memory that the first element allows, and from there on the steps decide what the end of the buffer
//! holds. They stay within the sets, since every configuration of an element has a successor in the next one.

use super::element::Element;
use super::setup::Setup;
use super::undo::{Move, Required, Step};
use crate::chain;
use crate::edges::{Act, SetEdge};
use crate::facts::{Sole, is_silent};
use crate::symbol::Symbol;
use crate::timeline::{Event, Timeline, What};
use crate::values::SetId;
use palisade_automata::{Automata, Edge, Letter, Merged, StateId, ValueId};
use palisade_base::{Id, IdVec};
use palisade_memory::Model;
use palisade_program::running::CellId;

type Link = chain::Link<Element, Step>;

/// The original program, and the program as the search sees it.
pub(crate) struct Program<'a> {
    pub automata: &'a Automata,
    pub merged: &'a Merged,
    pub setup: &'a Setup,
}

/// A thread of the run under construction.
struct Actor {
    kind: u32,
    /// Its actual state, not only the class.
    state: StateId,
    /// The positions that it requires, oldest first.
    word: Vec<Position>,
    /// The time of its pointer.
    now: u64,
    /// Its stores that have not taken effect, in program order.
    pending: Vec<(CellId, ValueId)>,
    /// Whether another thread starts it.
    started: bool,
}

/// A position of the buffer, with its time and what it holds in a cell.
#[derive(Clone, Copy)]
struct Position {
    own: bool,
    cell: CellId,
    value: ValueId,
    time: u64,
}

struct Unfolding<'a> {
    program: &'a Program<'a>,
    actors: Vec<Actor>,
    events: Vec<Event>,
    /// What the end of the buffer holds now.
    memory: IdVec<CellId, ValueId>,
}

/// Unfolds a chain from an initial element to a bad one, whose states are given.
pub(crate) fn unfold(program: &Program<'_>, first: &Element, chain: &[Link], bad: &[StateId]) -> Timeline {
    let Program { automata, setup, .. } = program;
    let initial = setup.initial_memory(first).expect("the chain starts with an initial element");
    let cells = initial.into_iter().enumerate().map(|(index, set)| (CellId::from_index(index), set));
    let memory: IdVec<CellId, ValueId> = cells.map(|(cell, set)| setup.sets.values(cell, set)[0]).collect();
    let initial = memory.iter_enumerated().map(|(cell, value)| automata.values[cell][*value]).collect();
    let mut unfolding = Unfolding { program, actors: Vec::new(), events: Vec::new(), memory };
    // The current element's processes, as indices of actors.
    let mut places: Vec<usize> = first
        .processes
        .iter()
        .map(|process| unfolding.start(process.kind, process.state.expect("at its start"), &process.word, 0))
        .collect();
    for (index, link) in chain.iter().enumerate() {
        unfolding.follow(link, &mut places, 3 * (index as u64 + 1));
    }
    for (&place, &state) in places.iter().zip(bad) {
        unfolding.go_silently(place, state);
    }
    let end = 3 * (chain.len() as u64 + 1);
    for actor in 0..unfolding.actors.len() {
        while let Some(&(cell, _)) = unfolding.actors[actor].pending.first() {
            unfolding.take_effect(actor, cell, end);
        }
    }
    let role = |actor: &Actor| (!actor.started).then_some(automata.automata[actor.kind as usize].role);
    Timeline { roles: unfolding.actors.iter().map(role).collect(), events: unfolding.events, memory: initial }
}

impl<'a> Unfolding<'a> {
    /// Adds a thread at its start. The letters of its word are at the end of the buffer, which is the first position
    /// unless the thread is started later.
    fn start(&mut self, kind: u32, class: StateId, word: &[Symbol], now: u64) -> usize {
        let mut starts = self.program.automata.automata[kind as usize].starts.iter();
        let classes = &self.program.merged.classes[kind as usize];
        let (state, actions, armed) =
            starts.find(|start| classes[start.0] == class).expect("a start state").clone();
        let started = now > 0;
        self.actors.push(Actor { kind, state, word: Vec::new(), now, pending: Vec::new(), started });
        let actor = self.actors.len() - 1;
        self.place(actor, word, 0);
        self.events.push(Event { time: now, actor, what: What::Steps { actions, armed, starts: None } });
        actor
    }

    /// Letters of a process are at the end of the buffer.
    fn place(&mut self, actor: usize, letters: &[Symbol], time: u64) {
        let position = |symbol: &Symbol| {
            let cell = symbol.cell();
            Position { own: symbol.is_own(), cell, value: self.memory[cell], time }
        };
        self.actors[actor].word.extend(letters.iter().map(position));
    }

    fn follow(&mut self, link: &Link, places: &mut Vec<usize>, time: u64) {
        let step = &link.step;
        for &(process, cell) in &step.flushed {
            self.flush(places[process], cell, time);
        }
        for (index, (before, after)) in link.before.memory.iter().zip(&link.after.memory).enumerate() {
            let actor = places[step.actor];
            if after.is_settled() && !before.is_settled() {
                // From now on nothing may be pending for this cell.
                for other in (0..self.actors.len()).filter(|&other| other != actor) {
                    self.flush(other, CellId::from_index(index), time);
                }
            }
        }
        for (&place, letters) in places.iter().zip(&step.before) {
            self.place(place, letters, time);
        }
        let child = self.act(link, places[step.actor], time);
        let mut next: Vec<Option<usize>> = vec![None; link.after.processes.len()];
        if let (Some(index), Some(child)) = (step.child, child) {
            next[index] = Some(child);
        }
        for (index, becomes) in step.becomes.iter().enumerate() {
            if let Some(becomes) = becomes {
                next[*becomes] = Some(places[index]);
            }
        }
        *places = next.into_iter().map(|place| place.expect("processes do not come from nowhere")).collect();
        for ((&place, process), &letters) in places.iter().zip(&link.after.processes).zip(&step.after) {
            self.place(place, &process.word[process.word.len() - letters..], time + 2);
            let word = &self.actors[place].word;
            let allows = |(position, symbol): (&Position, &Symbol)| {
                (position.own, position.cell) == (symbol.is_own(), symbol.cell())
                    && self.program.setup.sets.contains(position.cell, symbol.set(), position.value)
            };
            debug_assert!(
                word.len() == process.word.len() && word.iter().zip(&process.word).all(allows),
                "the step leads to the word of the next element"
            );
        }
    }

    /// The step of a link. Returns the actor that it starts.
    fn act(&mut self, link: &Link, place: usize, time: u64) -> Option<usize> {
        let program = self.program;
        let setup = program.setup;
        let step = &link.step;
        let (kind, number) = match step.what {
            Move::Effect(cell, set) => {
                let process = step.becomes[step.actor].map(|index| &link.after.processes[index]);
                let settled = link.after.content(cell).is_settled();
                let all = settled || process.is_some_and(|p| setup.is_empty(&link.after, p, cell));
                self.take_effect_through(place, cell, (!all).then_some(set), time + 1);
                return None;
            }
            Move::Edge { kind, edge } => (kind, edge),
        };
        let edge = &setup.kinds[kind as usize].edges[number];
        self.go_silently(place, edge.source);
        let seen = self.seen(place, edge, step.required);
        let taken = self.taken(place, edge, seen);
        let actor = &mut self.actors[place];
        match (step.required, actor.word.first()) {
            (Required::First, Some(first)) => actor.now = actor.now.max(first.time),
            (Required::New(index), _) => {
                let position = actor.word.remove(index);
                if !position.own {
                    actor.now = actor.now.max(position.time);
                }
            }
            _ => {}
        }
        if matches!(edge.act, Act::Fence | Act::Spawn(_) | Act::Locked { .. }) {
            actor.now = time + 1;
        }
        actor.state = taken.target;
        let now = actor.now;
        let mut what = What::edge(taken);
        if let (Some(_), What::Steps { starts, .. }) = (step.child, &mut what) {
            *starts = Some(self.actors.len());
        }
        // A delayed store was executed before.
        if !taken.steps.is_empty() {
            self.events.push(Event { time: now, actor: place, what });
        }
        match &edge.act {
            Act::Write(cell, value) => {
                self.actors[place].pending.push((*cell, *value));
                if setup.model == Model::Tso {
                    self.take_effect(place, *cell, time + 1);
                }
            }
            Act::Locked { effect, .. } => {
                effect.iter().for_each(|&(cell, value)| self.memory[cell] = value);
                if let Some(fence) = edge.fence {
                    self.events.push(Event { time: time + 1, actor: place, what: What::Update(effect[0].0) });
                    let kind = kind as usize;
                    let merged = &program.merged.automata.automata[kind].edges[fence];
                    let fence = program.merged.edge(program.automata, kind, self.actors[place].state, merged);
                    let fence = fence.expect("bisimilar states have the same edges");
                    self.events.push(Event { time: time + 1, actor: place, what: What::edge(fence) });
                    self.actors[place].state = fence.target;
                }
            }
            Act::Silent | Act::Spawn(_) | Act::Read(..) | Act::Fence | Act::StoreFence => {}
        }
        step.child.map(|child| {
            let process = &link.after.processes[child];
            self.start(process.kind, process.state.expect("at its start"), &[], now)
        })
    }

    /// What a read sees.
    fn seen(&self, place: usize, edge: &SetEdge, required: Required) -> Option<ValueId> {
        let Act::Read(cell, _) = edge.act else { return None };
        let actor = &self.actors[place];
        let own = || actor.word.iter().find(|position| position.own && position.cell == cell);
        match required {
            Required::First => Some(actor.word[0].value),
            Required::New(index) => Some(actor.word[index].value),
            Required::Nothing => own().map(|own| own.value).or_else(|| self.newest_pending(place, cell)),
        }
    }

    fn newest_pending(&self, place: usize, cell: CellId) -> Option<ValueId> {
        let mut pending = self.actors[place].pending.iter().rev();
        pending.find(|store| store.0 == cell).map(|store| store.1)
    }

    /// The edge of the automaton that an actor takes: the one for what it sees.
    fn taken(&self, place: usize, edge: &SetEdge, seen: Option<ValueId>) -> &'a Edge {
        let program = self.program;
        let Actor { kind, state, .. } = self.actors[place];
        let sees = |cell: CellId, value: ValueId| seen.unwrap_or(self.memory[cell]) == value;
        let fits = |letter: &Letter| match letter {
            Letter::Read(cell, value) => sees(*cell, *value),
            Letter::Locked { guard, .. } => guard.iter().all(|&(cell, value)| sees(cell, value)),
            _ => true,
        };
        let edges = &program.merged.automata.automata[kind as usize].edges;
        let mut possible = edge.stands_for.iter().map(|&number| &edges[number]);
        let merged = possible.find(|edge| fits(&edge.letter)).expect("the value is in the set");
        let taken = program.merged.edge(program.automata, kind as usize, state, merged);
        taken.expect("bisimilar states have the same edges")
    }

    /// The actor's oldest pending store to a cell takes effect.
    fn take_effect(&mut self, actor: usize, cell: CellId, time: u64) -> ValueId {
        let pending = &mut self.actors[actor].pending;
        let oldest = pending.iter().position(|store| store.0 == cell).expect("a store is pending");
        let (_, value) = pending.remove(oldest);
        self.memory[cell] = value;
        self.events.push(Event { time, actor, what: What::Update(cell) });
        value
    }

    /// Pending stores to a cell take effect, up to one with a value of the set, or all of them.
    fn take_effect_through(&mut self, actor: usize, cell: CellId, last: Option<SetId>, time: u64) {
        while self.actors[actor].pending.iter().any(|store| store.0 == cell) {
            let value = self.take_effect(actor, cell, time);
            if last.is_some_and(|last| self.program.setup.sets.contains(cell, last, value)) {
                break;
            }
        }
    }

    fn flush(&mut self, actor: usize, cell: CellId, time: u64) {
        self.take_effect_through(actor, cell, None, time);
    }

    /// Takes an actor along silent edges to a state of a class.
    fn go_silently(&mut self, place: usize, class: StateId) {
        let program = self.program;
        let (actor, model) = (&self.actors[place], program.setup.model);
        // The only writer of a cell reads its last store.
        let reads_own =
            |cell: CellId| matches!(program.setup.sole[cell], Sole::Writer(kind, _) if kind == actor.kind);
        let silent = |letter: &Letter| match letter {
            Letter::Read(cell, value) if model != Model::Sc && reads_own(*cell) => {
                self.newest_pending(place, *cell).unwrap_or(self.memory[*cell]) == *value
            }
            letter => is_silent(letter, model),
        };
        let path =
            program.merged.silent_path(program.automata, actor.kind as usize, actor.state, class, silent);
        let actor = &mut self.actors[place];
        for edge in path.expect("the class is reached silently") {
            self.events.push(Event { time: actor.now, actor: place, what: What::edge(edge) });
            actor.state = edge.target;
        }
    }
}
