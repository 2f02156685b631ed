//! Explicit search: one program for all tests, linked once.

mod chains;
mod claims;
mod conformance;
mod counting;
mod spawned;
mod states;
