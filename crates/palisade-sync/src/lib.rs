//! Atomics, fences, threads and locks with the interface of Rust's standard library. Tests that use them run
//! under many schedules, on a machine with store buffers.
//!
//! ```
//! use palisade_sync::sync::Arc;
//! use palisade_sync::sync::atomic::{AtomicBool, Ordering};
//! use palisade_sync::{Checker, Exhaustive, Machines, thread};
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
//! // On x86 both loads can overtake the stores. Without store buffers, no execution fails.
//! let outcome = Checker::new().strategy(Exhaustive).check(both(Ordering::Release));
//! assert_eq!(outcome.failed.unwrap().machines, Some(Machines::OnlyBuffered));
//! // With the strongest order they cannot. `palisade_sync::test` panics if something fails.
//! palisade_sync::test(both(Ordering::SeqCst));
//! ```
//!
//! - [`test`] and [`Checker`] run a closure under random schedules, by PCT, or once per partial order
//!   ([`Exhaustive`]), which is a proof for a test that terminates. Stores wait in buffers as under TSO (x86) or
//!   PSO ([`Checker::model`]).
//! - The closure has to use [`sync`], [`thread`] and [`hint`] instead of the standard library's modules.
//!   Outside a run they behave like the standard library's.
//! - [`Outcome`] reports panics, deadlocks and threads that never end, each with the schedule that leads there,
//!   and with the machines on which it is possible.
//! - [`Checker::robust`] asks whether store buffers can be noticed at all.
//!
//! Threads do not run in parallel during a run. What they do without the types of this crate is not seen.

mod checker;
mod confirm;
pub mod hint;
mod object;
mod outcome;
mod runtime;
pub mod sync;
mod tally;
pub mod thread;

pub use checker::Schedules::{Exhaustive, Pct, Random};
pub use checker::{Checker, Schedules};
pub use outcome::{Coverage, Failed, Failure, Machines, Outcome, Reordering, Unrepeated, ViolationReport};
pub use palisade_memory::{Interlocked, Model};
pub use runtime::schedule::{Schedule, Turn};
pub use runtime::session::CallSite;

/// Runs a test under 1000 random schedules, with the store buffers of TSO.
///
/// # Panics
/// If something fails, with the report. See [`Checker::run`].
#[track_caller]
pub fn test(code: impl Fn() + Send + Sync + 'static) {
    Checker::new().run(code);
}

/// The examples of the book.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust-tests.md")]
struct Book;
