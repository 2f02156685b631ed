//! Threads that are started at run time.
//!
//! *Problem.* A thread may be started while stores of its parent are pending: starting a thread drains nothing. Then
//! the new thread can see memory without these stores, and its own stores can reach memory before them.
//!
//! # Exact starts
//! Where no store of the parent can be pending, all of this is impossible. A fence before the start changes nothing
//! there. So the start is an instruction that waits until the parent has seen everything, like a fence. At this moment
//! the new thread comes into existence, and everything it sees is at least as new. To undo it:
//! - The letters of the parent and of the new thread were propagated since (or are at the end of the single buffer).
//!   Drop them.
//! - The new thread was not there before. Elements may also not mention it; then only the parent changes.
//!
//! A thread at its start is part of an initial configuration only if there are that many threads at the start. The order
//! on elements is that for any number of processes, so searches terminate. They are exact if all starts are.
//!
//! # Delayed stores
//! Where stores of the parent may be pending, the automata [delay](palisade_automata::Starts) them. Then nothing else is
//! pending when a thread is started, and all starts are exact.
//!
//! Properties that look at memory hold only when nothing is pending in any thread. A bad element says so of the threads that
//! it mentions, and not of others. So it may stand for states in which stores of another thread are delayed. `safe` is right
//! all the same. If there is no run to such an element, a search without delayed stores looks for another one, in
//! which threads are started only when nothing is pending.
//!
//! # Other starts
//! If too many stores would be delayed, there are two approximations ([`Spawning`]):
//! - [`Spawning::Anytime`]: the new thread may be there from the beginning. That adds runs, so it proves only safety.
//! - [`Spawning::Drained`]: the parent starts threads only when nothing is pending. That leaves out runs, so it finds
//!   only violations.
//!
//! If the first search ends with an initial element that may not be real, the second one looks for a run.

use palisade_automata::{Edge, Letter, Starts, StateId};
use palisade_engine::Reason;
use rustc_hash::FxHashSet;

/// How starts are treated where stores of the parent may be pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spawning {
    /// The new thread may be there from the beginning.
    Anytime,
    /// Starts wait until nothing is pending.
    Drained,
}

impl From<Starts> for Spawning {
    fn from(starts: Starts) -> Spawning {
        match starts {
            Starts::Drained => Spawning::Drained,
            Starts::Anytime => Spawning::Anytime,
        }
    }
}

impl Spawning {
    /// Turns starts that need not wait into silent edges. Adds the automata that they start to `free`.
    pub fn apply(
        self,
        edges: &mut [Edge],
        may_be_pending: impl Fn(StateId) -> bool,
        free: &mut FxHashSet<u32>,
    ) {
        for edge in edges {
            if let Letter::Spawn(child) = edge.letter
                && self == Spawning::Anytime
                && may_be_pending(edge.source)
            {
                free.insert(child);
                edge.letter = Letter::Silent;
            }
        }
    }
}

/// Why an initial element may not stand for a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// Threads may be there from the beginning.
    Early,
    /// The property looks at memory, and stores may be pending.
    Pending,
}

/// Why a program that starts threads has no answer.
pub(crate) fn no_run(doubt: Doubt) -> Reason {
    let found = match doubt {
        Doubt::Early => {
            "threads are started while many stores may be pending; if they were there from the start, the program would not \
             be safe"
        }
        Doubt::Pending => {
            "threads are started while stores may be pending; the program would not be safe if the property also counted \
             while they are"
        }
    };
    Reason::Unsupported(format!(
        "{found}, and no bad run was found in which nothing is pending when threads are started"
    ))
}
