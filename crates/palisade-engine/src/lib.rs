//! The basis of all engines: the question, the analysis, the limits and the answer.
//!
//! An engine is a value that implements [`Engine`] for a kind of [`Question`].
//!
//! - Its input is an [`Analysis`]: a valid program on a machine, and what has been worked out about it.
//! - It works within [`Limits`], which also carry its reports.
//! - It answers with an [`Outcome`].
//!
//! An engine never prints, never panics on a valid program, and stops soon after its limits are reached.
//!
//! What is absent: front ends, text, and any particular engine.

mod analysis;
mod engine;
mod limits;
mod memory;
mod progress;
pub mod proof;
mod question;
mod race;
mod reach;
mod reason;
mod stats;
mod task;
mod verdict;

pub use analysis::{Analysis, Facts, IDENTITIES, ONLY_EXPLICIT_FINDS_RACES, Structure};
pub use engine::{Engine, Proofs, Suitability};
pub use limits::{Exhausted, Limits};
pub use memory::{Process, in_use as memory_in_use};
pub use palisade_automata::Coverage;
pub use palisade_base::limits::Pace;
pub use progress::{Note, Progress, Silent};
pub use proof::{Certified, Proof, ProofKind};
pub use question::{
    DeadlockFreedom, FairProgress, GoalsReachable, Question, Robustness, Safety, TriangularRaces,
};
pub use race::{Entered, Race};
pub use reach::{Reachability, Reached};
pub use reason::Reason;
pub use stats::{Stats, peak_memory_bytes};
pub use task::{Bound, Options, Reduction, Task, Threads, any_number_of_several};
pub use verdict::{Outcome, Verdict, Witness};
