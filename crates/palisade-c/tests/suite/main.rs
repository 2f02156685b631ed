//! Tests of the translation of C programs.

mod assembly;
mod choices;
mod common;
mod errors;
mod finish;
mod objects;
mod programs;
mod values;
mod versions;
