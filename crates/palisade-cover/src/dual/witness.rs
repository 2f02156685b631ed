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
use palisade_automata::{Automata, Letter, Schedule, StateId};
use palisade_base::Id;
use palisade_memory::{Action, Machine, Model};
use palisade_program::Value;
use palisade_program::running::{CellId, RoleId, ThreadId};
use palisade_trace::{Run, replay, until_bad};

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

/// What happens in the store-buffer run: who, what, and when. Updates have no actions.
struct Event {
    time: u64,
    actor: usize,
    what: What,
}

enum What {
    Steps { actions: Vec<Action>, armed: usize },
    Update,
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
        let what = What::Steps { actions: edge.steps.clone(), armed: edge.armed };
        self.events.push(Event { time: when, actor: place, what });
        if matches!(edge.letter, Letter::Write(..)) && model != Model::Sc {
            self.events.push(Event { time: time + 1, actor: place, what: What::Update });
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
        let mut by: Vec<Option<usize>> = vec![None; states];
        let mut work = std::collections::VecDeque::from([actor.state]);
        while let Some(state) = work.pop_front() {
            if state == to {
                break;
            }
            for (number, edge) in edges.iter().enumerate() {
                let new = edge.source == state && edge.letter == Letter::Silent && edge.target != actor.state;
                if new && by[edge.target.index()].is_none() {
                    by[edge.target.index()] = Some(number);
                    work.push_back(edge.target);
                }
            }
        }
        let mut path = Vec::new();
        let mut state = to;
        while state != actor.state {
            let number = by[state.index()].expect("the state is reached silently");
            path.push(number);
            state = edges[number].source;
        }
        actor.state = to;
        let time = actor.now;
        for number in path.into_iter().rev() {
            let edge = &edges[number];
            let what = What::Steps { actions: edge.steps.clone(), armed: edge.armed };
            self.events.push(Event { time, actor: place, what });
        }
    }

    /// How many threads of each role the run needs.
    pub fn threads_of(&self, automata: &Automata, role: RoleId) -> usize {
        self.actors.iter().filter(|actor| automata.automata[actor.kind as usize].role == role).count()
    }

    /// The run on a machine, with threads chosen such that it ends badly; `None` if there is no such choice (which would be a bug).
    pub fn run(&self, automata: &Automata, machine: Machine<'_>) -> Option<Run> {
        let roles: Vec<RoleId> =
            self.actors.iter().map(|actor| automata.automata[actor.kind as usize].role).collect();
        let mut chosen = Vec::new();
        let mut tries = 0;
        self.choose_threads(machine, &roles, &mut chosen, &mut tries)
    }

    /// Tries threads for the actors: any of the right role will do, except where a property names them.
    fn choose_threads(
        &self,
        machine: Machine<'_>,
        roles: &[RoleId],
        chosen: &mut Vec<ThreadId>,
        tries: &mut usize,
    ) -> Option<Run> {
        const MOST_TRIES: usize = 10_000;
        let Some(&role) = roles.get(chosen.len()) else {
            *tries += 1;
            let run = until_bad(machine, self.with_threads(chosen));
            return replay(machine, &run).is_ok().then_some(run);
        };
        let instances = machine.system.instances.iter_enumerated();
        for thread in instances.filter(|(_, instance)| instance.role == role).map(|(thread, _)| thread) {
            if !chosen.contains(&thread) && *tries < MOST_TRIES {
                chosen.push(thread);
                if let Some(run) = self.choose_threads(machine, roles, chosen, tries) {
                    return Some(run);
                }
                chosen.pop();
            }
        }
        None
    }

    fn with_threads(&self, threads: &[ThreadId]) -> Run {
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        // Stable: at the same time, in the order of the chain, which is program order for each thread.
        order.sort_by_key(|&event| self.events[event].time);
        let mut schedules = vec![Schedule::default(); self.actors.len()];
        let mut steps = Vec::new();
        for event in order {
            let event = &self.events[event];
            let actions = match &event.what {
                What::Update => vec![Action::Update { position: 0 }],
                What::Steps { actions, armed } => schedules[event.actor].take(actions.clone(), *armed),
            };
            let thread = threads[event.actor];
            steps.extend(actions.into_iter().map(|action| palisade_memory::Step { thread, action }));
        }
        Run { memory: self.memory.clone(), steps }
    }
}
