//! Backward search. One test binary, linked once.

mod choices;
mod conformance;
mod counts;
mod dense;
mod identities;
mod large;
mod parameterized;
mod pso;
mod rewrites;
mod sections;
mod single;
mod spawning;
