//! Runs of the store-buffer machine, and the checker that trusts nobody.
//!
//! A [`Run`] says where a run starts and which steps it takes; [`replay`](fn@replay) takes these steps on the machine of `palisade-memory` and says
//! whether they are all possible and what is bad at the end. Engines hand back runs, whatever semantics they search.
//!
//! What is absent: no search, and no code of any engine.

mod replay;

pub use replay::{Replay, ReplayError, replay};

use palisade_memory::Step;
use palisade_program::Value;

/// A run: initial memory and steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// What memory holds at the start, by cell.
    pub memory: Vec<Value>,
    /// The steps in order.
    pub steps: Vec<Step>,
}
