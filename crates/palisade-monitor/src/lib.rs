//! Streaming monitors: they detect violations of sequential consistency under TSO and PSO on executions that
//! ran under sequential consistency.
//!
//! - [`Event`]s describe what an execution did to memory. [`Monitor`] takes them one by one and collects
//!   [`Violations`].
//! - [`TraceReader`] reads recorded executions; [`BinaryWriter`] and [`TextWriter`] write them.
//! - [`actions`] maps an atomic operation of C, C++ or Rust and its memory order to events.
//! - [`ByMonitors`] decides whether model programs are robust, by running all partial orders of their
//!   executions under the monitors.
//!
//! What is absent: no file is read here, and nothing decides how an execution is scheduled.

mod clocks;
mod event;
mod format;
mod model;
mod monitor;
mod ordering;
mod shadow;
mod violations;
mod words;

pub use event::{Access, Action, Bytes, Event, Instruction, LARGEST_ACCESS, MAX_PROCESSES, Process};
pub use format::{BinaryWriter, Ending, Instructions, TextWriter, TraceError, TraceReader};
pub use model::ByMonitors;
pub use monitor::Monitor;
pub use ordering::{Operation, actions, fenced_action};
pub use violations::{Seen, Violation, Violations};
pub use words::{NONE, WORD, Words};
