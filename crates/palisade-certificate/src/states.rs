//! Proofs by visiting all states.
//!
//! An engine that searches forward says `safe` after leaving out states that cannot matter. What convinces is to leave out none: every state that the trusted machine
//! reaches, step by step, with buffers of any length, is visited here and none is bad. Nothing of the engine is believed, not even that the states are finitely many: if they are not,
//! the budget runs out.
//!
//! States are kept in parts: what memory holds, and each thread, once for all states that have it.

use crate::watch::Watch;
use crate::{Refusal, Summary};
use palisade_base::{IdVec, Interner, define_id};
use palisade_engine::Task;
use palisade_memory::{Section, State, Thread};
use palisade_program::Value;
use palisade_program::running::{CellId, ThreadId};
use rustc_hash::FxHashSet;

/// How often the budget is asked.
const STATES_BETWEEN_LOOKS: usize = 1024;

/// Visits all states of the task.
pub(crate) fn verify(task: &Task<'_>, watch: &Watch<'_>) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited("any number of processes has no end of states".into()));
    }
    let system = task.system(1);
    let machine = task.machine(&system);
    let mut summary = Summary::default();
    let mut states = States::default();
    for state in machine.initial_states() {
        states.visit(state)?;
        // Initial states alone may be many.
        if states.visited.len().is_multiple_of(STATES_BETWEEN_LOOKS) {
            watch.look(states.bytes)?;
        }
    }
    while let Some(state) = states.next() {
        summary.elements += 1;
        watch.element()?;
        if summary.elements.is_multiple_of(STATES_BETWEEN_LOOKS) {
            watch.look(states.bytes)?;
        }
        if machine.violation(&state).is_some() {
            return Err(Refusal::BadReached);
        }
        for successor in machine.successors(&state) {
            summary.predecessors += 1;
            states.visit(successor.state)?;
        }
    }
    Ok(summary)
}

define_id!(
    /// What memory holds.
    MemoryId
);
define_id!(
    /// A thread with all that belongs to it.
    PartId
);

/// The states that were reached, and those whose steps are still to be taken.
#[derive(Default)]
struct States {
    memories: Interner<MemoryId, IdVec<CellId, Value>>,
    threads: Interner<PartId, Thread>,
    visited: FxHashSet<Packed>,
    open: Vec<Packed>,
    bytes: u64,
}

/// A state without faults.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Packed {
    memory: MemoryId,
    section: Option<Section>,
    threads: Box<[PartId]>,
}

impl States {
    /// Keeps a state, if it is new. A fault is bad, whatever else there is.
    fn visit(&mut self, state: State) -> Result<(), Refusal> {
        let State { memory, threads, section, fault } = state;
        if fault.is_some() {
            return Err(Refusal::BadReached);
        }
        let parts = (self.memories.len(), self.threads.len());
        let cells = memory.len();
        let packed = Packed {
            memory: self.memories.id(memory),
            section,
            threads: threads.into_iter().map(|thread| self.threads.id(thread)).collect(),
        };
        if self.memories.len() > parts.0 {
            self.bytes += 96 + 8 * cells as u64;
        }
        let new_threads = (parts.1..self.threads.len()).map(|id| size(self.threads.get(PartId(id as u32))));
        self.bytes += new_threads.sum::<u64>();
        if !self.visited.contains(&packed) {
            // In the set, and among the open ones.
            self.bytes += 2 * (48 + 4 * packed.threads.len() as u64);
            self.visited.insert(packed.clone());
            self.open.push(packed);
        }
        Ok(())
    }

    fn next(&mut self) -> Option<State> {
        let packed = self.open.pop()?;
        let threads = packed.threads.iter().map(|&thread| Thread::clone(self.threads.get(thread)));
        Some(State {
            memory: IdVec::clone(self.memories.get(packed.memory)),
            threads: threads.collect::<IdVec<ThreadId, Thread>>(),
            section: packed.section,
            fault: None,
        })
    }
}

/// About how many bytes a thread takes.
fn size(thread: &Thread) -> u64 {
    let registers: usize = thread.frames.iter().map(|frame| 96 + frame.registers.len() * 8).sum();
    (128 + registers + thread.buffer.len() * 24) as u64
}
