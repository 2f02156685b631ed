//! Runs of the store-buffer machine, and the checker that trusts no engine.
//!
//! A [`Run`] has an initial memory and a list of steps. [`replay`](fn@replay) executes these steps on the
//! machine of `palisade-memory`. It checks that each step is possible and that the last state is bad. Every
//! engine returns runs of this form, whatever semantics it searches.
//!
//! The other parts work on runs:
//! - [`replay_lasso`] checks runs that end with a cycle which a fair scheduler can repeat forever.
//! - [`links`] finds which step overtook which store.
//! - [`HappensBefore`] orders the accesses of a run. A [`Cycle`] in it shows that no sequentially consistent
//!   run has the same order.
//! - [`shorten`](fn@shorten) makes runs easier to read.
//! - [`settle`](fn@settle) moves the updates of a run as early as possible.
//! - [`undelayed`](fn@undelayed) turns a run under SC into a run with store buffers.
//! - [`WitnessFile`] stores a run in a file so that it can be checked again later.
//!
//! What is absent: no search, and no code of any engine.

mod addresses;
mod build_record;
mod evidence;
mod happens;
mod lasso;
mod names;
mod reorder;
mod replay;
mod settle;
mod shorten;
mod triangle;
mod undelayed;
mod witness_file;

pub use addresses::{Addresses, Awaited, BadAccess, Ended};
pub use build_record::{BuildRecord, FunctionsRecord};
pub use evidence::Evidence;
pub use happens::{
    Arrow, Cycle, Event, HappensBefore, NotViolating, Relation, Violating, until_cycle, violating,
};
pub use lasso::{replay_lasso, replay_lasso_from};
pub use names::{next_span, pending_in_race, process_name};
pub use reorder::{Links, links};
pub use replay::{Replay, ReplayError, replay, replay_to_deadlock, take, until_bad};
pub use settle::{Priority, settle, transfer};
pub use shorten::{context_switches, shorten};
pub use triangle::{NoTriangle, Triangle, triangle};
pub use undelayed::undelayed;
pub use witness_file::{
    ActionRecord, EffectRecord, Instances, Medium, Origin, ProgramRecord, SCHEMA_VERSION, StepRecord,
    ViolationKind, ViolationRecord, WitnessError, WitnessFile, text_hash,
};

use palisade_memory::Step;
use palisade_program::Value;

/// A run: the initial memory and the steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// The initial value of each cell.
    pub memory: Vec<Value>,
    /// The steps in order.
    pub steps: Vec<Step>,
}
