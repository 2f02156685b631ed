//! Which steps runs take (`palisade check --coverage`, and warnings about what no run reaches).
//!
//! *Problem.* Which edges of the program's codes does some run take, which roles are started, and does some
//! run end?
//!
//! *Guarantee.*
//! - Every step reported is a step of some run.
//! - If nothing is [missing](Covered::missing), every step of every run is reported.
//!
//! *Why the reductions keep all steps*, as long as no thread causes a fault:
//! 1. *Persistent sets.* Let w be a run from a visited state. If a step of the chosen set occurs in w, the
//!    first such step can be taken first, and the rest of w is shorter. If none occurs, the set's steps are
//!    independent of w, and w is still possible after any of them. No thread is ignored forever, so a state
//!    that is expanded fully comes next, and there the first step of w is taken. So every step of w is taken
//!    in the search (Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", 1996).
//! 2. *Collapsed local steps* commute with the steps of others in the same way. All local steps are recorded,
//!    also those after which a thread is stuck and forgotten.
//! 3. *Symmetry* exchanges threads with the same role, which have the same code. Threads that differ in data
//!    ([`crate::symmetry`]) have codes of their own, with the same edges. The initial states are invariant, so what one
//!    of them does in some run, each of them does in some run: the steps of one are noted as steps of all.
//! 4. *Chains* take all steps of the states that are left out.
//!
//! Runs end where no step is possible, and the reductions keep these states; see [`crate::ends`].
//!
//! A fault ends the run, so it is dependent on every other step. If a fault is seen, the search is repeated
//! without reductions. Steps inside an atomic section that never ends are the only ones that may be reported
//! without being possible: those of a thread that was started in that section.

use crate::search::Goal;
use crate::{Check, Searches};
use palisade_automata::Coverage;
use palisade_engine::{Analysis, Limits, Options, Reason, Reduction, Stats, Verdict};

/// The steps of runs.
#[derive(Clone, Debug)]
pub struct Covered {
    /// The steps that were seen.
    pub coverage: Coverage,
    /// Why there may be more steps, or `None` if these are all.
    pub missing: Option<Reason>,
    /// Counters of the last search.
    pub stats: Stats,
}

/// Searches for the steps of runs until `enough` of them were seen.
pub fn coverage(
    analysis: &Analysis<'_>,
    enough: &(dyn Fn(&Coverage) -> bool + Sync),
    limits: &Limits,
) -> Result<Covered, Reason> {
    let system = limits.within(|| analysis.system(1)).map_err(Reason::Exhausted)?;
    let mut reduced = search(analysis, &analysis.task.options, Coverage::new(&system), enough, limits);
    if !reduced.fault_seen || enough(&reduced.covered.coverage) {
        return Ok(reduced.covered);
    }
    let options = Options { reduction: Reduction::None, ..analysis.task.options.clone() };
    reduced = search(analysis, &options, reduced.covered.coverage, enough, limits);
    Ok(reduced.covered)
}

struct Searched {
    covered: Covered,
    fault_seen: bool,
}

fn search(
    analysis: &Analysis<'_>,
    options: &Options,
    known: Coverage,
    enough: &(dyn Fn(&Coverage) -> bool + Sync),
    limits: &Limits,
) -> Searched {
    let searches = Searches {
        coverage: Some(known),
        enough: Some(enough),
        ..Searches::new(Goal::Steps, options, limits)
    };
    let mut check = Check { analysis, searches };
    let verdict = if analysis.task.is_parameterized() {
        check.any_number()
    } else {
        check.fixed(1, options.max_buffer)
    };
    let Searches { coverage, stats, fault_seen, .. } = check.searches;
    let missing = match verdict {
        Verdict::Unknown(reason) => Some(reason),
        Verdict::Holds | Verdict::Violated(_) => None,
    };
    let coverage = coverage.expect("the steps are wanted");
    Searched { covered: Covered { coverage, missing, stats }, fault_seen }
}
