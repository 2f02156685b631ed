//! Machine code that is lifted, compiled again and run does what it did before.

mod common;
mod processor;
mod programs;
mod wrong;
