//! Which states are stuck, and which states satisfy a goal.
//!
//! *Definitions.* The program is lowered with [`palisade_program::lower_retrying`].
//! - A thread *waits for good* in a state if it has not ended and, as long as memory stays as it is, every
//!   step that it can ever take belongs to an attempt of a wait ([`Code::attempts`]) and changes no memory. A
//!   thread that cannot take any step waits for good.
//! - A state without a fault is *stuck* if a thread waits for good inside an atomic section, or if all
//!   buffers are empty, every thread has ended or waits for good, and at least one waits. This is a deadlock.
//!
//! In a stuck state nothing can ever change. If a thread waits inside an atomic section, no other thread
//! takes a step, and no store of another thread reaches memory. Otherwise no store is pending, and no thread
//! that waits for good writes to memory, so each of them keeps waiting. Attempts make no calls, so
//! they neither start threads nor open or close atomic sections.
//!
//! [`Code::attempts`]: palisade_program::running::Code::attempts

use crate::property::evaluate;
use crate::{Action, Effect, Machine, State, Step, Thread};
use palisade_base::limits;
use palisade_program::Value;
use palisade_program::running::{CellId, EdgeId, Goal, GoalKind, Instr, ThreadId};
use std::collections::HashSet;
use std::sync::Arc;

impl Machine<'_> {
    /// Whether the state is stuck.
    pub fn is_stuck(&self, state: &State) -> bool {
        let ended = |thread: &Arc<Thread>| thread.has_ended(self.system);
        if let Some(section) = state.section {
            return state.fault.is_none() && self.waits_for_good(state, section.holder).is_some();
        }
        state.fault.is_none()
            && state.threads.iter().all(|thread| thread.buffer.is_empty())
            && !state.threads.iter().all(ended)
            && state
                .threads
                .iter_enumerated()
                .all(|(id, thread)| ended(thread) || self.waits_for_good(state, id).is_some())
    }

    /// The cells that a thread reads while it waits for good, in the order in which it reads them first, and
    /// their values. `None` if the thread does not wait for good.
    pub fn waits_for_good(&self, state: &State, thread: ThreadId) -> Option<Vec<(CellId, Value)>> {
        let mut reads: Vec<(CellId, Value)> = Vec::new();
        let mut known = HashSet::from([state.clone()]);
        let mut open = vec![state.clone()];
        while let Some(state) = open.pop() {
            limits::checkpoint();
            let top = state.threads[thread].top();
            let code = &self.system.codes[top.code];
            for (step, edge) in self.steps_of(&state, thread) {
                let Ok((next, effect)) = self.step(&state, step) else { continue };
                let read = match effect {
                    Effect::Local | Effect::Fenced | Effect::StoreFenced => None,
                    Effect::ReadMemory(cell, value) | Effect::Locked { cell, read: value, .. } => {
                        Some((cell, value))
                    }
                    _ => return None,
                };
                if code.attempts.binary_search(&edge).is_err() || next.memory != state.memory {
                    return None;
                }
                reads.extend(read.filter(|read| !reads.contains(read)));
                if known.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        Some(reads)
    }

    /// The instructions that a thread may try next, with their edges.
    pub(crate) fn steps_of(&self, state: &State, thread: ThreadId) -> Vec<(Step, EdgeId)> {
        let top = state.threads[thread].top();
        let code = &self.system.codes[top.code];
        let mut steps = Vec::new();
        for edge in code.edges_from(top.location).map(EdgeId) {
            let mut offer =
                |choice| steps.push((Step { thread, action: Action::Execute { edge, choice } }, edge));
            match code.edges()[edge].instr {
                Instr::Havoc(_, lo, hi) => (lo..=hi).for_each(|value| offer(Some(value))),
                _ => offer(None),
            }
        }
        steps
    }

    /// Whether the state satisfies the goal.
    pub fn satisfies(&self, state: &State, goal: &Goal) -> bool {
        let drained = state.threads.iter().all(|thread| thread.buffer.is_empty());
        state.fault.is_none()
            && match &goal.kind {
                GoalKind::End => drained && state.threads.iter().all(|thread| thread.has_ended(self.system)),
                GoalKind::Condition { condition, reads_memory } => {
                    state.section.is_none()
                        && (drained || !reads_memory)
                        && evaluate(condition, state).is_ok_and(|value| value != 0)
                }
            }
    }
}
