//! The `.pal` front end: a hand-written lexer and recursive-descent parser.
//!
//! `docs/language.md` is the reference of the language. The parser knows the grammar and the constants. The
//! validator checks everything else about names, types and labels.
//!
//! *Guarantee*: parses in one pass and linear time. Recursion and size are limited ([`crate::limits`]). Every
//! error is reported, at most [`crate::limits::MAX_ERRORS`] of them individually.

mod aggregates;
mod constants;
mod enums;
mod expressions;
mod identities;
mod imports;
mod items;
mod lexer;
mod loops;
mod parser;
mod quantifiers;
mod slips;
mod statements;
#[cfg(test)]
mod tests;
mod token;
mod words;

pub use imports::{ImportedFile, find_imports};
pub(crate) use lexer::Lexer;
pub(crate) use token::{Sign, TokenKind, Word};

use crate::Parsed;
use palisade_base::{Diagnostic, Source};

/// Parses a program.
pub(crate) fn parse(source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let mut parser = parser::Parser::new(source);
    parser.constants.give(source.constants());
    parser.items();
    parser.check_given_constants();
    parser.check_observed();
    parser.finish_identities();
    let rejected = parser.report.has_errors();
    let diagnostics = parser.report.into_diagnostics();
    if rejected {
        return Err(diagnostics);
    }
    Ok(Parsed { program: parser.program, warnings: diagnostics, bound: parser.bound })
}
