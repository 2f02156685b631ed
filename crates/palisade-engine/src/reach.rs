//! Searching running forms that no source text exists for. Engines that transform a program use this to ask
//! other engines.

use crate::{Limits, Options, Reason, Stats};
use palisade_memory::Machine;
use palisade_trace::Run;

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reached {
    /// A run to a bad state.
    Bad(Run),
    /// No run reaches a bad state.
    Nothing,
    /// Not known, and the reason.
    Unknown(Reason),
}

/// A search for bad states of a running form. Exact under SC.
pub trait Reachability: Send + Sync {
    /// Searches within the limits, and adds to the counters.
    fn reach(&self, machine: Machine<'_>, options: &Options, limits: &Limits, stats: &mut Stats) -> Reached;
}
