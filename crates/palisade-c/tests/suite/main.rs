//! Tests of the translation of C programs.

mod common;
mod errors;
mod finish;
mod objects;
mod programs;
mod values;
