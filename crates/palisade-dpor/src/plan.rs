//! What the search tells a subject ahead of time: the steps it is going to take, and whose steps it is not interested in.

use crate::footprint::Footprint;

/// A step, by who takes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Choice {
    /// Whose.
    pub process: usize,
    /// Which of its outcomes; 0 for steps with one outcome.
    pub outcome: usize,
}

/// A process whose next step leads only to traces already seen, as long as no conflicting step is taken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sleeper {
    /// The process.
    pub process: usize,
    /// Its next step. The process wakes up when a step is taken that [conflicts](Footprint::conflicts) with it.
    pub footprint: Footprint,
}
