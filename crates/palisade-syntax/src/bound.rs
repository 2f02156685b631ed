//! Names that are replaced by values while a text is parsed, so that they are not in the program.

use palisade_base::Span;

/// A name that is not in the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// What it names.
    pub kind: BoundKind,
    /// Where its name is declared.
    pub declared: Span,
    /// The whole quantifier or declaration.
    pub whole: Span,
    /// Where else its name is.
    pub uses: Vec<Span>,
}

/// What such a name is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundKind {
    /// The variable of a quantifier.
    Quantifier,
    /// A struct.
    Struct,
    /// A field of a struct.
    Field,
    /// A shared variable with parts.
    Shared,
    /// A private variable with parts.
    Private,
}
