//! Searching running forms that no text was written for: engines that change a program ask others through this.

use crate::{Budget, Options, Progress, Reason, Stats};
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
    /// Searches within the budget, and adds to the counters.
    fn reach(
        &self,
        machine: Machine<'_>,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
        stats: &mut Stats,
    ) -> Reached;
}
