//! Runs of the store-buffer machine, and the checker that trusts nobody.
//!
//! A [`Run`] says where a run starts and which steps it takes; [`replay`](fn@replay) takes these steps on the
//! machine of `palisade-memory` and says whether they are all possible and what is bad at the end. Engines
//! hand back runs, whatever semantics they search.
//!
//! Around that: [`links`] says which step overtook which store, [`HappensBefore`] how the accesses of a run
//! are ordered, and its [`Cycle`] that no sequentially consistent run is like it, [`shorten`](fn@shorten)
//! makes runs easier to read, [`settle`](fn@settle) puts their stores to memory early,
//! [`undelayed`](fn@undelayed) runs under SC are runs with buffers, and [`WitnessFile`] is the form in which
//! a run is kept in a file and checked again later.
//!
//! What is absent: no search, and no code of any engine.

mod evidence;
mod happens;
mod names;
mod reorder;
mod replay;
mod settle;
mod shorten;
mod triangle;
mod undelayed;
mod witness_file;

pub use evidence::Evidence;
pub use happens::{
    Arrow, Cycle, Event, HappensBefore, NotViolating, Relation, Violating, until_cycle, violating,
};
pub use names::process_name;
pub use reorder::{Links, links};
pub use replay::{Replay, ReplayError, replay, take, until_bad};
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

/// A run: initial memory and steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// What memory holds at the start, by cell.
    pub memory: Vec<Value>,
    /// The steps in order.
    pub steps: Vec<Step>,
}
