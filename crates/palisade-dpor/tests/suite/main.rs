//! Searches, one execution per partial order: one program for all tests, linked once.

mod common;
mod counts;
mod executions;
