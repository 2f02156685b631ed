//! .
use crate::written::Program;
use palisade_base::Diagnostic;
/// Everything wrong with a program.
pub fn validate(_program: &Program) -> Vec<Diagnostic> { Vec::new() }
