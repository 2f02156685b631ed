//! Proofs for PSO, by a single buffer with queues.
//!
//! # The semantics
//! After Abdulla, Atig, Chen, Leonardsson and Rezine, "Counter-example guided fence insertion under weak
//! memory models" (TACAS 2012):
//! - One buffer holds all stores that have taken effect, in the order in which they reach memory.
//! - Each process has a pointer to the position whose memory it sees. The pointer may advance at any time.
//! - A store goes to a queue of its process and cell. The oldest entry of a queue may take effect at any
//!   time: it goes to the end of the buffer.
//! - A read sees the newest entry of its process's queue for the cell, else the process's newest store to the
//!   cell in the buffer after its pointer, else memory at the pointer.
//! - Store-store fences wait until the queues are empty. Fences and locked instructions also wait until the
//!   pointer is at the end.
//!
//! The same states are reachable as under PSO. It is enough to look at runs in which a read sees an own store
//! in the buffer only with a store-store fence between the two. (The header of the engine, `palisade-cover`'s
//! `sb`, has the argument.)
//!
//! # Elements
//! An element requires
//! - values at the end of the buffer. A *settled* cell has the additional requirement that no queue of that
//!   cell has an entry;
//! - processes at states or anywhere;
//! - positions of the buffer at which cells hold values, in order for each process. The process's pointer is
//!   at the first of them or before it;
//! - entries of queues.
//!
//! Values are sets: a cell at the end of the buffer, a letter or an entry of a queue has one of the values of its
//! set. So an element is the union of the elements with one value in place of each set.
//!
//! A *plain* letter on x has no store of its process to x after it. An *own* letter is the newest such store.
//! With a letter on x the queue for x is empty. In a closed queue the last value is the newest entry; a
//! closed queue without values is empty.
//!
//! # What is checked
//! 1. Every bad state is in some element ([`crate::bad`]). The cells that the property reads are settled,
//!    since nothing is pending when it is evaluated.
//! 2. No element contains an initial configuration.
//! 3. For every element, each predecessor is impossible by the forward analysis of [`flow`], or is contained
//!    as a whole in one element. The predecessors by one process suffice if the last instruction of that
//!    process can be moved to the end of every run: a read that cannot have seen the queue, a store-store
//!    fence, a fence if nothing is required of the process's word, or a store if something is required of its
//!    queue.
//!
//! Advancing a pointer never needs to be undone, since the configuration before that is in the element
//! already. The same holds if an entry of a queue takes effect that the element does not require, unless that
//! queue must be empty. In that case the element with that queue open is a predecessor.
//!
//! Edges from a class to itself that leave memory as it is are not undone: a run stays a run without them.
//!
//! # Rewritten automata and merged states
//! As for load buffers ([`crate`]), the proof may say that the automata are [rewritten](rewrite) first, and may put
//! several states into one class, which only adds runs.
//!
//! # Why this is a proof
//! By induction on the length of runs, no run from an initial configuration gets into an element. If it did,
//! it would also be in an element with its last step undone (or with the last instruction of one process,
//! moved to the end, undone).

mod element;
mod flow;
mod rewrite;
mod undo;

use crate::bad::{self, At, Bad};
use crate::element::read_sets;
use crate::flow::Limit;
use crate::values::Values;
use crate::watch::Watch;
use crate::{Missing, Refusal, Summary};
use element::{Config, Viewer};
use flow::Flow;
use palisade_automata::{Automata, Starts};
use palisade_engine::proof::SingleBuffer;
use palisade_memory::Interlocked;
use palisade_program::running::System;
use rustc_hash::FxHashMap;
use undo::Undo;

/// Checks that a proof shows a program to be safe under PSO.
pub(crate) fn verify(
    system: &System,
    automata: &Automata,
    machine: (Interlocked, Starts),
    proof: &SingleBuffer,
    watch: &Watch<'_>,
) -> Result<Summary, Refusal> {
    let flow = Flow::new(system, automata, machine, &proof.classes, proof.rewritten)?;
    let sets = read_sets(&proof.sets, &flow.values)?;
    let elements: Result<Vec<Config>, Refusal> =
        proof.elements.iter().map(|element| Config::read(&flow, &sets, element)).collect();
    let set = Set::new(&flow, elements?);
    bad::check(system, automata, &set, watch)?;
    let mut summary = Summary::default();
    for place in 0..set.elements.len() {
        if place % 64 == 0 {
            watch.look(0)?;
        }
        watch.element()?;
        set.check_element(place, &mut summary)?;
    }
    Ok(summary)
}

