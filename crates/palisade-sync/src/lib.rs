//! Atomics, threads and locks with the interface of the standard library, run under many schedules and monitored.
