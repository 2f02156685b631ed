//! Pushdown systems. One test binary, linked once.

mod conformance;
mod deep;
mod recursive;
mod spawning;
mod tso;
