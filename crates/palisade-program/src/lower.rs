//! .
use crate::{running::System, written::Program};
/// How many instances the templates get.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Instantiation {
    /// Instances of a template declared with any number, per combination of parameters.
    pub any: u32,
    /// If given, overrides every template's count (for templates that start initially).
    pub every: Option<u32>,
}
/// Lowers a valid program.
pub fn lower(_program: &Program, _instantiation: Instantiation) -> System { unimplemented!() }
