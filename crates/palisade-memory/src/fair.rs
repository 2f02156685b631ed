//! Which runs are fair, and which fair runs violate `terminates` or `leaves`.
//!
//! *Definitions.* The program is lowered with [`palisade_program::lower_retrying`].
//! - A run is *complete* if it is infinite, or if no step is possible in its last state.
//! - An [`Agent`] is a thread, which executes instructions, or the pending stores of a thread to one cell. At
//!   most one of these stores can reach memory next: the oldest one.
//! - An agent is *held up* in a state if the atomic section of another thread is open there.
//! - A complete run is *fair* unless one of these is true of it:
//!   1. It ignores an agent: from some point on, the agent takes no step, although it can take one in every
//!      state in which it is not held up, and there are infinitely many such states.
//!   2. It ignores an alternative of a wait. From some point on, all steps of some thread belong to attempts
//!      of waits ([`Code::attempts`]). There is a location that this thread comes to again and again, and an
//!      instruction there that it can execute whenever it is there and not held up, and never executes.
//! - A complete run *ends* if there is a fault in its last state, or if all threads have ended there.
//! - `terminates` is violated by a fair run that does not end.
//! - `leaves P@l` is violated by a fair run without a fault in which, from some point on, P is inside the
//!   statement labelled `l`, and all steps of P stay inside ([`Stay`]).
//!
//! *What this means.*
//! - Fairness is weak. A thread that can always move moves again and again, and a pending store reaches
//!   memory. It says nothing about *when* a thread looks at memory. A thread that waits for a condition which
//!   becomes true and false again and again may always look at the wrong time. So under a test-and-set lock
//!   a thread can starve.
//! - A thread that spins does move. A thread that is blocked does not, and it is not ignored if it is blocked
//!   again and again. Both behave alike, as they should: spinning and blocking are two ways to wait.
//! - An atomic section counts as one step. Opening sections again and again does not stop other threads forever, nor
//!   can other threads keep a section from being opened forever. Only a section that stays open forever stops all
//!   others.
//! - Under TSO, the oldest store of a thread is the only one that can reach memory, so no store stays pending
//!   forever. Under PSO, each cell has its own oldest store.
//! - A choice in the program is not fair: `loop { choose { skip; } or { break; } }` need not end. But a
//!   thread that waits for one of several things looks at each of them.
//!
//! *Monotonicity.* A fair run under SC is a fair run under TSO in which each store reaches memory at once, and a
//! fair run under TSO is one under PSO:
//! - While a store is pending in between, memory is as before, so the other threads can take the same steps.
//!   The storing thread has just moved. A thread whose steps are all attempts stores nothing.
//! - A run under TSO is a run under PSO. Every store reaches memory, so no agent of stores is ignored. Locked
//!   instructions may wait for less under PSO. But a thread that waits for its buffer alone gets an empty
//!   buffer and moves on, under both models.
//!
//! So what SC violates, TSO violates, and what TSO violates, PSO violates.
//!
//! *Lassos.* A run to some state, followed by a cycle from this state back to itself, stands for the infinite
//! run that repeats the cycle forever. [`Machine::is_fair_cycle`] decides whether it is fair. A cycle without
//! steps stands for a run that stops.
//!
//! [`Code::attempts`]: palisade_program::running::Code::attempts
//! [`Stay`]: palisade_program::running::Stay

use crate::{Action, Machine, Pending, State, Step, Thread};
use palisade_base::limits;
use palisade_program::running::{CellId, CodeId, EdgeId, FairKind, Location, ThreadId};
use std::sync::Arc;

/// Something that takes steps by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Agent {
    /// A thread, which executes instructions.
    Thread(ThreadId),
    /// The pending stores of a thread to a cell.
    Stores(ThreadId, CellId),
}

impl Agent {
    /// The thread that it belongs to.
    pub fn thread(self) -> ThreadId {
        match self {
            Agent::Thread(thread) | Agent::Stores(thread, _) => thread,
        }
    }
}

/// Why no fair scheduler repeats a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unfair {
    /// A step is not possible, or the last state differs from the first one.
    NoCycle,
    /// The agent is ignored.
    Ignores(Agent),
    /// The thread waits, and never tries this instruction of its code.
    NeverTries(ThreadId, EdgeId),
}

impl std::fmt::Display for Unfair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unfair::NoCycle => "its last steps are not a cycle",
            Unfair::Ignores(Agent::Thread(_)) => "a process can always move and never does",
            Unfair::Ignores(Agent::Stores(..)) => "a pending store never reaches memory",
            Unfair::NeverTries(..) => "a process waits and never tries one of its alternatives",
        })
    }
}

