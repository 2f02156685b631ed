//! From a chain of elements to a run of the store-buffer machine.
//!
//! The chain, read from its initial element, is a run of the load-buffer semantics. Before and after each
//! step, letters that the elements had dropped reach buffers. In that semantics a store reaches memory at
//! once, and a read comes later than the memory it sees. In the store-buffer run (after appendix A.1 of
//! Abdulla, Atig, Bouajjani and Ngo) the same stores reach memory in the same order, and each read happens at
//! the time when its message was propagated:
//! - Time passes along the chain. Each thread has its own time, that of the last memory it has seen. It never
//!   goes back, since buffers are FIFO.
//! - A store enters the store buffer at its thread's time, and reaches memory at the time of its step in the
//!   chain.
//! - A read of a message happens when the message was propagated. A read of an own message happens at the
//!   thread's time, when the store is still pending.
//! - Fences and locked instructions happen at the time of their step.
//!
//! Elements use classes of bisimilar states. The threads of the run go through single states, which
//! bisimulation allows from any state of a class.
//!
//! Elements also use sets of values. The run has one value for each: it starts with some initial memory that
//! the first element allows, and from there on the steps decide what memory and messages hold. They stay within
//! the sets, since every configuration of an element has a successor in the next one.

use super::element::{Element, Processes};
use super::predecessors::Step;
use super::process::{Requirement, Word};
use super::setup::Setup;
use crate::chain;
use crate::edges::{Act, SetEdge};
use crate::facts::{Sole, is_silent};
use crate::symbol::Symbol;
use crate::timeline::{Event, Timeline, What};
use palisade_automata::{Automata, Edge, Letter, Merged, StateId, ValueId};
use palisade_base::{Id, IdVec};
use palisade_memory::Model;
use palisade_program::Value;
use palisade_program::running::CellId;

type Link = chain::Link<Element, Step>;

/// The original program, and the program as the search sees it.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    pub automata: &'a Automata,
    pub merged: &'a Merged,
    pub setup: &'a Setup,
    pub model: Model,
}

/// A thread of the run under construction.
struct Actor {
    kind: u32,
    /// Its actual state, not only the class.
    state: StateId,
    /// The messages in its buffer that an element requires, newest first.
    messages: Vec<Message>,
    /// The time of the last memory it has seen.
    now: u64,
    /// Whether another thread starts it.
    started: bool,
}

/// A message in a buffer, with the time of its propagation.
#[derive(Clone, Copy)]
struct Message {
    own: bool,
    cell: CellId,
    value: ValueId,
    time: u64,
}

/// The run of the threads in the chain.
pub(crate) struct Unfolded {
    actors: Vec<Actor>,
    events: Vec<Event>,
    initial: Vec<Value>,
    /// What memory holds now.
    memory: IdVec<CellId, ValueId>,
}

impl Unfolded {
    /// Unfolds a chain from an initial element to a bad one.
    pub fn new(program: &Program<'_>, first: &Element, chain: &[Link], bad: &[StateId]) -> Unfolded {
        let mut unfolded = Unfolded::at_start(program, first);
        // The current element's processes, as indices of actors.
        let mut places: Vec<usize> = first
            .processes
            .iter()
            .map(|process| unfolded.start(program, process.kind, process.state, &process.word, 0))
            .collect();
        for (index, link) in chain.iter().enumerate() {
            let time = 3 * (index as u64 + 1);
            unfolded.follow(program, link, &mut places, time);
        }
        for (&place, &state) in places.iter().zip(bad) {
            unfolded.go_silently(program, place, state);
        }
        unfolded
    }

    /// The configurations of a chain, as elements, each with one value for each cell and letter. Processes that the
    /// chain does not mention are at a start.
    pub fn snapshots(program: &Program<'_>, first: &Element, chain: &[Link]) -> Vec<Element> {
        let mut snapshots = Vec::new();
        let mut unfolded = Unfolded::at_start(program, first);
        let mut places: Vec<usize> = first
            .processes
            .iter()
            .map(|process| unfolded.start(program, process.kind, process.state, &process.word, 0))
            .collect();
        snapshots.push(unfolded.snapshot(program));
        for (index, link) in chain.iter().enumerate() {
            unfolded.follow(program, link, &mut places, 3 * (index as u64 + 1));
            // Messages of threads that have done their part are not looked at any more.
            for (place, actor) in unfolded.actors.iter_mut().enumerate() {
                if !places.contains(&place) {
                    actor.messages.clear();
                }
            }
            snapshots.push(unfolded.snapshot(program));
        }
        snapshots
    }

