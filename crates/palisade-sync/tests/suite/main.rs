//! Tests under many schedules: one test binary, linked once.

#[allow(dead_code, reason = "shared with the measurements")]
mod algorithms;
mod attempts;
mod bugs;
mod exhaustive;
mod failures;
mod literature;
mod outcomes;

/// Tests that start other programs: `./test quick` skips them.
mod external {
    mod convention;
}
