//! Data races.

use crate::{Machine, State, Thread, Violation};
use palisade_program::running::{CellId, Code, EdgeId, Instr, ThreadId};

/// What a thread is about to do to a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NextAccess {
    /// The cell.
    pub cell: CellId,
    /// Whether it may be written.
    pub writes: bool,
    /// Whether the access is plain.
    pub plain: bool,
}

impl NextAccess {
    /// The access of an edge of a code, given the register values. An address that is not valid gives none.
    pub fn of(machine: &Machine<'_>, code: &Code, edge: EdgeId, registers: &[i64]) -> Option<NextAccess> {
        let (address, writes) = match &code.edges()[edge].instr {
            Instr::Load(_, address) => (address, false),
            Instr::Store(address, _) | Instr::Locked { address, .. } => (address, true),
            _ => return None,
        };
        let cell = machine.resolve(address, registers).ok()?;
        Some(NextAccess { cell, writes, plain: code.plain.binary_search(&edge).is_ok() })
    }

    /// Whether two threads that are about to do these are in a data race.
    pub fn races_with(self, other: NextAccess) -> bool {
        self.cell == other.cell && (self.writes || other.writes) && (self.plain || other.plain)
    }
}

impl Machine<'_> {
    /// The data race of a state, if there is one: outside atomic sections, two threads are about to access the
    /// same cell, one of them may write it, and one of the accesses is plain. Buffers do not matter: what a thread
    /// waits for before a locked instruction happens without any step of another thread.
    pub fn race(&self, state: &State) -> Option<Violation> {
        if state.section.is_some() || self.system.codes.iter().all(|code| code.plain.is_empty()) {
            return None;
        }
        let next: Vec<(ThreadId, NextAccess)> = state
            .threads
            .iter_enumerated()
            .flat_map(|(id, thread)| self.next_accesses(thread).map(move |access| (id, access)))
            .collect();
        next.iter().enumerate().find_map(|(i, &(first, access))| {
            let others = next[i + 1..].iter();
            let mut racing = others.filter(|(second, other)| *second != first && access.races_with(*other));
            racing.next().map(|&(second, _)| Violation::Race(first, second, access.cell))
        })
    }

    /// What a thread may access in its next step.
    fn next_accesses(&self, thread: &Thread) -> impl Iterator<Item = NextAccess> {
        let frame = thread.top();
        let code = &self.system.codes[frame.code];
        let edges = code.edges_from(frame.location).map(EdgeId);
        edges.filter_map(move |edge| NextAccess::of(self, code, edge, &frame.registers))
    }
}
