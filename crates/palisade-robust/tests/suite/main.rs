//! Robustness: one program for all tests, linked once.

mod any_number;
mod conformance;
mod lazy;
mod triangular;
