//! Tests of the reader of LLVM IR, linked into one binary.

mod common;
mod constants;
mod debug;
mod errors;
mod external;
mod flow;
mod fuzz;
mod instructions;
mod modules;
