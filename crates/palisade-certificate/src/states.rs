//! Proofs by visiting all states.
//!
//! An engine that searches forward says `safe` after leaving out states that cannot matter. What convinces is to leave out none: every state that the trusted machine
//! reaches, step by step, with buffers of any length, is visited here and none is bad. Nothing of the engine is believed, not even that the states are finitely many: if they are not,
//! the budget runs out.
//!
//! States are kept in parts: what memory holds, and each thread, once for all states that have it. What a thread can do, and what comes of it, depends on that thread, on memory and on the open
//! section alone, as the definition of the machine shows; so the machine is asked once for all states that agree on these.

use crate::watch::Watch;
use crate::{Refusal, Summary};
use palisade_base::{Id, IdVec, Interner, define_id};
use palisade_engine::Task;
use palisade_memory::{Machine, Section, State, Thread};
use palisade_program::Value;
use palisade_program::running::{CellId, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

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
    let mut states = States::new();
    for state in machine.initial_states() {
        let packed = states.pack(state)?;
        states.keep(packed);
        // Initial states alone may be many.
        if states.visited.len().is_multiple_of(STATES_BETWEEN_LOOKS) {
            watch.look(states.bytes)?;
        }
    }
    while let Some(packed) = states.open.pop() {
        summary.elements += 1;
        watch.element()?;
        if summary.elements.is_multiple_of(STATES_BETWEEN_LOOKS) {
            watch.look(states.bytes)?;
        }
        states.unpack(&packed);
        if machine.violation(&states.unpacked).is_some() {
            return Err(Refusal::BadReached);
        }
        for thread in 0..packed.threads.len() {
            for change in states.changes(machine, &packed, thread)?.iter() {
                summary.predecessors += 1;
                states.keep(change.of(&packed, thread));
            }
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
struct States {
    memories: Interner<MemoryId, IdVec<CellId, Value>>,
    parts: Interner<PartId, Thread>,
    visited: FxHashSet<Packed>,
    open: Vec<Packed>,
    /// What comes of the steps of a thread.
    changes: FxHashMap<Asked, Rc<[Change]>>,
    /// The state that is looked at, and of what it was made.
    unpacked: State,
    made_of: Packed,
    bytes: u64,
}

/// A state without faults.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Packed {
    memory: MemoryId,
    section: Option<Section>,
    threads: Box<[PartId]>,
}

/// What steps depend on: the number of the thread, the thread, memory and section.
type Asked = (usize, PartId, MemoryId, Option<Section>);

/// What a step of a thread changes.
struct Change {
    memory: MemoryId,
    section: Option<Section>,
    /// The thread itself.
    part: PartId,
    started: Vec<PartId>,
}

impl Change {
    fn of(&self, before: &Packed, thread: usize) -> Packed {
        let mut threads: Vec<PartId> = before.threads.iter().chain(&self.started).copied().collect();
        threads[thread] = self.part;
        Packed { memory: self.memory, section: self.section, threads: threads.into() }
    }
}

impl States {
    fn new() -> States {
        let mut memories = Interner::new();
        let made_of = Packed { memory: memories.id(IdVec::new()), section: None, threads: Box::default() };
        States {
            memories,
            parts: Interner::new(),
            visited: FxHashSet::default(),
            open: Vec::new(),
            changes: FxHashMap::default(),
            unpacked: State { memory: IdVec::new(), threads: IdVec::new(), section: None, fault: None },
            made_of,
            bytes: 0,
        }
    }

    /// The parts of a state. A fault is bad, whatever else there is.
    fn pack(&mut self, state: State) -> Result<Packed, Refusal> {
        let State { memory, threads, section, fault } = state;
        if fault.is_some() {
            return Err(Refusal::BadReached);
        }
        let known = (self.memories.len(), self.parts.len());
        let cells = memory.len() as u64;
        let memory = self.memories.id(memory);
        let threads = threads.into_iter().map(|thread| self.parts.id(thread)).collect();
        self.bytes += (self.memories.len() - known.0) as u64 * (96 + 8 * cells);
        let new = (known.1..self.parts.len()).map(|part| size(self.parts.get(PartId::from_index(part))));
        self.bytes += new.sum::<u64>();
        Ok(Packed { memory, section, threads })
    }

    /// Keeps a state, if it is new.
    fn keep(&mut self, packed: Packed) {
        if !self.visited.contains(&packed) {
            // In the set, and among the open ones.
            self.bytes += 2 * (48 + 4 * packed.threads.len() as u64);
            self.visited.insert(packed.clone());
            self.open.push(packed);
        }
    }

    /// Makes a state the one that is looked at. What it has in common with the last one stays.
    fn unpack(&mut self, packed: &Packed) {
        if packed.memory != self.made_of.memory {
            self.unpacked.memory = IdVec::clone(self.memories.get(packed.memory));
        }
        self.unpacked.section = packed.section;
        let before = &self.made_of.threads;
        if before.len() == packed.threads.len() {
            for (thread, &part) in packed.threads.iter().enumerate().filter(|&(at, part)| before[at] != *part)
            {
                self.unpacked.threads[ThreadId::from_index(thread)] = Thread::clone(self.parts.get(part));
            }
        } else {
            let threads = packed.threads.iter().map(|&part| Thread::clone(self.parts.get(part)));
            self.unpacked.threads = threads.collect();
        }
        self.made_of = packed.clone();
    }

    /// What the steps of a thread change in the state that is looked at.
    fn changes(
        &mut self,
        machine: Machine<'_>,
        packed: &Packed,
        thread: usize,
    ) -> Result<Rc<[Change]>, Refusal> {
        let asked = |thread: usize| (thread, packed.threads[thread], packed.memory, packed.section);
        if let Some(known) = self.changes.get(&asked(thread)) {
            return Ok(Rc::clone(known));
        }
        let mut changes: Vec<Vec<Change>> = packed.threads.iter().map(|_| Vec::new()).collect();
        for successor in machine.successors(&self.unpacked) {
            let after = self.pack(successor.state)?;
            let thread = successor.step.thread.index();
            changes[thread].push(Change {
                memory: after.memory,
                section: after.section,
                part: after.threads[thread],
                started: after.threads[packed.threads.len()..].to_vec(),
            });
        }
        for (thread, changes) in changes.into_iter().enumerate() {
            self.bytes += 64 + 48 * changes.len() as u64;
            self.changes.insert(asked(thread), changes.into());
        }
        Ok(Rc::clone(&self.changes[&asked(thread)]))
    }
}

/// About how many bytes a thread takes.
fn size(thread: &Thread) -> u64 {
    let registers: usize = thread.frames.iter().map(|frame| 96 + frame.registers.len() * 8).sum();
    (128 + registers + thread.buffer.len() * 24) as u64
}
