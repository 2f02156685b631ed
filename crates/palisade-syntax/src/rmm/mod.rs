//! The `.rmm` front end: Memorax's language.
//!
//! *Source.* The user manual of Memorax (Leonardsson), section "The RMM language", and the behaviour of its
//! parser where the manual is silent. `docs/rmm.md` is the reference of what is accepted and what it means
//! here.
//!
//! *How it works*: text → tokens ([`lexer`]) → tokens without macros ([`macros`]) → syntax tree ([`parser`])
//! → the written form ([`translate`]). Macros are expanded on tokens, because a macro can contain any part of
//! a file, even half a process. Every token records the macro call that it came from ([`token::Here`]), so
//! that a message can point at both.
//!
//! *Differences from Memorax*: mistakes are rejected instead of silently accepted (misspelt registers and
//! labels, a duplicate section, combinations that forbid nothing or everything, unfinished comments), and all
//! errors are reported at once.

mod assigned;
mod ast;
mod body;
mod expr;
mod forbidden;
mod lexer;
mod linear;
mod locals;
mod macros;
mod memory;
mod messages;
mod names;
mod parser;
mod registers;
mod statements;
mod stream;
mod token;
mod translate;

use crate::Parsed;
use messages::Messages;
use palisade_base::{Diagnostic, Source};
use palisade_program::written::Program;

/// Parses a program.
pub(crate) fn parse(source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let mut messages = Messages::default();
    let Some(tokens) = macros::expand(source.text(), &mut messages) else {
        return messages.finish(Program::default());
    };
    let file = parser::parse(source.text(), tokens, &mut messages);
    let program = translate::translate(&file, &mut messages);
    messages.finish(program)
}
