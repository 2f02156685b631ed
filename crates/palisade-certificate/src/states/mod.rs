//! Proofs by visiting all states.
//!
//! An engine that searches forward says `safe` after leaving out states that cannot matter. A check must not
//! leave out any. It visits every state that the trusted machine reaches, step by step, with buffers of any
//! length, and none may be bad. Nothing that the engine says is trusted, not even that there are finitely
//! many states. If there are not, the limits are reached.
//!
//! One state represents others in three cases.
//!
//! 1. *Order of threads.* The definition of the machine never uses the index of a thread, only the code it
//!    runs. Properties use the indices of the threads that they name. If threads that no property names are
//!    permuted, and the open section moves with its holder, then steps stay steps and bad states stay bad. So
//!    the other threads are kept [sorted](States::sort).
//! 2. *Local steps.* At some locations ([`local`]) a thread can only compute with its registers, and no
//!    property sees whether it has. There it continues at once. Consider a run from a state with such a
//!    thread to a bad state. If the thread executes something on the way, then its first instruction can be
//!    moved to the front: it commutes with the steps of others and with updates, and the rest of the run is
//!    shorter. If it does not, then a local step can be added at the end, after which the state is still bad,
//!    or a fault. That step can then be moved to the front, too. The number of such steps in a row is
//!    bounded, since no location occurs twice.
//! 3. *Registers that are never read again* count as 0, and so does a caller's register that is waiting for a
//!    result ([`forget`](crate::seen::forget)). No step and no property depends on them.
//!
//! States are stored as [parts]: each memory content and each thread is stored once for all states that have
//! it.

mod local;
mod parts;

use crate::seen::named;
use crate::watch::Watch;
use crate::{Refusal, Summary};
use palisade_base::{Id, IdVec, limits};
use palisade_engine::Task;
use palisade_memory::{Section, State, Thread};
use palisade_program::running::ThreadId;
use parts::{Change, MemoryId, PartId, Parts};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of states between two checks of the limits.
const STATES_BETWEEN_LOOKS: usize = 1024;

/// Visits all states of the task.
pub(crate) fn verify(task: &Task<'_>, watch: &Watch<'_>) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited(
            "with any number of processes there are infinitely many states".into(),
        ));
    }
    let system = task.lower(1);
    let machine = task.machine(&system);
    let mut summary = Summary::default();
    let mut states = States::new(Parts::new(machine, watch)?, named(&system));
    for state in machine.initial_states() {
        let memory = states.parts.memory(state.memory);
        let threads =
            state.threads.into_iter().map(|thread| states.parts.settled(Arc::unwrap_or_clone(thread)));
        let threads: Vec<_> = threads.collect::<Result<_, _>>()?;
        for threads in combinations(&threads) {
            limits::checkpoint();
            states.keep(Packed { memory, section: None, threads: threads.into() });
            // There may be many initial states.
            if states.visited.len().is_multiple_of(STATES_BETWEEN_LOOKS) {
                watch.look(states.bytes())?;
            }
        }
    }
    while let Some(packed) = states.open.pop_front() {
        summary.elements += 1;
        watch.element()?;
        if summary.elements.is_multiple_of(STATES_BETWEEN_LOOKS) {
            watch.look(states.bytes())?;
        }
        if states.is_bad(&packed) {
            return Err(Refusal::BadReached);
        }
        let depth = packed.section.map_or(0, |open| open.depth);
        for place in packed.movers() {
            for change in states.parts.changes(packed.threads[place], packed.memory, depth)?.iter() {
                summary.predecessors += 1;
                states.keep(packed.after(change, place));
            }
        }
    }
    Ok(summary)
}

/// The states that were reached, and those whose steps are still to be taken.
struct States<'m> {
    parts: Parts<'m>,
    /// The indices of threads that are not interchangeable with others.
    named: Vec<usize>,
    visited: FxHashSet<Packed>,
    /// Breadth first: if there are infinitely many states, they grow as slowly as possible.
    open: VecDeque<Packed>,
    /// The state that was evaluated last, and its parts.
    judged: State,
    made_of: Packed,
    bytes: u64,
}

/// A state without faults.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Packed {
    memory: MemoryId,
    section: Option<Open>,
    threads: Box<[PartId]>,
}

