//! LLVM IR as text, read without LLVM.
//!
//! [`read`] turns the text that `clang -S -emit-llvm` and `rustc --emit=llvm-ir` write into a typed
//! [`Module`]. It understands LLVM 14 to 22, with pointers that have a pointee (`i32*`) or none (`ptr`), with
//! debug information as calls (`llvm.dbg.declare`) or records (`#dbg_declare`), and the text of current
//! rustc.
//!
//! What only annotates is skipped: unknown attributes, metadata, promises about floats. What decides what the
//! program does is kept: orderings, scopes, `volatile`, alignment, `byval`, inline assembly. What is neither
//! known to annotate nor understood is rejected, with its name and its line: an unknown instruction, type,
//! linkage, ordering or scope.
//!
//! What is absent: nothing here knows about memory models, runs anything, reads files or prints.
//! Floating-point and vector instructions, address spaces and exception handling are represented, not
//! interpreted: the user of the module must reject what they cannot handle.
//!
//! *Guarantee*: no input causes a panic or overflows the stack. In a module that is returned, operands have
//! the types that their instructions need, every name that is used is defined, values are defined on all paths
//! to their uses, and every block ends with its only terminator.

pub mod calls;
pub mod debug;
mod display;
pub mod flow;
pub mod instructions;
pub mod layout;
mod lexer;
pub mod limits;
pub mod module;
mod parser;
mod token;
pub mod types;
pub mod values;
mod visit;

pub use module::Module;

/// The machine that a module names if it was made from machine code, and not by a compiler.
pub const MACHINE_CODE: &str = "x86_64-machine-code";

use palisade_base::{Diagnostic, Source, Span};

/// Reads a module.
///
/// On failure the diagnostics are in the order of the text. At most [`limits::MAX_ERRORS`] are returned; the
/// rest are only counted.
pub fn read(source: &Source) -> Result<Module, Vec<Diagnostic>> {
    let text = source.text();
    if text.len() >= limits::MAX_BYTES {
        let message = format!("the text is larger than {} MB", limits::MAX_BYTES / 1_000_000);
        return Err(vec![Diagnostic::error("too-large", message).at(Span::new(0..0), "")]);
    }
    // The first bytes of bitcode are `BC` and two bytes that are not UTF-8.
    if text.starts_with("BC\u{fffd}") || text.starts_with("BC\u{c0}\u{de}") {
        let error = Diagnostic::error("ir-bitcode", "this is LLVM bitcode, not text").at(Span::new(0..2), "");
        return Err(vec![error.help("turn it into text with `llvm-dis`, or compile with `-S -emit-llvm`")]);
    }
    parser::parse(source)
}
