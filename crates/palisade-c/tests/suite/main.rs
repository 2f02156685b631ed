//! Tests of the translation of C programs.

mod assembly;
mod bytes;
mod choices;
mod common;
mod errors;
mod finish;
mod intrinsics;
mod objects;
mod programs;
mod values;
mod versions;
