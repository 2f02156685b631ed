//! Pushdown systems: one program for all tests, linked once.

mod conformance;
mod deep;
mod recursive;
mod spawning;
mod tso;
