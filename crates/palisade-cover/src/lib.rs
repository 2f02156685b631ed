//! Exact engines by backward search over well-quasi-orders.
//!
//! - [`Dual`]: load buffers. TSO and SC, with a fixed or an unbounded number of threads.
//! - [`Sb`]: a single buffer with pointers. TSO, PSO and SC, with a fixed or an unbounded number of
//!   threads.
//!
//! # Tests
//! `cargo test -p palisade-cover` compares every engine with brute force:
//! - on 100 random programs of each profile (straight lines and branches; all of the language without loops;
//!   with loops; everything);
//! - on 150 random programs with any number of threads.
//!
//! One command does the same on 5,000 programs of each. That makes 10,000 acyclic programs, 10,000 cyclic
//! ones and 5,000 with any number of threads.
//!
//! ```text
//! PALISADE_SEEDS=5000 cargo test --release -p palisade-cover -- --nocapture
//! ```
//!
//! `tests/suite/dense.rs` does the same on litmus tests that also contain reads of own stores, fences and
//! locked instructions.
//!
//! The command prints how many answers of each kind there were, and in how many cases brute force was
//! conclusive. `PALISADE_SEED=7` runs a single seed.
//!
//! What is absent: text, and any step of the store-buffer machine. Runs found here are replayed on that
//! machine.

mod bad;
mod chain;
mod dual;
mod edges;
mod facts;
mod identities;
mod sb;
mod small;
mod spawns;
mod start;
mod symbol;
mod timeline;
mod values;

pub use dual::{Dual, SharedSearch, shared_search};
pub use palisade_wqo::{Owners, Shares, Sharing};
pub use sb::Sb;
