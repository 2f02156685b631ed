//! Minimal sets of fences that make a program correct, for any oracle that can judge a program.
//!
//! [`Places`] says where fences may go. [`find`] asks an [`Oracle`] about the program with some fences. It
//! turns every run that breaks the program into a [demand](demand()): one of these places needs a fence. It
//! then looks for minimal ways to meet all demands, and repeats this until they make the program correct.
//!
//! What is absent: engines and text. The oracle decides what "correct" means. It may mean that no run breaks
//! a property, or that every run is equivalent to a sequentially consistent one. The only requirement is that
//! a run that shows an error still shows it with other fences, as long as it is possible.
//!
//! What must stay possible meets this requirement as follows:
//! - *Deadlocks.* In a stuck state every thread waits, and waits contain no fences. So a run to a stuck state
//!   leads to a stuck state with any fences that do not forbid the run.
//! - *Goals.* Fences take runs away, so they may put a goal out of reach. A run counts only if the goal is out
//!   of reach of its last state without any fences. Then it is with all fences. If that is not the case, the
//!   set of fences is left undecided.
//! - *Runs that never end.* No thread stays in front of a fence forever, since its stores reach memory. So a
//!   fair run of the program with fences is a fair run of the program without them, and the other way round
//!   if every fence is passed when it has no effect. The machine checks both.

mod access;
mod demand;
mod gaps;
mod hitting;
mod places;
mod reorder;
mod repeated;
mod search;

pub use access::{AccessAt, Accessed, Change, Role, Stronger};
pub use demand::{Demand, Passing, demand, passings};
pub use gaps::{BodyId, GapId};
pub use hitting::Cost;
pub use palisade_syntax::edit::{FenceAt, FenceKind, Side};
pub use places::{FencePlace, Fencing, Marks, Per, PlaceId, Placement, Places, Wanted};
pub use search::{End, Fence, FenceSet, Findings, Which, find};

use palisade_engine::{Exhausted, Limits, Stats, Verdict};
use palisade_memory::{Machine, State};
use palisade_program::Instantiation;
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

    /// How many candidates can be judged ahead of time now. Other oracles can do that for this one.
    fn appetite(&self) -> usize {
        0
    }

    /// This candidate may be asked about soon.
    fn expect(&self, _places: &Places, _fencing: &Fencing) {}

    /// What [`Oracle::judge`] would answer about a candidate, if that was found out ahead of time.
    fn judged_before(&self, _places: &Places, _fencing: &Fencing, _limits: &Limits) -> Option<Judgement> {
        None
    }

    /// The machine on which runs are executed.
    fn machine<'s>(&self, system: &'s System) -> Machine<'s>;

    /// What makes a program correct.
    fn goal(&self) -> Goal;

    /// Whether a set of fences that makes the program correct can be used. This is asked about the cheapest set, and if
    /// the answer is no, about the next.
    fn accepts(&self, _places: &Places, _fencing: &Fencing, _limits: &Limits) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Whether a goal of the program, by its index, is out of reach of a state.
    fn is_out_of_reach(
        &self,
        _machine: Machine<'_>,
        _state: &State,
        _goal: usize,
        _limits: &Limits,
    ) -> Result<bool, Exhausted> {
        Ok(false)
    }
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

/// What the run of a wrong program shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Shown {
    /// That the [`Goal`] is missed.
    #[default]
    Missed,
    /// A deadlock. The program is lowered with retries.
    Deadlock,
    /// A state from which the goal of the program with this index is out of reach. The program is lowered with
    /// retries.
    OutOfReach(usize),
    /// A cycle that a fair scheduler can repeat forever. The program is lowered with retries.
    Forever,
}

impl Shown {
    /// Lowers a program for runs that show this.
    pub fn lower(self, program: &Program, instantiation: Instantiation) -> System {
        match self {
            Shown::Missed => palisade_program::lower(program, instantiation),
            Shown::Deadlock | Shown::OutOfReach(_) | Shown::Forever => {
                palisade_program::lower_retrying(program, instantiation)
            }
        }
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
    /// What the run of a violation shows.
    pub shown: Shown,
}
