//! Searches with one execution per partial order: one test binary, linked once.

mod common;
mod counts;
mod executions;
