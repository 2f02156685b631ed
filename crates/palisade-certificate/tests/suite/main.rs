//! Proofs that convince, and such that do not: one program for all tests, linked once.

mod certificates;
mod crowds;
mod forge;
mod rules;
mod sc;
mod single;
mod stacks;
mod states;
