//! Functions of Rust's library that are not compiled with the program: the allocator, panics and printing.
//!
//! Functions are known by their demangled path. A call of any other function of `core` or `alloc` that is not followed
//! by anything (`unreachable`) is a panic: such functions differ in what they print.

use crate::expr::Expr;
use crate::flat::{End, StepKind};
use crate::inline::{Generator, Refused};
use palisade_llvm::instructions::{Instruction, Op};
use palisade_llvm::values::Operand;
use palisade_program::written::Check;

/// The path of a function of Rust, without the hash. `None` if the name is not one of Rust.
pub(crate) fn path(name: &str) -> Option<String> {
    rustc_demangle::try_demangle(name).ok().map(|path| format!("{path:#}"))
}

/// The name of a function as the source has it.
pub(crate) fn readable(name: &str) -> String {
    path(name).unwrap_or_else(|| name.to_owned())
}

/// What a thread is called that runs a function. Threads of Rust run a function that is generic over the closure, as in
/// `std::thread::start::<lock::main::{closure#0}, ()>`: this is `main.closure0`.
pub(crate) fn thread_name(function: &str) -> String {
    let Some(path) = path(function) else { return function.to_owned() };
    let argument = path.split_once("::<").map_or(path.as_str(), |(_, arguments)| first_argument(arguments));
    let (_, inside) = argument.split_once("::").unwrap_or(("", argument));
    let kept = inside.replace("::", ".");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).collect()
}

/// The first of several arguments of a generic function.
fn first_argument(arguments: &str) -> &str {
    let mut depth = 0;
    for (at, c) in arguments.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            ',' if depth == 0 => return &arguments[..at],
            '>' | ')' | ']' if depth == 0 => return &arguments[..at],
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
    }
    arguments
}

impl<'a> Generator<'a, '_> {
    /// `None` if the name is not one of Rust.
    pub(super) fn rust_function(
        &mut self,
        instruction: &'a Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Option<Expr>>, Refused> {
        let Some(path) = path(name) else { return Ok(None) };
        let last = path.rsplit("::").next().unwrap_or(&path);
        match last {
            "__rust_alloc" => {
                let size = self.operand(operands, 0)?;
                Ok(Some(Some(self.allocate(instruction, size, false))))
            }
            "__rust_alloc_zeroed" => {
                let size = self.operand(operands, 0)?;
                Ok(Some(Some(self.allocate(instruction, size, true))))
            }
            "__rust_dealloc" => {
                let pointer = self.operand(operands, 0)?;
                self.step(StepKind::Free { pointer, lists: Vec::new() });
                Ok(Some(None))
            }
            "__rust_realloc" => {
                let (old, size) = (self.operand(operands, 0)?, self.operand(operands, 3)?);
                let kept = self.operand(operands, 1)?;
                let new = self.allocate(instruction, size, false);
                self.step(StepKind::Copy { from: old.clone(), to: new.clone(), size: kept });
                self.step(StepKind::Free { pointer: old, lists: Vec::new() });
                Ok(Some(Some(new)))
            }
            _ if last.starts_with("__rust_no_alloc_shim") => Ok(Some(None)),
            "_print" | "_eprint" => Ok(Some(None)),
            "exit" if path == "std::process::exit" => {
                self.program_ends(false);
                self.end(End::Over);
                Err(Refused)
            }
            "abort" if path == "std::process::abort" => {
                self.step(StepKind::Assert(Expr::Int(0), Check::NoAbort));
                self.end(End::Stop);
                Err(Refused)
            }
            _ if panics(&path) && self.never_returns(instruction) => {
                self.step(StepKind::Assert(Expr::Int(0), panic_check(&path)));
                self.end(End::Stop);
                Err(Refused)
            }
            _ => Err(self.refuse(format!("the precompiled function `{path}`"))),
        }
    }

    /// Whether nothing follows a call.
    fn never_returns(&self, call: &Instruction) -> bool {
        self.body().blocks.iter().any(|block| {
            let at = block.instructions.iter().position(|other| std::ptr::eq(other, call));
            let next = at.and_then(|at| block.instructions.get(at + 1));
            next.is_some_and(|next| matches!(next.op, Op::Unreachable))
        })
    }
}

/// Whether a function that does not return panics, by its path.
fn panics(path: &str) -> bool {
    let path = path.trim_start_matches('<');
    ["core::", "alloc::", "std::panicking::", "std::rt::"].iter().any(|start| path.starts_with(start))
}

/// What a panic is about.
fn panic_check(path: &str) -> Check {
    if path.ends_with("::panic_bounds_check") { Check::Index } else { Check::NoPanic }
}
