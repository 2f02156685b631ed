//! Brute force under TSO with a bound on the rounds of every thread, or on the age of stores: all states,
//! with nothing left out.
//!
//! *Source.* Atig, Bouajjani and Parlato (CAV 2011), sections 2.4 and 4. A *round* of a thread is a stretch
//! of a run in which only that thread takes steps and only its pending stores reach memory. At the end of a
//! round, every pending store of the thread gets older by one. With *store age k*, no pending store is older
//! than `k` at that point. The end of the run also ends a round.
//!
//! *Guarantee.* Correct if `palisade-memory` is.

use palisade_base::Id;
use palisade_memory::{Action, Machine, Pending, State};
use palisade_program::running::ThreadId;
use rustc_hash::FxHashSet;

/// What is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// How many rounds each thread may have.
    Rounds(u32),
    /// How old stores may get.
    Age(u32),
}

/// A state on a run within a bound.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Within {
    /// The state.
    pub state: State,
    /// The thread whose round it is.
    pub last: Option<ThreadId>,
    /// The rounds each thread has had so far, if they are bounded.
    used: Vec<u32>,
    /// The ages of the pending stores of each thread, if they are bounded.
    ages: Vec<Vec<u32>>,
}

/// All states on runs within a bound; `None` if there are more than `limit`.
pub fn reachable(machine: Machine<'_>, bound: Bound, limit: usize) -> Option<Vec<Within>> {
    let start = |state: State| {
        let threads = state.threads.len();
        Within { used: vec![0; threads], ages: vec![Vec::new(); threads], state, last: None }
    };
    let mut open: Vec<Within> = machine.initial_states().map(start).collect();
    let mut known: FxHashSet<Within> = open.iter().cloned().collect();
    while let Some(at) = open.pop() {
        for successor in machine.successors(&at.state) {
            let Some(mut next) = at.turn(successor.step.thread, bound) else { continue };
            let thread = successor.step.thread.index();
            next.used.resize(successor.state.threads.len(), 0);
            next.ages.resize(successor.state.threads.len(), Vec::new());
            if let Bound::Age(_) = bound {
                match successor.step.action {
                    Action::Update { position } => _ = next.ages[thread].remove(position),
                    Action::Execute { .. } => {
                        let pending = |entry: &&Pending| matches!(entry, Pending::Store(..));
                        let stores = successor.state.threads[successor.step.thread].buffer.iter();
                        next.ages[thread].resize(stores.filter(pending).count(), 0);
                    }
                }
            }
            next.state = successor.state;
            if known.len() > limit {
                return None;
            }
            if known.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Some(known.into_iter().collect())
}

impl Within {
    /// The same state when it is the thread's turn, if the thread may have one.
    fn turn(&self, thread: ThreadId, bound: Bound) -> Option<Within> {
        let mut next = self.clone();
        if self.last == Some(thread) {
            return Some(next);
        }
        next.last = Some(thread);
        match bound {
            Bound::Rounds(rounds) => {
                next.used[thread.index()] += 1;
                (next.used[thread.index()] <= rounds).then_some(next)
            }
            Bound::Age(_) => {
                if let Some(last) = self.last {
                    next.ages[last.index()].iter_mut().for_each(|age| *age += 1);
                }
                self.can_end(bound).then_some(next)
            }
        }
    }

    /// Whether a round may end here, and the run with it.
    pub fn can_end(&self, bound: Bound) -> bool {
        self.state.section.is_none()
            && match (bound, self.last) {
                (Bound::Age(age), Some(last)) => self.ages[last.index()].iter().all(|&a| a < age),
                _ => true,
            }
    }
}
