//! Tests of programs and their lowering, linked into one binary.

mod common;
mod differential;
mod drawing;
mod lowering;
mod meaning;
mod outline;
mod validation;
