//! From a chain of elements to a run of the store-buffer machine.
//!
//! The chain, read from its initial element, is a run of the load-buffer semantics: before and after each step, letters that the elements had dropped reach
//! buffers. In that semantics a store reaches memory at once, and reads come later than the memory they see. The store-buffer run (after appendix A.1 of
//! Abdulla, Atig, Bouajjani and Ngo) has the same stores reach memory in the same order, and puts each read at the time when its message was propagated:
//! - time passes along the chain; a thread has a time of its own, that of the last memory it has seen, which never goes back since buffers are FIFO;
//! - a store enters the store buffer at its thread's time, and reaches memory at the time of its step in the chain;
//! - a read of a message happens when the message was propagated; a read of an own message happens at the thread's time, when the store is still pending;
//! - fences and locked instructions happen at the time of their step.

use super::element::{Element, Symbol, Word};
use super::predecessors::Step;
use super::setup::Setup;
use crate::timeline::{Event, Timeline, What, silent_path};
use palisade_automata::{Automata, Letter, StateId};
use palisade_base::Id;
use palisade_memory::Model;
use palisade_program::Value;
use palisade_program::running::CellId;

/// One step of the chain: how it goes on from an element, and the element after.
pub(crate) struct Link<'a> {
    pub step: Step,
    pub after: &'a Element,
}

/// A thread of the run to be.
struct Actor {
    kind: u32,
    state: StateId,
    /// The messages in its buffer that somebody asks for, newest first, with the times of their propagation.
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
    pub fn new(
        automata: &Automata,
        setup: &Setup,
        model: Model,
        first: &Element,
        chain: &[Link<'_>],
        bad: &[StateId],
    ) -> Unfolded {
        let initial = setup.initial_memory(first).expect("the chain starts with an initial element");
        let memory = initial
            .iter()
            .enumerate()
            .map(|(index, content)| {
                let values = automata.values[CellId::from_index(index)].as_slice();
                content.value().map_or(values[0], |value| values[value.index()])
            })
            .collect();
        let mut unfolded = Unfolded { actors: Vec::new(), events: Vec::new(), memory };
        // Places of the current element's processes among the actors.
        let mut places: Vec<usize> = first
            .processes
            .iter()
            .map(|process| unfolded.start(automata, process.kind, process.state, &process.word))
            .collect();
        for (index, link) in chain.iter().enumerate() {
            let time = 3 * (index as u64 + 1);
            unfolded.follow(automata, setup, model, link, &mut places, time);
        }
        for (&place, &state) in places.iter().zip(bad) {
            unfolded.go_silently(automata, setup, place, state);
        }
        unfolded
    }

    /// A thread that starts; letters of its word are propagated from initial memory.
    fn start(&mut self, automata: &Automata, kind: u32, state: StateId, word: &Word) -> usize {
        let starts = &automata.automata[kind as usize].starts;
        let (_, actions, armed) =
            starts.iter().find(|start| start.0 == state).expect("a start state").clone();
        let messages = word.iter().map(|&symbol| (symbol, 0)).collect();
        self.actors.push(Actor { kind, state, messages, now: 0 });
        let actor = self.actors.len() - 1;
        self.events.push(Event { time: 0, actor, what: What::Steps { actions, armed } });
        actor
    }

    fn follow(
        &mut self,
        automata: &Automata,
        setup: &Setup,
        model: Model,
        link: &Link<'_>,
        places: &mut Vec<usize>,
        time: u64,
    ) {
        let step = &link.step;
        for (&place, letters) in places.iter().zip(&step.before) {
            self.propagate(place, letters, time);
        }
        let place = places[step.actor];
        self.go_silently(automata, setup, place, step.from);
        let edge = &setup.kinds[step.kind as usize].edges[step.edge];
        // What the actor's word is right after the step, before letters are propagated.
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
        // Messages that nobody asks for any more are forgotten; their times keep the others in order.
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
        actor.state = edge.target;
        self.events.push(Event { time: when, actor: place, what: What::edge(edge) });
        if let Letter::Write(cell, _) = edge.letter
            && model != Model::Sc
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

    /// Takes a thread along silent edges to a state.
    fn go_silently(&mut self, automata: &Automata, setup: &Setup, place: usize, to: StateId) {
        let actor = &mut self.actors[place];
        let edges = &setup.kinds[actor.kind as usize].edges;
        let states = automata.automata[actor.kind as usize].states.len();
        for number in silent_path(edges, states, actor.state, to) {
            self.events.push(Event { time: actor.now, actor: place, what: What::edge(&edges[number]) });
        }
        actor.state = to;
    }

    /// The run as timed events.
    pub fn timeline(self, automata: &Automata) -> Timeline {
        let role = |actor: &Actor| automata.automata[actor.kind as usize].role;
        let roles = self.actors.iter().map(role).collect();
        Timeline { roles, events: self.events, memory: self.memory }
    }
}
