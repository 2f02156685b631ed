//! Atomics, fences, threads and locks with the interface of Rust's standard library. Tests that use them run
//! under many schedules, and are monitored for executions that machines with store buffers would break.
//!
//! ```
//! use palisade_sync::sync::Arc;
//! use palisade_sync::sync::atomic::{AtomicBool, Ordering};
//! use palisade_sync::thread;
//!
//! /// Two threads that each announce that they want to enter, and check whether the other one does.
//! fn both(order: Ordering) -> impl Fn() + Send + Sync + 'static {
//!     move || {
//!         let [a, b] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
//!         let (mine, theirs) = (b.clone(), a.clone());
//!         let other = thread::spawn(move || {
//!             mine.store(true, order);
//!             theirs.load(Ordering::Relaxed)
//!         });
//!         a.store(true, order);
//!         let seen = b.load(Ordering::Relaxed);
//!         assert!(seen || other.join().unwrap(), "both entered");
//!     }
//! }
//!
//! // Under sequential consistency one sees the other, and no schedule fails.
//! // On x86 both loads can overtake the stores:
//! let outcome = palisade_sync::Checker::new().check(both(Ordering::Release));
//! assert_eq!(outcome.violations.len(), 2);
//! // With the strongest order they cannot. `palisade_sync::test` panics if there is anything to report.
//! palisade_sync::test(both(Ordering::SeqCst));
//! ```
//!
//! - [`test`] and [`Checker`] run a closure under random schedules, by PCT, or once per partial order
//!   ([`Exhaustive`]), which is a proof for a test that terminates.
//! - The closure has to use [`sync`], [`thread`] and [`hint`] instead of the standard library's modules.
//!   Outside a run they behave like the standard library's.
//! - [`Outcome`] reports violations of sequential consistency by source line, panics, deadlocks
//!   and threads that never end, each with the schedule that leads there.
//!
//! Threads do not run in parallel during a run. What they do without the types of this crate is not seen.

mod checker;
pub mod hint;
mod object;
mod outcome;
mod runtime;
pub mod sync;
mod tally;
pub mod thread;

pub use checker::Schedules::{Exhaustive, Pct, Random};
pub use checker::{Checker, Schedules};
pub use outcome::{Coverage, Failed, Failure, Machines, Outcome, Reordering, ViolationReport};
pub use palisade_memory::{Interlocked, Model};
pub use runtime::schedule::{Schedule, Turn};
pub use runtime::session::CallSite;

/// Runs a test under 1000 random schedules, monitored for TSO.
///
/// # Panics
/// If there is anything to report, with the report. See [`Checker::run`].
#[track_caller]
pub fn test(code: impl Fn() + Send + Sync + 'static) {
    Checker::new().run(code);
}

/// The examples of the book.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust-tests.md")]
struct Book;
