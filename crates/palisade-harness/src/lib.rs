//! Runs C, C++ and Rust programs under a scheduler of its own and records what they do to memory.
//!
//! - [`log`]: what the runtime inside a program tells.

pub mod log;
