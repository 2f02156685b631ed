//! What the search announces to a subject in advance: the steps it is going to take, and the processes whose
//! steps it does not need.

use crate::footprint::{Footprint, Party, StepId, conflict};
use std::sync::Arc;

/// A step, by its process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Choice {
    /// The process.
    pub process: usize,
    /// The index of its outcome; 0 for steps with one outcome.
    pub outcome: usize,
}

/// How an execution that the search is going to ask for begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How many steps of the current execution come first.
    pub from: usize,
    /// The steps after those.
    pub choices: Vec<Choice>,
    /// Processes that are asleep then.
    pub asleep: Vec<Sleeper>,
}

/// A process whose next step leads only to traces already seen, as long as no conflicting step is taken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sleeper {
    /// The process.
    pub process: usize,
    /// Its next step. The process wakes up when a step is taken that [conflicts](Sleeper::is_woken_by) with
    /// it.
    pub footprint: Arc<Footprint>,
}

impl Sleeper {
    /// Whether a step wakes the process up, where `taken` is the number of steps that a process has taken
    /// before.
    pub fn is_woken_by(&self, process: usize, footprint: &Footprint, taken: impl Fn(usize) -> usize) -> bool {
        let knows = |step: StepId| taken(step.process as usize) >= step.number as usize;
        self.process == process
            || conflict(
                Party { process: self.process, footprint: &self.footprint, knows },
                Party { process, footprint, knows },
            )
    }
}
