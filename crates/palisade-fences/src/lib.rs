//! Minimal sets of fences that make a program right, over anything that can judge a program.
//!
//! [`Places`] says where fences may go. [`find`] asks an [`Oracle`] about the program with some fences, turns every run that breaks it into a [demand](demand()) (one of these places needs a
//! fence), and looks for minimal ways to meet all demands, until these make the program right.
//!
//! What is absent: no engine, no text. What is right is up to the oracle: that no run breaks a property, or that no run is unlike those of sequential consistency. All that is
//! asked of it is that a program that is right stays so with more fences.

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
pub use places::{Fencing, Marks, Per, Place, PlaceId, Placement, Places, Wanted};
pub use search::{End, Fence, FenceSet, Findings, Which, find};

use palisade_engine::{Limits, Stats, Verdict};
use palisade_memory::{Machine, State};
use palisade_program::running::System;
use palisade_program::written::Program;
use palisade_trace::Run;

/// Who says whether a program is right.
pub trait Oracle {
    /// What can go wrong with asking.
    type Error;

    /// Judges a program. Programs that differ in their fences only must not be judged more strictly with more of them.
    fn judge(&self, program: &Program, limits: &Limits) -> Result<Judgement, Self::Error>;

    /// The machine that runs are taken on.
    fn machine<'s>(&self, system: &'s System) -> Machine<'s>;

    /// Whether a run that the machine takes shows that its program is not right.
    fn shows(&self, machine: Machine<'_>, run: &Run) -> bool;

    /// Whether a run shows it by its last state alone, and this is such a state. False if more of the run has to be known.
    fn is_bad(&self, machine: Machine<'_>, state: &State) -> bool;
}

/// What an oracle says about a program.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Whether the program is right.
    pub verdict: Verdict,
    /// The engine that gave it.
    pub engine: &'static str,
    /// What it counted.
    pub stats: Stats,
}