    fn snapshot(&self, program: &Program<'_>) -> Element {
        let setup = program.setup;
        let single = |cell, value| setup.sets.single(cell, value);
        let memory = self.memory.iter_enumerated().map(|(cell, &value)| single(cell, value)).collect();
        let letter = |message: &Message| match message.own {
            true => Symbol::own_in(message.cell, single(message.cell, message.value)),
            false => Symbol::plain_in(message.cell, single(message.cell, message.value)),
        };
        let keep = |requirement| setup.processes.keep(&requirement, &setup.sets);
        let mut processes: Processes = self
            .actors
            .iter()
            .map(|actor| {
                keep(Requirement {
                    kind: actor.kind,
                    state: program.merged.classes[actor.kind as usize][actor.state],
                    word: actor.messages.iter().map(letter).collect(),
                })
            })
            .collect();
        for (number, kind) in setup.kinds.iter().enumerate() {
            let present = processes.iter().filter(|process| process.kind as usize == number).count();
            let all = match kind.population {
                palisade_automata::Population::Fixed(all) => all as usize,
                palisade_automata::Population::Any => present,
            };
            let start = kind.is_start.ids().find(|&state| kind.is_start[state]).expect("a start");
            for _ in present..all {
                processes.push(keep(Requirement { kind: number as u32, state: start, word: Word::new() }));
            }
        }
        processes.sort();
        Element::new(memory, processes)
    }

    fn at_start(program: &Program<'_>, first: &Element) -> Unfolded {
        let initial = program.setup.initial_memory(first).expect("the chain starts with an initial element");
        let cells = initial.into_iter().enumerate().map(|(index, set)| (CellId::from_index(index), set));
        let memory: IdVec<CellId, ValueId> =
            cells.map(|(cell, set)| program.setup.sets.values(cell, set)[0]).collect();
        let value = |(cell, value): (CellId, &ValueId)| program.automata.values[cell][*value];
        let initial = memory.iter_enumerated().map(value).collect();
        Unfolded { actors: Vec::new(), events: Vec::new(), initial, memory }
    }

    /// Adds a thread at its start. The letters of its word are propagated from memory, which is the initial one unless
    /// the thread is started later.
    fn start(
        &mut self,
        program: &Program<'_>,
        kind: u32,
        class: StateId,
        word: &[Symbol],
        now: u64,
    ) -> usize {
        let mut starts = program.automata.automata[kind as usize].starts.iter();
        let classes = &program.merged.classes[kind as usize];
        let start = starts.find(|start| classes[start.0] == class);
        let (state, actions, armed) = start.expect("a start state").clone();
        self.actors.push(Actor { kind, state, messages: Vec::new(), now, started: now > 0 });
        let actor = self.actors.len() - 1;
        self.propagate(actor, word, 0);
        self.events.push(Event { time: now, actor, what: What::Steps { actions, armed, starts: None } });
        actor
    }

    fn follow(&mut self, program: &Program<'_>, link: &Link, places: &mut Vec<usize>, time: u64) {
        let step = &link.step;
        for (&place, letters) in places.iter().zip(&step.before) {
            self.propagate(place, letters, time);
        }
        let place = places[step.actor];
        self.go_silently(program, place, step.from);
        let kind = step.kind as usize;
        let edge = &program.setup.kinds[kind].edges[step.edge];
        // The actor's word immediately after the step, before letters are propagated.
        let word: &[Symbol] = match step.becomes[step.actor] {
            Some(index) => &link.after.processes[index].word[step.after[index]..],
            None => &[],
        };
        let taken = self.taken(program, place, edge);
        let actor = &mut self.actors[place];
        let when = match &edge.act {
            Act::Read(cell, _) => {
                let own = actor.messages.iter().any(|message| message.own && message.cell == *cell);
                if !own {
                    let oldest = actor.messages.last().expect("the message read is the oldest");
                    actor.now = actor.now.max(oldest.time);
                }
                actor.now
            }
            Act::Write(cell, value) => {
                if word.first().is_some_and(|symbol| symbol.is_own() && symbol.cell() == *cell) {
                    let own = Message { own: true, cell: *cell, value: *value, time: time + 1 };
                    actor.messages.insert(0, own);
                }
                self.memory[*cell] = *value;
                actor.now
            }
            Act::Locked { effect, .. } => {
                effect.iter().for_each(|&(cell, value)| self.memory[cell] = value);
                actor.now = time + 1;
                actor.now
            }
            Act::Silent | Act::Spawn(_) | Act::Fence | Act::StoreFence => {
                actor.now = time + 1;
                actor.now
            }
        };
        // Messages that are no longer required are forgotten. Their times keep the others in order.
        let mut wanted = word.iter();
        let mut next = wanted.next();
        actor.messages.retain(|message| {
            let keep = next.is_some_and(|symbol| {
                (symbol.is_own(), symbol.cell()) == (message.own, message.cell)
                    && program.setup.sets.contains(message.cell, symbol.set(), message.value)
            });
            if keep {
                next = wanted.next();
            }
            keep
        });
        debug_assert!(next.is_none(), "the step leads to the word of the next element");
        actor.state = taken.target;
        let mut what = What::edge(taken);
        if let (Some(_), What::Steps { starts, .. }) = (step.child, &mut what) {
            *starts = Some(self.actors.len());
        }
        // A delayed store was executed before.
        if !taken.steps.is_empty() {
            self.events.push(Event { time: when, actor: place, what });
        }
        let child = step.child.map(|child| {
            let process = &link.after.processes[child];
            self.start(program, process.kind, process.state, &[], when)
        });
        let written = match &edge.act {
            Act::Write(cell, _) if program.model != Model::Sc => Some(*cell),
            Act::Locked { effect, .. } if edge.fence.is_some() => Some(effect[0].0),
            _ => None,
        };
        if let Some(cell) = written {
            self.events.push(Event { time: time + 1, actor: place, what: What::Update(cell) });
        }
        if let Some(fence) = edge.fence {
            let merged = &program.merged.automata.automata[kind].edges[fence];
            let fence = program.merged.edge(program.automata, kind, self.actors[place].state, merged);
            let fence = fence.expect("bisimilar states have the same edges");
            self.events.push(Event { time: time + 1, actor: place, what: What::edge(fence) });
            self.actors[place].state = fence.target;
        }
        let mut next_places: Vec<Option<usize>> = vec![None; link.after.processes.len()];
        for (index, becomes) in step.becomes.iter().enumerate() {
            if let Some(becomes) = becomes {
                next_places[*becomes] = Some(places[index]);
            }
        }
        if let (Some(index), Some(child)) = (step.child, child) {
            next_places[index] = Some(child);
        }
        *places =
            next_places.into_iter().map(|place| place.expect("processes do not come from nowhere")).collect();
        for ((&place, process), &letters) in places.iter().zip(&link.after.processes).zip(&step.after) {
            self.propagate(place, &process.word[..letters], time + 2);
        }
    }

