//! The `.trencher` front end.

use crate::Parsed;
use palisade_base::{Diagnostic, Source, Span};

/// Reads a program.
pub(crate) fn parse(_source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    Err(vec![
        Diagnostic::error("unsupported-language", "`.trencher` files cannot be read yet")
            .at(Span::new(0..0), ""),
    ])
}
