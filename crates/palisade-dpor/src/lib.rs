//! Optimal dynamic partial-order reduction: runs a concurrent program once per partial order of its
//! sequentially consistent executions.
//!
//! A [`Subject`] is something whose processes can take steps one by one: a model of a program, or a real
//! program under a scheduler. [`explore`] drives it and passes every execution to the caller. Nothing here
//! knows what the steps do, except which memory they touch.
//!
//! - `footprint.rs`: what steps touch, and when two of them conflict;
//! - `wakeup.rs`: the trees of steps that are still to be tried;
//! - `explore.rs`: the search;
//! - `plan.rs`: what the search announces to a subject in advance;
//! - `executions.rs`: the search for programs that can only be run from their start: processes of the
//!   operating system, threads;
//! - `preemptions.rs`: all schedules of such a program with few preemptions.

mod executions;
mod explore;
mod footprint;
mod plan;
mod preemptions;
mod wakeup;

pub use executions::{
    Divergence, Executions, Foreseen, Label, Preference, Recording, Request, explore_executions,
};
pub use explore::{Ended, Execution, Limits, Next, Step, Subject, Summary, explore};
pub use footprint::{Footprint, Mode, Touch};
pub use plan::{Choice, Sleeper};
pub use preemptions::{PreemptionSummary, explore_preemptions};
