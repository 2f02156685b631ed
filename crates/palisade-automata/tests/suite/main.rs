//! Threads as automata.

mod merge;
mod on_demand;
mod pointers;