impl Machine<'_> {
    /// The agent that takes a step. `None` if there is no such step.
    pub fn agent(&self, state: &State, step: Step) -> Option<Agent> {
        match step.action {
            Action::Execute { .. } => Some(Agent::Thread(step.thread)),
            Action::Update { position } => match state.threads.get(step.thread)?.buffer.get(position)? {
                Pending::Store(cell, _) => Some(Agent::Stores(step.thread, *cell)),
                Pending::Barrier => None,
            },
        }
    }

    /// Whether an agent can take a step.
    pub fn can_move(&self, state: &State, agent: Agent) -> bool {
        let thread = agent.thread();
        match agent {
            Agent::Thread(_) => {
                let mut steps = self.steps_of(state, thread).into_iter();
                steps.any(|(step, _)| self.step(state, step).is_ok())
            }
            Agent::Stores(_, cell) => {
                let mut stores = state.threads[thread].buffer.iter().enumerate();
                stores.any(|(position, entry)| {
                    let step = Step { thread, action: Action::Update { position } };
                    matches!(entry, Pending::Store(own, _) if *own == cell) && self.step(state, step).is_ok()
                })
            }
        }
    }

    /// Whether a thread can execute an instruction where it is.
    pub fn can_execute(&self, state: &State, thread: ThreadId, edge: EdgeId) -> bool {
        let mut steps = self.steps_of(state, thread).into_iter();
        steps.any(|(step, of)| of == edge && self.step(state, step).is_ok())
    }

    /// Whether the cycle from a state, by these steps, is one that a fair scheduler can repeat forever. If
    /// so, returns its states without the last one, which is the first one again. A cycle without steps has
    /// one state.
    pub fn is_fair_cycle(&self, start: &State, steps: &[Step]) -> Result<Vec<State>, Unfair> {
        let mut states = vec![start.clone()];
        for &step in steps {
            limits::checkpoint();
            let (next, _) = self.step(&states[states.len() - 1], step).map_err(|_| Unfair::NoCycle)?;
            states.push(next);
        }
        if states[steps.len()] != *start {
            return Err(Unfair::NoCycle);
        }
        states.truncate(steps.len().max(1));
        for (thread, at_start) in start.threads.iter_enumerated() {
            // What is pending forever is pending in the first state.
            let stores = at_start.buffer.iter().filter_map(|entry| match entry {
                Pending::Store(cell, _) => Some(Agent::Stores(thread, *cell)),
                Pending::Barrier => None,
            });
            for agent in std::iter::once(Agent::Thread(thread)).chain(stores) {
                if self.ignores(&states, steps, agent) {
                    return Err(Unfair::Ignores(agent));
                }
            }
            if let Some(edge) = self.never_tried(&states, steps, thread) {
                return Err(Unfair::NeverTries(thread, edge));
            }
        }
        Ok(states)
    }

    /// Point 1 of the definition.
    fn ignores(&self, states: &[State], steps: &[Step], agent: Agent) -> bool {
        let moves = |(state, step): (&State, &Step)| self.agent(state, *step) == Some(agent);
        let mut free = states.iter().filter(|state| !held_up(state, agent.thread())).peekable();
        !states.iter().zip(steps).any(moves)
            && free.peek().is_some()
            && free.all(|state| self.can_move(state, agent))
    }

    /// Point 2 of the definition: an instruction that a waiting thread never tries.
    fn never_tried(&self, states: &[State], steps: &[Step], thread: ThreadId) -> Option<EdgeId> {
        let mut executed: Vec<(CodeId, Location, EdgeId)> = Vec::new();
        for (state, step) in states.iter().zip(steps) {
            if let Action::Execute { edge, .. } = step.action
                && step.thread == thread
            {
                let top = state.threads[thread].top();
                if self.system.codes[top.code].attempts.binary_search(&edge).is_err() {
                    return None;
                }
                executed.push((top.code, top.location, edge));
            }
        }
        for &(code, location, _) in &executed {
            let there = |state: &&State| {
                let top = state.threads[thread].top();
                (top.code, top.location) == (code, location) && !held_up(state, thread)
            };
            for edge in self.system.codes[code].edges_from(location).map(EdgeId) {
                let tried = executed.contains(&(code, location, edge));
                let mut visits = states.iter().filter(there);
                if !tried && visits.all(|state| self.can_execute(state, thread, edge)) {
                    return Some(edge);
                }
            }
        }
        None
    }

    /// Whether the run that repeats a fair cycle forever violates the property. `states` is what
    /// [`Machine::is_fair_cycle`] returned.
    pub fn violates_forever(&self, states: &[State], steps: &[Step], property: &FairKind) -> bool {
        if states[0].fault.is_some() {
            return false;
        }
        match property {
            FairKind::Terminates => {
                let ended = |thread: &Arc<Thread>| thread.has_ended(self.system);
                !steps.is_empty() || !states[0].threads.iter().all(ended)
            }
            FairKind::Leaves { thread, stay } => {
                let inside = |state: &State| {
                    let location = state.threads[*thread].frames[0].location;
                    stay.locations.binary_search(&location).is_ok()
                };
                let stays = |(state, step): (&State, &Step)| match step.action {
                    Action::Execute { edge, .. }
                        if step.thread == *thread && state.threads[*thread].frames.len() == 1 =>
                    {
                        stay.edges.binary_search(&edge).is_ok()
                    }
                    _ => true,
                };
                states.iter().all(inside) && states.iter().zip(steps).all(stays)
            }
        }
    }
}

/// Whether the atomic section of another thread is open.
fn held_up(state: &State, thread: ThreadId) -> bool {
    state.section.is_some_and(|section| section.holder != thread)
}
