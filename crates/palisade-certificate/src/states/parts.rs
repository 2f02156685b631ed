//! The parts of states, and their steps.
//!
//! By the definition of the machine, the steps of a thread and their results depend only on that thread, on
//! memory and on the open section. So the machine is queried once, with the thread alone, for all states that
//! agree on these.

use super::combinations;
use super::local::Local;
use crate::Refusal;
use crate::dead;
use crate::seen::forget;
use crate::watch::Watch;
use palisade_base::{Id, IdVec, Interner, define_id, limits};
use palisade_memory::{Action, Machine, Section, State, Thread};
use palisade_program::Value;
use palisade_program::running::{CellId, Liveness, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

define_id!(
    /// A memory content.
    MemoryId
);
define_id!(
    /// A thread with everything that belongs to it.
    PartId
);

/// The number of parts created between two checks of the limits.
const PARTS_BETWEEN_LOOKS: usize = 1024;

/// The parts of states.
pub(super) struct Parts<'m> {
    pub machine: Machine<'m>,
    local: Local,
    liveness: Liveness,
    watch: &'m Watch<'m>,
    memories: Interner<MemoryId, IdVec<CellId, Value>>,
    threads: Interner<PartId, Thread>,
    /// The results of the steps of a thread.
    changes: FxHashMap<StepKey, Rc<[Change]>>,
    /// The results of local steps, where a thread is on its own.
    settled: FxHashMap<PartId, Rc<[PartId]>>,
    /// The approximate number of bytes that all this takes.
    pub bytes: u64,
}

/// Everything the steps of a thread depend on: the thread, memory, and the nesting depth of its open section.
type StepKey = (PartId, MemoryId, u32);

/// The change made by a step of a thread.
pub(super) struct Change {
    pub memory: MemoryId,
    /// The thread itself.
    pub part: PartId,
    /// The nesting depth of its open section.
    pub depth: u32,
    pub started: Box<[PartId]>,
}

impl<'m> Parts<'m> {
    pub fn new(machine: Machine<'m>, watch: &'m Watch<'m>) -> Result<Parts<'m>, Refusal> {
        Ok(Parts {
            machine,
            local: Local::new(machine.system),
            liveness: dead::checked(machine.system)?,
            watch,
            memories: Interner::new(),
            threads: Interner::new(),
            changes: FxHashMap::default(),
            settled: FxHashMap::default(),
            bytes: 0,
        })
    }

    pub fn memory(&mut self, memory: IdVec<CellId, Value>) -> MemoryId {
        let (known, cells) = (self.memories.len(), memory.len() as u64);
        let id = self.memories.id(memory);
        self.bytes += (self.memories.len() - known) as u64 * (96 + 8 * cells);
        id
    }

    pub fn memory_of(&self, id: MemoryId) -> &IdVec<CellId, Value> {
        self.memories.get(id)
    }

    pub fn thread(&self, id: PartId) -> &Thread {
        self.threads.get(id)
    }

    fn part(&mut self, mut thread: Thread) -> Result<PartId, Refusal> {
        forget(&self.liveness, &mut thread);
        let known = self.threads.len();
        let id = self.threads.id(thread);
        if self.threads.len() > known {
            self.bytes += size(self.threads.get(id));
            if self.threads.len().is_multiple_of(PARTS_BETWEEN_LOOKS) {
                self.watch.look(self.bytes)?;
            }
        }
        Ok(id)
    }

    /// The changes by the steps of a thread. A fault is bad, whatever the rest of the state is.
    pub fn changes(&mut self, part: PartId, memory: MemoryId, depth: u32) -> Result<Rc<[Change]>, Refusal> {
        let key = (part, memory, depth);
        if let Some(known) = self.changes.get(&key) {
            return Ok(Rc::clone(known));
        }
        let state = self.alone(part, IdVec::clone(self.memories.get(memory)), depth);
        let mut changes = Vec::new();
        for successor in self.machine.successors(&state) {
            limits::checkpoint();
            let State { memory, threads, section, fault } = successor.state;
            if fault.is_some() {
                return Err(Refusal::BadReached);
            }
            let memory = self.memory(memory);
            let depth = section.map_or(0, |section| section.depth);
            let threads: Vec<_> = threads
                .into_iter()
                .map(|thread| self.settled(Arc::unwrap_or_clone(thread)))
                .collect::<Result<_, _>>()?;
            for parts in combinations(&threads) {
                let (&part, started) = parts.split_first().expect("a thread stays when it has ended");
                changes.push(Change { memory, part, depth, started: started.into() });
            }
        }
        self.bytes += 64 + 48 * changes.len() as u64;
        let changes: Rc<[Change]> = changes.into();
        self.changes.insert(key, Rc::clone(&changes));
        Ok(changes)
    }

    /// What a thread may have become when it is no longer on its own, or cannot continue.
    pub fn settled(&mut self, thread: Thread) -> Result<Rc<[PartId]>, Refusal> {
        let part = self.part(thread)?;
        if let Some(known) = self.settled.get(&part) {
            return Ok(Rc::clone(known));
        }
        let (mut met, mut settled) = (FxHashSet::from_iter([part]), Vec::new());
        let mut open = vec![part];
        while let Some(part) = open.pop() {
            limits::checkpoint();
            let own = self.own_steps(part)?;
            if own.is_empty() {
                settled.push(part);
            }
            open.extend(own.into_iter().filter(|&part| met.insert(part)));
        }
        self.bytes += 64 + 4 * settled.len() as u64;
        let settled: Rc<[PartId]> = settled.into();
        self.settled.insert(part, Rc::clone(&settled));
        Ok(settled)
    }

    /// The results of the next step of a thread that is on its own.
    fn own_steps(&mut self, part: PartId) -> Result<Vec<PartId>, Refusal> {
        let top = self.thread(part).top();
        if !self.local.is_alone(top.code, top.location) {
            return Ok(Vec::new());
        }
        // Nothing depends on the contents of memory.
        let memory = self.machine.system.cells.iter().map(|_| 0).collect();
        let mut after = Vec::new();
        for successor in self.machine.successors(&self.alone(part, memory, 0)) {
            match (successor.step.action, successor.state.fault) {
                (Action::Update { .. }, _) => {}
                (Action::Execute { .. }, Some(_)) => return Err(Refusal::BadReached),
                (Action::Execute { .. }, None) => {
                    let thread = successor.state.threads.into_iter().next();
                    let thread = thread.expect("a thread stays when it has ended");
                    after.push(self.part(Arc::unwrap_or_clone(thread))?);
                }
            }
        }
        Ok(after)
    }

    /// A state with one thread.
    fn alone(&self, part: PartId, memory: IdVec<CellId, Value>, depth: u32) -> State {
        let holder = ThreadId::from_index(0);
        State {
            memory,
            threads: [Arc::new(Thread::clone(self.thread(part)))].into_iter().collect(),
            section: (depth > 0).then_some(Section { holder, depth }),
            fault: None,
        }
    }
}

/// The approximate number of bytes a thread takes.
fn size(thread: &Thread) -> u64 {
    let registers: usize = thread.frames.iter().map(|frame| 96 + frame.registers.len() * 8).sum();
    (128 + registers + thread.buffer.len() * 24) as u64
}
