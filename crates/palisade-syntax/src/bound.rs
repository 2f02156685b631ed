//! Names that are replaced by values while a text is parsed, so that they are not in the program.

use palisade_base::Span;

/// The variable of a quantifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Where its name is declared.
    pub declared: Span,
    /// The whole quantifier.
    pub whole: Span,
    /// Where else its name is.
    pub uses: Vec<Span>,
}
