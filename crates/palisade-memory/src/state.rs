//! States of the machine, and the initial ones.

use crate::{Fault, Machine};
use palisade_base::IdVec;
use palisade_program::Value;
use palisade_program::running::{Cell, CellId, CodeId, Location, RegId, RoleId, System, ThreadId};

/// A state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// What each cell of memory holds.
    pub memory: IdVec<CellId, Value>,
    /// All threads that were ever started; those that ended stay.
    pub threads: IdVec<ThreadId, Thread>,
    /// The open atomic section.
    pub section: Option<Section>,
    /// The fault that ended the run.
    pub fault: Option<(ThreadId, Fault)>,
}

/// An open atomic section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Section {
    /// Whose.
    pub holder: ThreadId,
    /// How often it was opened and not yet closed.
    pub depth: u32,
}

/// A thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    /// What it runs.
    pub role: RoleId,
    /// The process body at the bottom, the procedure that runs now on top. Never empty.
    pub frames: Vec<Frame>,
    /// Pending stores in program order, oldest first. A barrier never comes first.
    pub buffer: Vec<Pending>,
}

/// An activation of a process body or procedure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// What it runs.
    pub code: CodeId,
    /// Where it is; for a caller, where it goes on after the call.
    pub location: Location,
    /// What its registers hold, by [`RegId`]. The private variables are with the procedure that runs; those
    /// of its callers are 0.
    pub registers: Vec<Value>,
    /// The caller's register for the result.
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

    /// The frame that runs.
    pub fn top(&self) -> &Frame {
        self.frames.last().expect("a thread has at least the frame of its process body")
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
    /// need not wait: no store to the cell is pending, and no store-store fence keeps its store behind
    /// pending ones.
    pub fn may_lock_alone(&self, cell: CellId) -> bool {
        self.newest_pending(cell).is_none() && !self.buffer.contains(&Pending::Barrier)
    }
}

impl Frame {
    /// The frame of a body that is entered with arguments, with private variables 0.
    pub fn enter(system: &System, code: CodeId, args: &[Value], result: Option<RegId>) -> Frame {
        let mut registers = vec![0; system.privates];
        registers.extend_from_slice(args);
        registers.resize(system.codes[code].registers.len(), 0);
        Frame { code, location: system.codes[code].entry, registers, result }
    }
}

impl Machine<'_> {
    /// The initial state with this memory; `None` if no initial state has it.
    pub fn initial_state(&self, memory: &[Value]) -> Option<State> {
        let fits = |(cell, &value): (&Cell, &Value)| match cell.init {
            Some(init) => init == value,
            None => cell.ty.domain.contains(value),
        };
        let cells = &self.system.cells;
        (memory.len() == cells.len() && cells.iter().zip(memory).all(fits)).then(|| State {
            memory: memory.to_vec().into(),
            threads: self.system.instances.iter().map(|i| Thread::start(self.system, i.role)).collect(),
            section: None,
            fault: None,
        })
    }

    /// All initial states: one per combination of values for the cells that may start with any value.
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
            .map(|memory| self.initial_state(&memory).expect("the enumeration stays inside the domains"))
    }
}

fn arbitrary(cell: &Cell) -> (Value, Value) {
    cell.ty.domain.bounds().expect("validation: a cell with arbitrary initial value has a declared domain")
}