/// Gives predecessors one by one.
type Predecessors<'p> = dyn Fn(&mut dyn FnMut(Config)) + 'p;

/// The elements, by the states of their processes.
struct Set<'a> {
    flow: &'a Flow,
    /// The elements, with their indices in the proof. Exactly these are checked, and only these count as
    /// covering anything. Elements that the forward analysis rules out are left out of both.
    elements: Vec<(usize, Config)>,
    index: FxHashMap<Vec<At>, Vec<usize>>,
}

impl<'a> Set<'a> {
    fn new(flow: &'a Flow, elements: Vec<Config>) -> Set<'a> {
        let elements: Vec<(usize, Config)> = elements
            .into_iter()
            .enumerate()
            .filter(|(_, element)| element.narrowed(flow).is_some())
            .collect();
        let mut index: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (place, (_, element)) in elements.iter().enumerate() {
            index.entry(places(element)).or_default().push(place);
        }
        Set { flow, elements, index }
    }

    /// Whether some element contains all of a configuration. The processes of such an element are at some of
    /// the configuration's places.
    fn covers(&self, config: &Config) -> bool {
        let places = places(config);
        let below = |place: &usize| self.elements[*place].1.holds(self.flow, config);
        if places.len() > 10 {
            return (0..self.elements.len()).any(|place| below(&place));
        }
        (0..1u32 << places.len()).any(|mask| {
            let chosen: Vec<At> =
                (0..places.len()).filter(|place| mask >> place & 1 == 1).map(|place| places[place]).collect();
            self.index.get(&chosen).is_some_and(|numbers| numbers.iter().any(below))
        })
    }

    fn check_element(&self, place: usize, summary: &mut Summary) -> Result<(), Refusal> {
        let (number, ref element) = self.elements[place];
        summary.elements += 1;
        let undo = Undo { flow: self.flow };
        if undo.is_initial(element) {
            return Err(Refusal::Initial(number));
        }
        let mut missing = None;
        let mut closed = |all: &Predecessors<'_>| {
            let mut first = None;
            all(&mut |config| {
                summary.predecessors += 1;
                if first.is_none() && !self.covers(&config) {
                    first = Some(config);
                }
            });
            missing = first;
            missing.is_none()
        };
        let by_one =
            undo.postponable(element).into_iter().any(|actor| closed(&|give| undo.by(element, actor, give)));
        if !by_one {
            closed(&|give| {
                (0..element.processes.len()).for_each(|actor| undo.by(element, actor, give));
                undo.by_effects(element, give);
                undo.by_idle_effects(element, give);
                undo.by_others(element, give);
                undo.by_parents(element, give);
            });
        }
        match missing {
            None => Ok(()),
            Some(predecessor) => {
                let (predecessor, sets) = predecessor.written();
                let predecessor = Missing::SingleBuffer(predecessor, sets);
                Err(Refusal::NotClosed { element: number, predecessor })
            }
        }
    }
}

/// The automata and states of the processes whose state is known, sorted.
fn places(config: &Config) -> Vec<At> {
    let mut places: Vec<At> = config.processes.iter().filter_map(|p| Some((p.kind, p.state?))).collect();
    places.sort_unstable();
    places
}

impl bad::Sets for Set<'_> {
    fn populations(&self) -> Vec<Limit> {
        self.flow.kinds.iter().map(|kind| kind.population).collect()
    }

    fn values(&self) -> &[u32] {
        &self.flow.values
    }

    fn class(&self, kind: usize, state: usize) -> u32 {
        self.flow.kinds[kind].class_of[state]
    }

    fn before(&self, at: At) -> &[u32] {
        self.flow.before(at)
    }

    fn cover(&self, bad: &Bad) -> Result<(), Missing> {
        let process = |&(kind, state): &At| Viewer { state: Some(state), ..Viewer::anywhere(kind) };
        let config = Config {
            memory: bad.memory.iter().map(|value| Some((Values::one((*value)?), true))).collect(),
            processes: bad.processes.iter().map(process).collect(),
        };
        // `None` if it is impossible.
        let Some(config) = config.narrowed(self.flow) else { return Ok(()) };
        match self.covers(&config) {
            true => Ok(()),
            false => {
                let (config, sets) = config.written();
                Err(Missing::SingleBuffer(config, sets))
            }
        }
    }
}
