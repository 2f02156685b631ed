//! Minimal sets of fences that make a program correct, for any oracle that can judge a program.
//!
//! [`Places`] says where fences may go. [`find`] asks an [`Oracle`] about the program with some fences. It
//! turns every run that breaks the program into a [demand](demand()): one of these places needs a fence. It
//! then looks for minimal ways to meet all demands, and repeats this until they make the program correct.
//!
//! What is absent: engines and text. The oracle decides what "correct" means. It may mean that no run breaks
//! a property, or that every run is equivalent to a sequentially consistent one. The only requirement is that
//! a correct program stays correct when fences are added.

mod demand;
mod gaps;
mod hitting;
mod places;
mod reorder;
mod repeated;
mod search;

pub use demand::{Demand, Passing, demand, passings};
pub use gaps::BodyId;
pub use hitting::Cost;
pub use palisade_syntax::edit::{FenceAt, FenceKind, Side};
pub use places::{FencePlace, Fencing, Marks, Per, PlaceId, Placement, Places, Wanted};
pub use search::{End, Fence, FenceSet, Findings, Which, find};

use palisade_engine::{Limits, Stats, Verdict};
use palisade_memory::{Machine, State};
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_trace::{Run, replay, violating};

/// Decides whether a program is correct.
pub trait Oracle {
    /// The error a query can return.
    type Error;

    /// Judges a program. Among programs that differ only in their fences, one with more fences must not be
    /// judged more strictly.
    fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement, Self::Error>;

    /// The machine on which runs are executed.
    fn machine<'s>(&self, system: &'s System) -> Machine<'s>;

    /// What makes a program correct.
    fn goal(&self) -> Goal;
}

/// What fences are for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Goal {
    /// No run breaks a property.
    #[default]
    Safety,
    /// Every run is like a sequentially consistent one.
    Robustness,
}

impl Goal {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Safety => "safety",
            Goal::Robustness => "robustness",
        }
    }

    /// Whether a run of the machine shows that its program is not correct.
    fn is_missed_by(self, machine: Machine<'_>, run: &Run) -> bool {
        match self {
            Goal::Safety => replay(machine, run).is_ok(),
            Goal::Robustness => violating(machine, run).is_ok(),
        }
    }

    /// Whether this state alone, as the last state of a run, shows it. False if more of the run has to be
    /// known.
    fn is_missed_in(self, machine: Machine<'_>, state: &State) -> bool {
        self == Goal::Safety && machine.violation(state).is_some()
    }
}

/// The answer of an oracle about a program.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Whether the program is correct.
    pub verdict: Verdict,
    /// The engine that gave the verdict.
    pub engine: &'static str,
    /// The engine's statistics.
    pub stats: Stats,
}
