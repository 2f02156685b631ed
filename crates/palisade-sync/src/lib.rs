//! Atomics, fences, threads and locks with the interface of Rust's standard library, for tests that run under many schedules and are monitored for what machines with store buffers would break.
//!
//! ```
//! use palisade_sync::sync::Arc;
//! use palisade_sync::sync::atomic::{AtomicBool, Ordering};
//! use palisade_sync::thread;
//!
//! /// Two threads that each say that they want to go in, and look whether the other does.
//! fn both(order: Ordering) -> impl Fn() + Send + Sync + 'static {
//!     move || {
//!         let [a, b] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
//!         let other = { let (a, b) = (a.clone(), b.clone()); thread::spawn(move || { b.store(true, order); a.load(Ordering::Relaxed) }) };
//!         a.store(true, order);
//!         let seen = b.load(Ordering::Relaxed);
//!         assert!(seen || other.join().unwrap(), "both went in");
//!     }
//! }
//!
//! // Under sequential consistency one sees the other, and no schedule fails. On x86 both loads can overtake the stores:
//! let outcome = palisade_sync::Checker::new().check(both(Ordering::Release));
//! assert_eq!(outcome.violations.len(), 2);
//! // Not so with the strongest order. `palisade_sync::test` panics if there is anything to report.
//! palisade_sync::test(both(Ordering::SeqCst));
//! ```
//!
//! - [`test`] and [`Checker`] run a closure under random schedules, by PCT, or once per partial order ([`Exhaustive`]), which for a test that ends is a proof.
//! - [`sync`], [`thread`] and [`hint`] are what the closure has to use instead of the standard library's. Outside of a run they are the standard library's.
//! - [`Outcome`] tells violations of sequential consistency by the lines of the source, panics, deadlocks, endless loops and threads that are left over, each with the schedule that leads there.
//!
//! What is absent: nothing runs in parallel during a run; what threads do without the types of this crate is not seen.

mod checker;
pub mod hint;
mod object;
mod outcome;
mod runtime;
pub mod sync;
pub mod thread;

pub use checker::Schedules::{Exhaustive, Pct, Random};
pub use checker::{Checker, Schedules};
pub use outcome::{Coverage, Failed, Failure, Found, Outcome};
pub use palisade_memory::{Interlocked, Model};
pub use runtime::schedule::Schedule;
pub use runtime::session::Place;

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
