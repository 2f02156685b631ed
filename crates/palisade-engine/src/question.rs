//! The questions that can be asked about a program.

use crate::Verdict;

/// A kind of question. The same [`Verdict`] answers all of them, in different words.
pub trait Question: Copy + PartialEq + Eq + std::fmt::Debug + Send + Sync + 'static {
    /// The word for [`Verdict::Holds`].
    const HOLDS: &'static str;
    /// The word for [`Verdict::Violated`].
    const VIOLATED: &'static str;

    /// The word for a verdict.
    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Holds => Self::HOLDS,
            Verdict::Violated(_) => Self::VIOLATED,
            Verdict::Unknown(_) => "unknown",
        }
    }
}

/// Can a run reach a bad state? The witness is a run of the task's memory model that does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Safety;

impl Question for Safety {
    const HOLDS: &'static str = "safe";
    const VIOLATED: &'static str = "unsafe";
}

/// In every reachable state, have all threads ended or can some thread still move? See
/// `palisade_memory::Machine::is_stuck` for the definition of a stuck state. The witness is a run to one.
///
/// Threads must be lowered with `Waits::Retry` ([`crate::Options::waits`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlockFreedom;

impl Question for DeadlockFreedom {
    const HOLDS: &'static str = "safe";
    const VIOLATED: &'static str = "unsafe";
}

/// Do all goals of the program (`live`) stay reachable from every reachable state without a fault? The
/// witness is a run to a state from which one of them is out of reach.
///
/// Threads must be lowered with `Waits::Retry` ([`crate::Options::waits`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GoalsReachable;

impl Question for GoalsReachable {
    const HOLDS: &'static str = "safe";
    const VIOLATED: &'static str = "unsafe";
}

/// Do all fair runs end (`terminates`), and does no process stay inside a labelled statement forever
/// (`leaves`)? `palisade_memory` defines fair runs. The witness is a run whose last steps are a cycle that a
/// fair scheduler can repeat forever, or after which nothing can move.
///
/// Threads must be lowered with `Waits::Retry` ([`crate::Options::waits`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairProgress;

impl Question for FairProgress {
    const HOLDS: &'static str = "safe";
    const VIOLATED: &'static str = "unsafe";
}

/// Does the memory model add any behaviour at all?
///
/// A program is robust under a model if every run has a happens-before relation (program order, reads-from,
/// coherence, from-read) that some sequentially consistent run has too. See `palisade_trace::HappensBefore`
/// for the definition. A robust program that is safe under SC is safe.
///
/// The witness is a run of the task's memory model whose happens-before relation has a cycle. The run need
/// not be complete, and its last state need not be bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Robustness;

impl Question for Robustness {
    const HOLDS: &'static str = "robust";
    const VIOLATED: &'static str = "not-robust";
}

/// Are there triangular races? A program without them is robust under TSO. The witness is a run under SC that
/// ends with one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TriangularRaces;

impl Question for TriangularRaces {
    const HOLDS: &'static str = "race-free";
    const VIOLATED: &'static str = "racy";
}