    /// Memory's values of the letters' cells reach a buffer.
    fn propagate(&mut self, place: usize, letters: &[Symbol], time: u64) {
        let message = |symbol: &Symbol| {
            let cell = symbol.cell();
            Message { own: symbol.is_own(), cell, value: self.memory[cell], time }
        };
        self.actors[place].messages.splice(0..0, letters.iter().map(message));
    }

    /// The edge of the automaton that an actor takes: the one for what it sees, in its buffer for a read and in
    /// memory for a locked instruction.
    fn taken<'a>(&self, program: &Program<'a>, place: usize, edge: &SetEdge) -> &'a Edge {
        let Actor { kind, state, messages, .. } = &self.actors[place];
        let read = match edge.act {
            Act::Read(cell, _) => {
                let own = messages.iter().find(|message| message.own && message.cell == cell);
                let message = own.or(messages.last()).expect("the message read is there");
                debug_assert_eq!(message.cell, cell, "a read sees the oldest message");
                Some(message.value)
            }
            _ => None,
        };
        let sees = |cell: CellId, value: ValueId| read.unwrap_or(self.memory[cell]) == value;
        let fits = |letter: &Letter| match letter {
            Letter::Read(cell, value) => sees(*cell, *value),
            Letter::Locked { guard, .. } => guard.iter().all(|&(cell, value)| sees(cell, value)),
            _ => true,
        };
        let kind = *kind as usize;
        let edges = &program.merged.automata.automata[kind].edges;
        let mut possible = edge.stands_for.iter().map(|&number| &edges[number]);
        let merged = possible.find(|edge| fits(&edge.letter)).expect("the value is in the set");
        let taken = program.merged.edge(program.automata, kind, *state, merged);
        taken.expect("bisimilar states have the same edges")
    }

    /// Takes a thread along silent edges to a state of a class.
    fn go_silently(&mut self, program: &Program<'_>, place: usize, class: StateId) {
        let actor = &self.actors[place];
        // The only writer of a cell reads its last store.
        let reads_own =
            |cell: CellId| matches!(program.setup.sole[cell], Sole::Writer(kind, _) if kind == actor.kind);
        let silent = |letter: &Letter| match letter {
            Letter::Read(cell, value) if program.model != Model::Sc && reads_own(*cell) => {
                self.memory[*cell] == *value
            }
            letter => is_silent(letter, program.model),
        };
        let path =
            program.merged.silent_path(program.automata, actor.kind as usize, actor.state, class, silent);
        let actor = &mut self.actors[place];
        for edge in path.expect("the class is reached silently") {
            self.events.push(Event { time: actor.now, actor: place, what: What::edge(edge) });
            actor.state = edge.target;
        }
    }

    /// The run as timed events.
    pub fn timeline(self, automata: &Automata) -> Timeline {
        let role = |actor: &Actor| (!actor.started).then_some(automata.automata[actor.kind as usize].role);
        let roles = self.actors.iter().map(role).collect();
        Timeline { roles, events: self.events, memory: self.initial }
    }
}
