//! Robustness. One test binary, linked once.

mod any_number;
mod conformance;
mod lazy;
mod spawning;
mod triangular;
