//! Bounded translations. One test binary, linked once.

mod conformance;
mod exact;
mod faults;
mod table;
mod translation;
