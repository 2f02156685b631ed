//! Data races.

use crate::{Machine, Model, Pending, State, Thread, Violation};
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

    /// Stores that a thread has made and that are still pending, as accesses that it has not completed. They count under
    /// PSO only ([`Machine::race`]), and not as plain: the buffer does not say which instruction made them.
    pub fn pending(model: Model, thread: &Thread) -> impl Iterator<Item = NextAccess> {
        let counted = if model == Model::Pso { &thread.buffer[..] } else { &[] };
        counted.iter().filter_map(|&entry| match entry {
            Pending::Store(cell, _) => Some(NextAccess { cell, writes: true, plain: false }),
            Pending::Barrier => None,
        })
    }

    /// Whether two threads that are about to do these are in a data race.
    pub fn races_with(self, other: NextAccess) -> bool {
        self.cell == other.cell && (self.writes || other.writes) && (self.plain || other.plain)
    }
}

impl Machine<'_> {
    /// The data race of a state, if there is one: outside atomic sections, two threads are about to access the
    /// same cell, one of them may write it, and one of the accesses is plain. What a thread waits for before a locked
    /// instruction happens without any step of another thread, so it does not matter.
    ///
    /// Under PSO it is also a race if a thread is about to make a plain access to a cell to which another one has a
    /// pending store: a later store of that thread may have reached memory first, and have made the access possible.
    /// The first thread of the violation is the one that is about to make its access. Under TSO this would not add
    /// anything: with the thread stopped before the oldest such store, all the others can do the same.
    pub fn race(&self, state: &State) -> Option<Violation> {
        if state.section.is_some() || self.system.codes.iter().all(|code| code.plain.is_empty()) {
            return None;
        }
        let next: Vec<(ThreadId, NextAccess)> = state
            .threads
            .iter_enumerated()
            .flat_map(|(id, thread)| self.next_accesses(thread).map(move |access| (id, access)))
            .collect();
        let both_next = next.iter().enumerate().find_map(|(i, &(first, access))| {
            let others = next[i + 1..].iter();
            let mut racing = others.filter(|(second, other)| *second != first && access.races_with(*other));
            racing.next().map(|&(second, _)| Violation::Race(first, second, access.cell))
        });
        both_next.or_else(|| self.race_with_pending(state, &next))
    }

    /// A race of an access that a thread is about to make with a pending store of another one.
    fn race_with_pending(&self, state: &State, next: &[(ThreadId, NextAccess)]) -> Option<Violation> {
        let pending = state
            .threads
            .iter_enumerated()
            .flat_map(|(id, thread)| NextAccess::pending(self.model, thread).map(move |access| (id, access)));
        let pending: Vec<(ThreadId, NextAccess)> = pending.collect();
        next.iter().find_map(|&(first, access)| {
            let mut racing =
                pending.iter().filter(|(second, other)| *second != first && access.races_with(*other));
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
