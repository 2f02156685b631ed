//! Tests of the machine, linked into one binary.

mod common;
mod litmus;
mod machine;
