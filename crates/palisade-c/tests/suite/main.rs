//! Tests of the translation of C programs.

mod choices;
mod common;
mod errors;
mod finish;
mod objects;
mod programs;
mod values;
