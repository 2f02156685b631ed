//! Machine code that is lifted, compiled again and run does what it did before.

mod assembler;
mod common;
mod processor;
mod programs;
mod wrong;
