//! Tests under many schedules: one program for all tests, linked once.

#[allow(dead_code, reason = "shared with the measurements")]
mod algorithms;
mod exhaustive;
mod failures;
mod literature;
