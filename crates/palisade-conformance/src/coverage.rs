//! What runs do, by brute force: which edges they take, which locations they reach, which roles they start,
//! and whether they end.

use crate::brute::{Scope, reachable};
use palisade_memory::{Action, Machine};
use palisade_program::running::{CodeId, EdgeId, Location, RoleId};
use std::collections::BTreeSet;

/// What runs do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// The edges taken. An edge whose instruction faults counts as taken.
    pub taken: BTreeSet<(CodeId, EdgeId)>,
    /// The locations of running frames.
    pub reached: BTreeSet<(CodeId, Location)>,
    /// The locations that procedures return to.
    pub returned: BTreeSet<(CodeId, Location)>,
    /// The roles of all threads.
    pub started: BTreeSet<RoleId>,
    /// Whether all threads have ended and all buffers are empty in some state.
    pub ends: bool,
}

/// What all runs of a machine do, or `None` if a limit was hit.
pub fn steps(machine: Machine<'_>, limits: Scope) -> Option<Steps> {
    let search = reachable(machine, limits);
    if !search.complete {
        return None;
    }
    let mut steps = Steps::default();
    for state in &search.states {
        for thread in &state.threads {
            steps.started.insert(thread.role);
            steps.reached.insert((thread.top().code, thread.top().location));
        }
        let ended = |thread: &palisade_memory::Thread| thread.has_ended(machine.system);
        steps.ends |= state.fault.is_none()
            && state.threads.iter().all(|thread| ended(thread) && thread.buffer.is_empty());
        for successor in machine.successors(state) {
            if let Action::Execute { edge, .. } = successor.step.action {
                let thread = successor.step.thread;
                let (before, after) = (&state.threads[thread], &successor.state.threads[thread]);
                steps.taken.insert((before.top().code, edge));
                if after.frames.len() < before.frames.len() {
                    steps.returned.insert((after.top().code, after.top().location));
                }
            }
        }
    }
    Some(steps)
}
