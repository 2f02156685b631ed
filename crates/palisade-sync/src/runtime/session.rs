//! What stays the same in all executions of a session: the numbers of instructions and threads.

use palisade_monitor::Instruction;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::panic::Location;

/// A call site: a position in the source, and the operation there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallSite {
    /// The file, as the compiler recorded its name.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The operation, such as `store`.
    pub operation: &'static str,
}

impl CallSite {
    /// The call site of an operation.
    pub(crate) fn new(location: &'static Location<'static>, operation: &'static str) -> CallSite {
        CallSite { file: location.file(), line: location.line(), column: location.column(), operation }
    }
}

impl Display for CallSite {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Something that takes steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Actor {
    /// A thread.
    Thread(usize),
    /// A store buffer of a thread, by its key.
    Buffer(usize, u64),
}

/// Numbers of instructions, threads and processes, and what is known about loops.
#[derive(Debug, Default)]
pub struct Session {
    places: Vec<CallSite>,
    by_place: FxHashMap<CallSite, Instruction>,
    threads: FxHashMap<(usize, u32), usize>,
    /// Threads and buffers are numbered together, for the search.
    processes: FxHashMap<Actor, usize>,
    /// Loops that turned out to end by themselves.
    pub not_waits: FxHashSet<Instruction>,
    /// Loops treated as waits.
    pub waits: BTreeSet<Instruction>,
}

impl Session {
    /// The number of an instruction.
    pub fn instruction(&mut self, place: CallSite) -> Instruction {
        *self.by_place.entry(place).or_insert_with(|| {
            self.places.push(place);
            Instruction(self.places.len() as u32 - 1)
        })
    }

    /// The call site of an instruction.
    pub fn place(&self, instruction: Instruction) -> CallSite {
        self.places[instruction.0 as usize]
    }

    /// The number of a thread, by its parent and its index among the parent's children.
    pub fn thread(&mut self, parent: usize, child: u32) -> usize {
        let next = self.threads.len() + 1;
        *self.threads.entry((parent, child)).or_insert(next)
    }

    /// The number of a thread or a buffer as a process of the search.
    pub fn process(&mut self, actor: Actor) -> usize {
        let next = self.processes.len();
        *self.processes.entry(actor).or_insert(next)
    }
}
