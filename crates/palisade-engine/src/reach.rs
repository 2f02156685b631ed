//! Searching running forms that no text was written for: engines that change a program ask others through this.

use crate::{Limits, Options, Reason, Stats};
use palisade_memory::Machine;
use palisade_trace::Run;

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// A run to a bad state.
    Bad(Run),
    /// No run reaches one.
    Nothing,
    /// Not known, and why.
    Unknown(Reason),
}

/// A search for bad states of a running form. Exact under SC.
pub trait Reachability: Send + Sync {
    /// Searches within the limits, and adds to the counters.
    fn reach(&self, machine: Machine<'_>, options: &Options, limits: &Limits, stats: &mut Stats) -> Reached;
}
