//! Threads as automata.
//!
//! A step of a thread depends on the thread alone and, for reads of memory, on the one value read. So a
//! thread can be separated from the program and turned into an automaton whose letters are its accesses to
//! memory:
//!
//! - [`Local`] is a thread state. [`ThreadMachine`] takes its single steps on the trusted machine of
//!   `palisade-memory`.
//! - [`Observer`] defines what properties see of a thread.
//! - [`Automata`] are the explicit automata of all processes, [built](Automata::build) as a fixpoint of the
//!   values that cells can hold.
//! - [`run_on`] collapses local steps: a thread runs on to its next access to memory.
//! - [`on_demand`] is the thread automaton used by searches. Thread states have numbers, and moves are
//!   computed when they are first needed.
//!
//! - [`Pointers`] says which cells a pointer may point to, and which values registers and cells may hold;
//!   [`CellSets`] says whether accesses can conflict.
//!
//! What is absent: nothing here looks at two threads at once, and nothing here defines what a step does.

mod build;
mod cells;
mod collapse;
mod counters;
mod coverage;
mod delayed;
mod explicit;
mod local;
mod merge;
mod observe;
pub mod on_demand;
mod pointers;
mod refine;
mod stores;
mod varied;

pub use build::{MAX_DECLARED, MAX_STATES, MAX_VALUES, Trouble};
pub use cells::{CellSets, Cells};
pub use collapse::{MAX_CALLS, MAX_FRAMES, Runs, Schedule, Stop, run_on};
pub use coverage::Coverage;
pub use delayed::Starts;
pub use explicit::{Automata, Automaton, Edge, Letter, Population, StateId, ValueId};
pub use local::{After, Fences, Hold, Local, StepKind, Stuck, ThreadMachine};
pub use merge::Merged;
pub use observe::{Observer, View};
pub use pointers::Pointers;
pub use varied::most_varied_register;
