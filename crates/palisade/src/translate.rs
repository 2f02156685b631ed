//! Translates a program from TSO to SC. Another tool that checks the result under SC checks what the program
//! does under TSO within a bound.

pub use palisade_bounded::{translate_age, translate_rounds};
