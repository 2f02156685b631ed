//! Programs and what lowering makes of them: one program for all tests, linked once.

mod common;
mod differential;
mod drawing;
mod lowering;
mod meaning;
mod validation;
