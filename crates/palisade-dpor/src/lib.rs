//! Optimal dynamic partial-order reduction: runs a concurrent program once per partial order of its
//! executions. Store buffers are processes, so executions on machines with store buffers (TSO, PSO) are
//! covered as well as sequentially consistent ones.
//!
//! A [`Subject`] is something whose processes can take steps one by one: a model of a program, or a real
//! program under a scheduler. [`explore`] drives it and passes every execution to the caller. Nothing here
//! knows what the steps do, except which memory they touch and which steps they have to come after.
//!
//! - `footprint.rs`: what steps touch, and when two of them conflict;
//! - `history.rs`: the execution so far, and which of its steps happen before which;
//! - `wakeup.rs`: the trees of steps that are still to be tried;
//! - `node.rs`: the points of an execution at which something is to be tried;
//! - `subject.rs`, `explore.rs`: the search;
//! - `plan.rs`: what the search announces to a subject in advance;
//! - `recording.rs`, `executions.rs`: the search for programs that can only be run from their start:
//!   processes of the operating system, threads;
//! - `preemptions.rs`: all schedules of such a program with few preemptions and delayed stores.

mod executions;
mod explore;
mod footprint;
mod history;
mod node;
mod plan;
mod preemptions;
mod recording;
mod subject;
mod wakeup;

pub use executions::{Again, Executions, Preference, Request, explore_executions};
pub use explore::{Ended, Execution, Limits, Summary, explore};
pub use footprint::{Footprint, Mode, StepId, Touch, Writes};
pub use history::Step;
pub use plan::{Choice, Plan, Sleeper};
pub use preemptions::{PreemptionSummary, explore_preemptions};
pub use recording::{Divergence, Foreseen, Label, Recording};
pub use subject::{Next, Subject};
