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

use super::element::{Element, Word};
use super::predecessors::Step;
use super::setup::Setup;
use crate::chain;
use crate::facts::{concrete, is_silent};
use crate::symbol::Symbol;
use crate::timeline::{Event, Timeline, What};
use palisade_automata::{Automata, Letter, Merged, StateId};
use palisade_memory::Model;
use palisade_program::Value;

type Link<'a> = chain::Link<'a, Element, Step>;

/// The original program, and the program as the search sees it.
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
    /// The messages in its buffer that an element requires, newest first, with the times of their
    /// propagation.
    messages: Vec<(Symbol, u64)>,
    /// The time of the last memory it has seen.
    now: u64,
}

/// The run of the threads in the chain.
pub(crate) struct Unfolded {
    actors: Vec<Actor>,
    events: Vec<Event>,
    memory: Vec<Value>,
}

impl Unfolded {
    /// Unfolds a chain from an initial element to a bad one.
    pub fn new(program: &Program<'_>, first: &Element, chain: &[Link<'_>], bad: &[StateId]) -> Unfolded {
        let initial = program.setup.initial_memory(first).expect("the chain starts with an initial element");
        let memory = concrete(program.automata, &initial);
        let mut unfolded = Unfolded { actors: Vec::new(), events: Vec::new(), memory };
        // The current element's processes, as indices of actors.
        let mut places: Vec<usize> = first
            .processes
            .iter()
            .map(|process| unfolded.start(program, process.kind, process.state, &process.word))
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

    /// Adds a thread at its start. The letters of its word are propagated from initial memory.
    fn start(&mut self, program: &Program<'_>, kind: u32, class: StateId, word: &Word) -> usize {
        let mut starts = program.automata.automata[kind as usize].starts.iter();
        let classes = &program.merged.classes[kind as usize];
        let start = starts.find(|start| classes[start.0] == class);
        let (state, actions, armed) = start.expect("a start state").clone();
        let messages = word.iter().map(|&symbol| (symbol, 0)).collect();
        self.actors.push(Actor { kind, state, messages, now: 0 });
        let actor = self.actors.len() - 1;
        self.events.push(Event { time: 0, actor, what: What::Steps { actions, armed } });
        actor
    }

    fn follow(&mut self, program: &Program<'_>, link: &Link<'_>, places: &mut Vec<usize>, time: u64) {
        let step = &link.step;
        for (&place, letters) in places.iter().zip(&step.before) {
            self.propagate(place, letters, time);
        }
        let place = places[step.actor];
        self.go_silently(program, place, step.from);
        let kind = step.kind as usize;
        let edge = &program.setup.kinds[kind].edges[step.edge];
        let merged = &program.merged.automata.automata[kind].edges[step.edge];
        let taken = program.merged.edge(program.automata, kind, self.actors[place].state, merged);
        let taken = taken.expect("bisimilar states have the same edges");
        // The actor's word immediately after the step, before letters are propagated.
        let word: &[Symbol] = match step.becomes[step.actor] {
            Some(index) => &link.after.processes[index].word[step.after[index]..],
            None => &[],
        };
        let actor = &mut self.actors[place];
        let when = match &edge.letter {
            Letter::Read(cell, value) => {
                let own = actor.messages.iter().any(|(symbol, _)| symbol.is_own() && symbol.cell() == *cell);
                if !own {
                    let oldest = actor.messages.last().expect("the message read is the oldest");
                    debug_assert_eq!(
                        oldest.0,
                        Symbol::plain(*cell, *value),
                        "a read sees the oldest message"
                    );
                    actor.now = actor.now.max(oldest.1);
                }
                actor.now
            }
            Letter::Write(cell, value) => {
                if word.len() > actor.messages.len() {
                    actor.messages.insert(0, (Symbol::own(*cell, *value), time + 1));
                }
                actor.now
            }
            _ => {
                actor.now = time + 1;
                actor.now
            }
        };
        // Messages that are no longer required are forgotten. Their times keep the others in order.
        let mut wanted = word.iter();
        let mut next = wanted.next();
        actor.messages.retain(|(symbol, _)| {
            let keep = next == Some(symbol);
            if keep {
                next = wanted.next();
            }
            keep
        });
        debug_assert!(next.is_none(), "the step leads to the word of the next element");
        actor.state = taken.target;
        self.events.push(Event { time: when, actor: place, what: What::edge(taken) });
        if let Letter::Write(cell, _) = edge.letter
            && program.model != Model::Sc
        {
            self.events.push(Event { time: time + 1, actor: place, what: What::Update(cell) });
        }
        let mut next_places: Vec<Option<usize>> = vec![None; link.after.processes.len()];
        for (index, becomes) in step.becomes.iter().enumerate() {
            if let Some(becomes) = becomes {
                next_places[*becomes] = Some(places[index]);
            }
        }
        *places =
            next_places.into_iter().map(|place| place.expect("processes do not come from nowhere")).collect();
        for ((&place, process), &letters) in places.iter().zip(&link.after.processes).zip(&step.after) {
            self.propagate(place, &process.word[..letters], time + 2);
        }
    }

    fn propagate(&mut self, place: usize, letters: &[Symbol], time: u64) {
        let messages = &mut self.actors[place].messages;
        messages.splice(0..0, letters.iter().map(|&symbol| (symbol, time)));
    }

    /// Takes a thread along silent edges to a state of a class.
    fn go_silently(&mut self, program: &Program<'_>, place: usize, class: StateId) {
        let actor = &mut self.actors[place];
        let silent = |letter: &Letter| is_silent(letter, program.model);
        let path =
            program.merged.silent_path(program.automata, actor.kind as usize, actor.state, class, silent);
        for edge in path.expect("the class is reached silently") {
            self.events.push(Event { time: actor.now, actor: place, what: What::edge(edge) });
            actor.state = edge.target;
        }
    }

    /// The run as timed events.
    pub fn timeline(self, automata: &Automata) -> Timeline {
        let role = |actor: &Actor| automata.automata[actor.kind as usize].role;
        let roles = self.actors.iter().map(role).collect();
        Timeline { roles, events: self.events, memory: self.memory }
    }
}