/// The open atomic section: the index of its holder, and the nesting depth.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Open {
    holder: u32,
    depth: u32,
}

impl Packed {
    /// The indices of the threads that may take a step.
    fn movers(&self) -> std::ops::Range<usize> {
        match self.section {
            Some(Open { holder, .. }) => holder as usize..holder as usize + 1,
            None => 0..self.threads.len(),
        }
    }

    /// The state after a step of the thread at an index.
    fn after(&self, change: &Change, place: usize) -> Packed {
        let mut threads: Vec<PartId> = Vec::with_capacity(self.threads.len() + change.started.len());
        threads.extend(self.threads.iter().chain(&change.started));
        threads[place] = change.part;
        let section = (change.depth > 0).then_some(Open { holder: place as u32, depth: change.depth });
        Packed { memory: change.memory, section, threads: threads.into() }
    }
}

impl<'m> States<'m> {
    fn new(mut parts: Parts<'m>, named: Vec<usize>) -> States<'m> {
        let made_of = Packed { memory: parts.memory(IdVec::new()), section: None, threads: Box::default() };
        States {
            parts,
            named,
            visited: FxHashSet::default(),
            open: VecDeque::new(),
            judged: State { memory: IdVec::new(), threads: IdVec::new(), section: None, fault: None },
            made_of,
            bytes: 0,
        }
    }

    /// The approximate number of bytes in use.
    fn bytes(&self) -> u64 {
        self.bytes + self.parts.bytes
    }

    /// Stores a state, if it is new.
    fn keep(&mut self, mut packed: Packed) {
        self.sort(&mut packed);
        if !self.visited.contains(&packed) {
            // Once in the set, and once among the open states.
            self.bytes += 2 * (48 + 4 * packed.threads.len() as u64);
            self.visited.insert(packed.clone());
            self.open.push_back(packed);
        }
    }

    /// Sorts the threads that no property names. The section moves with its holder, or to a thread that is
    /// equal to the holder.
    fn sort(&self, packed: &mut Packed) {
        let free = || (0..packed.threads.len()).filter(|place| self.named.binary_search(place).is_err());
        if free().is_sorted_by_key(|place| packed.threads[place]) {
            return;
        }
        let free: Vec<usize> = free().collect();
        let holder = packed.section.map(|open| packed.threads[open.holder as usize]);
        let mut parts: Vec<PartId> = free.iter().map(|&place| packed.threads[place]).collect();
        parts.sort_unstable();
        free.iter().zip(parts).for_each(|(&place, part)| packed.threads[place] = part);
        if let (Some(open), Some(part)) = (&mut packed.section, holder)
            && free.contains(&(open.holder as usize))
        {
            let place = free.iter().find(|&&place| packed.threads[place] == part);
            open.holder = *place.expect("the holder is among those that were sorted") as u32;
        }
    }

    /// Whether a state is bad. Parts that it shares with the last evaluated state are reused.
    fn is_bad(&mut self, packed: &Packed) -> bool {
        if packed.memory != self.made_of.memory {
            self.judged.memory.clone_from(self.parts.memory_of(packed.memory));
        }
        self.judged.section = packed
            .section
            .map(|Open { holder, depth }| Section { holder: ThreadId::from_index(holder as usize), depth });
        let before = &self.made_of.threads;
        if before.len() == packed.threads.len() {
            for (place, &part) in packed.threads.iter().enumerate().filter(|&(at, part)| before[at] != *part)
            {
                let judged = &mut self.judged.threads[ThreadId::from_index(place)];
                Arc::make_mut(judged).clone_from(self.parts.thread(part));
            }
        } else {
            let threads = packed.threads.iter().map(|&part| Thread::clone(self.parts.thread(part)));
            self.judged.threads = threads.map(Arc::new).collect();
        }
        self.made_of.clone_from(packed);
        self.parts.machine.violation(&self.judged).is_some()
    }
}

/// All combinations with one of each.
fn combinations(choices: &[std::rc::Rc<[PartId]>]) -> Vec<Vec<PartId>> {
    choices.iter().fold(vec![Vec::new()], |so_far, choice| {
        let longer = |start: &Vec<PartId>| -> Vec<Vec<PartId>> {
            choice.iter().map(|&part| start.iter().copied().chain([part]).collect()).collect()
        };
        so_far.iter().flat_map(longer).collect()
    })
}
