//! The machine: one program for all tests, linked once.

mod common;
mod litmus;
mod machine;
