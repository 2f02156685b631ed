//! Proofs that are accepted, and proofs that are rejected. One test binary, linked once.

mod certificates;
mod crowds;
mod fair;
mod forge;
mod hostile;
mod identities;
mod rules;
mod sc;
mod single;
mod stacks;
mod states;
