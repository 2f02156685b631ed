//! Exact engines by backward search over well-quasi-orders.
//!
//! - [`Dual`]: load buffers; TSO and SC, for fixed and for any numbers of threads.
//! - [`Single`]: a single buffer with pointers; TSO, PSO and SC, for fixed and for any numbers of threads.
//!
//! # Tests
//! `cargo test -p palisade-cover` compares every engine with brute force on a hundred random programs of each profile (straight lines and branches; all of
//! the language without loops; with loops; everything) and on 150 for any number of threads. One command does it on 5,000 of each, which are 10,000 acyclic ones,
//! 10,000 cyclic ones and 5,000 for any number of threads.
//!
//! ```text
//! PALISADE_SEEDS=5000 cargo test --release -p palisade-cover -- --nocapture
//! ```
//!
//! `tests/suite/dense.rs` does the same on litmus tests with reads of own stores, fences and locked instructions in between.
//!
//! It prints how many answers there were of each kind, and in how many cases brute force was conclusive. `PALISADE_SEED=7` tries one seed.
//!
//! What is absent: text, and any step of the store-buffer machine. Runs found here are replayed there.

mod bad;
mod dual;
mod single;
mod start;
mod symbol;
mod timeline;

pub use dual::Dual;
pub use single::Single;
