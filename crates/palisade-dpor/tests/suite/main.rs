//! Searches with one execution per partial order. One test binary, linked once.

mod buffers;
mod common;
mod conditional;
mod counts;
mod executions;
