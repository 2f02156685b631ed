//! Explicit search. One test binary, linked once.

mod chains;
mod claims;
mod conformance;
mod counting;
mod coverage;
mod fair;
mod outcomes;
mod progress;
mod races;
mod shared;
mod shortest;
mod spawned;
mod states;
mod symmetry;
