//! Robustness: whether a memory model adds any behaviour to a program at all.
//!
//! A program is robust under a model if every run has a happens-before (program order, reads-from, coherence, from-read) that some sequentially consistent
//! run has too; see `palisade_trace::HappensBefore` for the definition. Reasoning about SC is then enough: a robust program that is safe under SC is safe.

use crate::{Budget, Progress, Reason, Stats, Suitability, Task, Witness};

/// What an engine says that leaves the question to others once it has [found](Budget::learn_robust) the program to be robust.
pub const ROBUST: &str = "robust; sequential consistency tells all";

/// What an engine found out about robustness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Robustness {
    /// Every run is like a sequentially consistent one.
    Robust,
    /// This run is not: its happens-before has a cycle. It need not be complete, and nothing needs to be bad about its end.
    NotRobust(Witness),
    /// Not known, and why.
    Unknown(Reason),
}

impl Robustness {
    /// `robust`, `not-robust` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Robustness::Robust => "robust",
            Robustness::NotRobust(_) => "not-robust",
            Robustness::Unknown(_) => "unknown",
        }
    }
}

/// An answer and what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RobustnessOutcome {
    /// The answer.
    pub answer: Robustness,
    /// The engine that gave it.
    pub engine: &'static str,
    /// What it counted.
    pub stats: Stats,
}

/// A procedure that decides robustness, or tries to. Properties of the program do not matter to it.
pub trait RobustnessEngine: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Whether it is worth trying on the task, and how sure it is to decide it. `auto` takes the first of the best.
    fn suits(&self, task: &Task<'_>) -> Suitability;

    /// Answers within the budget. Every `NotRobust` comes with a run of the machine of `task.model` whose happens-before has a cycle, whatever the engine searches.
    fn check(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> RobustnessOutcome;
}

/// What was found out about triangular races.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Races {
    /// There are none, so the program is robust under TSO.
    Free,
    /// This run under SC ends with one.
    Race(Witness),
    /// Not known, and why.
    Unknown(Reason),
}

impl Races {
    /// `race-free`, `racy` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Races::Free => "race-free",
            Races::Race(_) => "racy",
            Races::Unknown(_) => "unknown",
        }
    }
}

/// An answer about triangular races and what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RaceOutcome {
    /// The answer.
    pub answer: Races,
    /// What was counted.
    pub stats: Stats,
}
