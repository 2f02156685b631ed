//! From TSO to SC, program to program: what another tool checks under SC is what TSO does within a bound.

pub use palisade_bounded::{translate_age, translate_rounds};
