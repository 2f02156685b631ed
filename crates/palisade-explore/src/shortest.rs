//! A shortest run to a bad state (`palisade check --shortest`).
//!
//! *Problem.* The fewest steps of the machine from an initial state to a bad one. Every instruction is a
//! step, local ones too, and every store that reaches memory.
//!
//! *How.* Breadth-first search without reductions: each step of the search is one step of the machine. The
//! search finds a bad state of least depth.
//!
//! *Guarantee.* A run that is [`Shortest::Known`] is a shortest one. The search has bounds, and a run shorter
//! than the one found could only break them in the following ways, all of which are ruled out:
//! - A run with fewer than n steps never has n stores in a buffer. So if buffers are bounded and a run with n
//!   steps is found, the search is repeated with buffers up to n.
//! - It never has n unfinished calls, and never starts n threads. So the bounds on these matter only for runs
//!   that are longer than the bounds.

use crate::search::Goal;
use crate::{Bounded, MAX_SPAWNED, Searches, pump};
use palisade_automata::MAX_CALLS;
use palisade_engine::{Limits, Options, Reason, Reduction};
use palisade_memory::Machine;
use palisade_program::running::{Liveness, Structure};
use palisade_trace::Run;
use std::sync::Arc;

/// The answer of a search for a shortest run.
#[derive(Clone, Debug)]
pub enum Shortest {
    /// A shortest run.
    Known(Run),
    /// A run, and why there may be a shorter one.
    Perhaps(Run, Reason),
    /// No state is bad.
    Nothing,
    /// No run was found.
    Unknown(Reason),
}

/// Searches for a shortest run to a bad state.
pub fn shortest(machine: Machine<'_>, options: &Options, limits: &Limits) -> Shortest {
    let liveness = match limits.within(|| Arc::new(Liveness::new(machine.system))) {
        Ok(liveness) => liveness,
        Err(what) => return Shortest::Unknown(Reason::Exhausted(what)),
    };
    let options = Options { reduction: Reduction::None, ..options.clone() };
    let mut searches = Searches::new(Goal::Bad, &options, limits);
    let limit = options.max_buffer.max(1);
    let mut bound = if pump::can_pump(machine) { 1 } else { usize::MAX };
    let mut found: Option<Run> = None;
    loop {
        match (searches.bounded(machine, &liveness, bound), found.take()) {
            (Bounded::Bad(run), _) if run.steps.len() <= bound => return known(machine, run),
            (Bounded::Bad(run), _) => {
                bound = run.steps.len();
                found = Some(run);
            }
            (Bounded::Open | Bounded::Enough, _) => unreachable!("bad states are looked for"),
            (Bounded::Unknown(reason), Some(run)) => return Shortest::Perhaps(run, reason),
            (Bounded::Unknown(reason), None) => return Shortest::Unknown(reason),
            (Bounded::Clean(_), Some(_)) => panic!("a run with short buffers is one with longer buffers"),
            (Bounded::Clean(cuts), None) => match cuts.reason(bound) {
                None => return Shortest::Nothing,
                Some(reason) if !cuts.buffers || bound >= limit => return Shortest::Unknown(reason),
                Some(_) => bound = (bound * 2).min(limit),
            },
        }
    }
}

/// A run that is shortest within the bounds on calls and started threads.
fn known(machine: Machine<'_>, run: Run) -> Shortest {
    let structure = Structure::new(machine.system);
    let steps = run.steps.len();
    if steps > MAX_CALLS && structure.is_recursive {
        Shortest::Perhaps(run, Reason::CallDepth(MAX_CALLS))
    } else if steps > MAX_SPAWNED && structure.spawns {
        Shortest::Perhaps(run, Reason::Spawned(MAX_SPAWNED))
    } else {
        Shortest::Known(run)
    }
}
