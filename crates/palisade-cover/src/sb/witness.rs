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

use super::element::Element;
use super::setup::Setup;
use super::undo::{Act, Required, Step};
use crate::chain;
use crate::facts::concrete;
use crate::symbol::Symbol;
use crate::timeline::{Event, Timeline, What, silent_path};
use palisade_automata::{Automata, Letter, StateId, ValueId};
use palisade_base::Id;
use palisade_memory::Model;
use palisade_program::running::CellId;

type Link = chain::Link<Element, Step>;

/// A thread of the run under construction.
struct Actor {
    kind: u32,
    state: StateId,
    /// Its word, with the times of the letters' positions.
    word: Vec<(Symbol, u64)>,
    /// The time of its pointer.
    now: u64,
    /// Its stores that have not taken effect, in program order.
    pending: Vec<(CellId, ValueId)>,
}

struct Unfolding<'a> {
    automata: &'a Automata,
    setup: &'a Setup,
    actors: Vec<Actor>,
    events: Vec<Event>,
}

/// Unfolds a chain from an initial element to a bad one, whose states are given.
pub(crate) fn unfold(
    automata: &Automata,
    setup: &Setup,
    first: &Element,
    chain: &[Link],
    bad: &[StateId],
) -> Timeline {
    let initial = setup.initial_memory(first).expect("the chain starts with an initial element");
    let memory = concrete(automata, &initial);
    let mut unfolding = Unfolding { automata, setup, actors: Vec::new(), events: Vec::new() };
    // The current element's processes, as indices of actors.
    let mut places: Vec<usize> = first
        .processes
        .iter()
        .map(|process| {
            let word = process.word.iter().map(|&symbol| (symbol, 0)).collect();
            unfolding.start(process.kind, process.state.expect("at its start"), word)
        })
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
    let role = |actor: &Actor| automata.automata[actor.kind as usize].role;
    Timeline { roles: unfolding.actors.iter().map(role).collect(), events: unfolding.events, memory }
}

impl Unfolding<'_> {
    fn start(&mut self, kind: u32, state: StateId, word: Vec<(Symbol, u64)>) -> usize {
        let starts = &self.automata.automata[kind as usize].starts;
        let (_, actions, armed) =
            starts.iter().find(|start| start.0 == state).expect("a start state").clone();
        self.actors.push(Actor { kind, state, word, now: 0, pending: Vec::new() });
        let actor = self.actors.len() - 1;
        self.events.push(Event { time: 0, actor, what: What::Steps { actions, armed } });
        actor
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
            self.actors[place].word.extend(letters.iter().map(|&symbol| (symbol, time)));
        }
        self.act(link, places[step.actor], time);
        let mut next: Vec<Option<usize>> = vec![None; link.after.processes.len()];
        for (index, becomes) in step.becomes.iter().enumerate() {
            if let Some(becomes) = becomes {
                next[*becomes] = Some(places[index]);
            }
        }
        *places = next.into_iter().map(|place| place.expect("processes do not come from nowhere")).collect();
        for ((&place, process), &letters) in places.iter().zip(&link.after.processes).zip(&step.after) {
            let added = process.word[process.word.len() - letters..].iter();
            let actor = &mut self.actors[place];
            actor.word.extend(added.map(|&symbol| (symbol, time + 2)));
            let word = actor.word.iter().map(|letter| &letter.0);
            debug_assert!(word.eq(&process.word), "the step leads to the word of the next element");
        }
    }

    fn act(&mut self, link: &Link, place: usize, time: u64) {
        let step = &link.step;
        let (kind, number) = match step.act {
            Act::Effect(cell, value) => {
                let process = step.becomes[step.actor].map(|index| &link.after.processes[index]);
                let settled = link.after.content(cell).is_settled();
                let all = settled || process.is_some_and(|p| self.setup.is_empty(&link.after, p, cell));
                self.take_effect_through(place, cell, (!all).then_some(value), time + 1);
                return;
            }
            Act::Edge { kind, edge } => (kind, edge),
        };
        let edge = &self.setup.kinds[kind as usize].edges[number];
        self.go_silently(place, edge.source);
        let actor = &mut self.actors[place];
        match (step.required, actor.word.first()) {
            (Required::First, Some(&(_, at))) => actor.now = actor.now.max(at),
            (Required::New(index), _) => {
                let (symbol, at) = actor.word.remove(index);
                if !symbol.is_own() {
                    actor.now = actor.now.max(at);
                }
            }
            _ => {}
        }
        if matches!(edge.letter, Letter::Fence | Letter::Locked { .. }) {
            actor.now = time + 1;
        }
        actor.state = edge.target;
        self.events.push(Event { time: actor.now, actor: place, what: What::edge(edge) });
        if let Letter::Write(cell, value) = edge.letter {
            actor.pending.push((cell, value));
            if self.setup.model == Model::Tso {
                self.take_effect(place, cell, time + 1);
            }
        }
    }

    /// The actor's oldest pending store to a cell takes effect.
    fn take_effect(&mut self, actor: usize, cell: CellId, time: u64) -> ValueId {
        let pending = &mut self.actors[actor].pending;
        let oldest = pending.iter().position(|store| store.0 == cell).expect("a store is pending");
        let (_, value) = pending.remove(oldest);
        self.events.push(Event { time, actor, what: What::Update(cell) });
        value
    }

    /// Pending stores to a cell take effect, up to one with the given value, or all of them.
    fn take_effect_through(&mut self, actor: usize, cell: CellId, last: Option<ValueId>, time: u64) {
        while self.actors[actor].pending.iter().any(|store| store.0 == cell) {
            if Some(self.take_effect(actor, cell, time)) == last {
                break;
            }
        }
    }

    fn flush(&mut self, actor: usize, cell: CellId, time: u64) {
        self.take_effect_through(actor, cell, None, time);
    }

    /// Takes an actor along silent edges to a state.
    fn go_silently(&mut self, place: usize, to: StateId) {
        let actor = &mut self.actors[place];
        let edges = &self.setup.kinds[actor.kind as usize].edges;
        let states = self.automata.automata[actor.kind as usize].states.len();
        for number in silent_path(edges, states, actor.state, to) {
            self.events.push(Event { time: actor.now, actor: place, what: What::edge(&edges[number]) });
        }
        actor.state = to;
    }
}
