//! States of the machine, and its initial states.

use crate::{Fault, Machine};
use palisade_base::IdVec;
use palisade_program::Value;
use palisade_program::running::{Cell, CellId, CodeId, Location, RegId, RoleId, System, ThreadId};
use std::sync::Arc;

/// A state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The value of each cell of memory.
    pub memory: IdVec<CellId, Value>,
    /// All threads ever started, including those that have ended. A step changes one thread, and states share the
    /// others.
    pub threads: IdVec<ThreadId, Arc<Thread>>,
    /// The open atomic section, if there is one.
    pub section: Option<Section>,
    /// The fault that ended the run, if one did.
    pub fault: Option<(ThreadId, Fault)>,
}

/// An open atomic section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Section {
    /// The thread that opened it.
    pub holder: ThreadId,
    /// How many times it has been opened and not yet closed.
    pub depth: u32,
}

/// A thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    /// The role that it runs.
    pub role: RoleId,
    /// The process body is at the bottom, the procedure that is running now on top. Never empty.
    pub frames: Vec<Frame>,
    /// Pending stores in program order, oldest first. A barrier never comes first.
    pub buffer: Vec<Pending>,
}

/// An activation of a process body or procedure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// The body that it runs.
    pub code: CodeId,
    /// The current location. For a caller, where it resumes after the call.
    pub location: Location,
    /// The values of its registers, by [`RegId`]. The running procedure holds the private variables; they are
    /// 0 in the frames of its callers.
    pub registers: Vec<Value>,
    /// The caller's register that receives the result.
    pub result: Option<RegId>,
}

/// An entry of a store buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pending {
    /// A store that has not reached memory.
    Store(CellId, Value),
    /// A store-store fence (PSO only).
    Barrier,
}

impl Thread {
    /// A thread at its start.
    pub fn start(system: &System, role: RoleId) -> Thread {
        let code = system.roles[role].code;
        Thread { role, frames: vec![Frame::enter(system, code, &[], None)], buffer: Vec::new() }
    }

    /// The frame that is running.
    pub fn top(&self) -> &Frame {
        self.frames.last().expect("a thread always has the frame of its process body")
    }

    /// Whether it has run to the end of its process body (its buffer may still hold stores).
    pub fn has_ended(&self, system: &System) -> bool {
        self.is_at(system.role_code(self.role).exit)
    }

    /// Whether it is at this location of its process body, with no procedure entered.
    pub fn is_at(&self, location: Location) -> bool {
        self.frames.len() == 1 && self.frames[0].location == location
    }

    /// The value of the newest pending store to a cell.
    pub fn newest_pending(&self, cell: CellId) -> Option<Value> {
        self.buffer.iter().rev().find_map(|&entry| match entry {
            Pending::Store(c, value) if c == cell => Some(value),
            _ => None,
        })
    }

    /// Whether a locked instruction that waits for its own address only ([`crate::Interlocked::OwnAddress`])
    /// can proceed: no store to the cell is pending, and no store-store fence orders its store after pending
    /// ones.
    pub fn may_lock_alone(&self, cell: CellId) -> bool {
        self.newest_pending(cell).is_none() && !self.buffer.contains(&Pending::Barrier)
    }
}

impl Frame {
    /// The frame of a body entered with these arguments. Private variables are 0.
    pub fn enter(system: &System, code: CodeId, args: &[Value], result: Option<RegId>) -> Frame {
        let mut registers = vec![0; system.privates];
        registers.extend_from_slice(args);
        registers.resize(system.codes[code].registers.len(), 0);
        Frame { code, location: system.codes[code].entry, registers, result }
    }
}

impl Machine<'_> {
    /// The initial state with this memory, or `None` if there is no such initial state.
    pub fn initial_state(&self, memory: &[Value]) -> Option<State> {
        let fits = |(cell, &value): (&Cell, &Value)| match cell.init {
            Some(init) => init == value,
            None => cell.ty.domain.contains(value),
        };
        let cells = &self.system.cells;
        (memory.len() == cells.len() && cells.iter().zip(memory).all(fits)).then(|| State {
            memory: memory.to_vec().into(),
            threads: self
                .system
                .instances
                .iter()
                .map(|i| Arc::new(Thread::start(self.system, i.role)))
                .collect(),
            section: None,
            fault: None,
        })
    }

    /// All initial states: one per combination of values for the cells that can start with any value.
    pub fn initial_states(&self) -> impl Iterator<Item = State> {
        let least = |cell: &Cell| cell.init.unwrap_or_else(|| arbitrary(cell).0);
        let first: Vec<Value> = self.system.cells.iter().map(least).collect();
        let next = |memory: &Vec<Value>| {
            let mut memory = memory.clone();
            for (cell, value) in self.system.cells.iter().zip(&mut memory) {
                if cell.init.is_none() {
                    let (lo, hi) = arbitrary(cell);
                    if *value < hi {
                        *value += 1;
                        return Some(memory);
                    }
                    *value = lo;
                }
            }
            None
        };
        std::iter::successors(Some(first), next)
            .map(|memory| self.initial_state(&memory).expect("enumerated values are inside their domains"))
    }
}

fn arbitrary(cell: &Cell) -> (Value, Value) {
    cell.ty.domain.bounds().expect("validation: a cell with an arbitrary initial value has a declared domain")
}
