//! Functions that no translation unit defines: the C library, the thread library, and those of verifiers.
//!
//! Unknown functions are refused by name.

mod condition;
mod format;
mod heap;
mod intrinsics;
mod kernel;
mod memory;
mod mutex;
mod park;
mod print;
pub(crate) mod rust;
mod rwlock;
mod semaphore;
pub(crate) mod strings;
mod threads;
pub(crate) use mutex::{CHECKING, OWNER, RECURSIVE};
pub(crate) use threads::{MAX_CHILDREN, first_child};
mod verifier;

use crate::Language;
use crate::expr::Expr;
use crate::flat::{End, StepKind};
use crate::inline::{Generator, Refused};
use crate::memory::Val;
use palisade_llvm::instructions::Instruction;
use palisade_llvm::values::Operand;
use palisade_program::written::Check;

/// Functions that mean what they are for even where a translation unit defines them.
pub(crate) fn replaces(name: &str) -> bool {
    matches!(name, "__VERIFIER_assume" | "assume_abort_if_not") || name.starts_with("__VERIFIER_atomic")
}

/// What `llvm.ubsantrap` is given where an index is outside an array, and where a shift loses bits.
const OUTSIDE: i64 = 18;
const SHIFTED_OUT: i64 = 20;

/// Functions that only wait for a while or give hints.
const NOTHING: &[&str] = &[
    "sched_yield",
    "pthread_yield",
    "thrd_yield",
    "usleep",
    "sleep",
    "srand",
    "pthread_condattr_init",
    "pthread_condattr_destroy",
    "pthread_mutexattr_destroy",
    "pthread_setconcurrency",
    "llvm.dbg.declare",
    "llvm.dbg.value",
    "llvm.dbg.label",
    "llvm.dbg.assign",
    "llvm.prefetch.p0",
    "llvm.prefetch.p0i8",
    "llvm.x86.sse2.pause",
    "llvm.x86.sse2.lfence",
    "llvm.stacksave",
    "llvm.stacksave.p0",
    "llvm.stackrestore",
    "llvm.stackrestore.p0",
    "llvm.donothing",
    "llvm.experimental.noalias.scope.decl",
    "llvm.sideeffect",
];

/// Functions whose name begins like this stand for what cannot be followed in machine code: the rest of the name.
const REFUSED: &str = "palisade.refuse ";

/// Functions whose name begins like this stand for what is taken for granted of machine code: the rest of the name.
const ASSUMED: &str = "palisade.assume ";

/// A function that stands for a place of machine code that is not followed, if a run really gets there.
const NOT_FOLLOWED: &str = "palisade.not_followed";

impl<'a> Generator<'a, '_> {
    /// A call of a function that is not defined.
    pub(crate) fn library(
        &mut self,
        instruction: &'a Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<(), Refused> {
        if let Some(value) = self.intrinsic(name, operands)? {
            instruction.result.into_iter().for_each(|result| self.set(result, value.clone()));
            return Ok(());
        }
        let value = if NOTHING.contains(&name) {
            Some(Expr::Int(0))
        } else if self.lifetime(name, operands)?.is_some() {
            None
        } else {
            self.library_value(instruction, name, operands)?
        };
        if let Some(result) = instruction.result {
            let value = value.map_or(Val::Undefined, Val::Scalar);
            self.set(result, value);
        }
        Ok(())
    }

    fn library_value(
        &mut self,
        instruction: &'a Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Expr>, Refused> {
        if let Some(what) = name.strip_prefix(REFUSED).filter(|_| self.context.language == Language::Machine)
        {
            return Err(self.refuse(what));
        }
        if let Some(what) = name.strip_prefix(ASSUMED).filter(|_| self.context.language == Language::Machine)
        {
            self.context.notes.insert(crate::Note(what.to_owned()));
            return Ok(None);
        }
        if name == NOT_FOLLOWED && self.context.language == Language::Machine {
            self.step(StepKind::Assert(Expr::Int(0), Check::Value));
            self.end(End::Stop);
            return Err(Refused);
        }
        match name {
            "__assert_fail" | "__assert" | "__assert_rtn" | "__VERIFIER_error" | "reach_error" => {
                self.step(StepKind::Assert(Expr::Int(0), Check::Assertion));
                self.end(End::Stop);
                Err(Refused)
            }
            "abort" | "llvm.trap" | "llvm.debugtrap" | "__stack_chk_fail" => {
                self.step(StepKind::Assert(Expr::Int(0), Check::NoAbort));
                self.end(End::Stop);
                Err(Refused)
            }
            "llvm.ubsantrap" => {
                // The compiler was asked to check indices of arrays, or that signed numbers keep their bits when they
                // are shifted.
                let check = match self.operand(operands, 0)? {
                    Expr::Int(OUTSIDE) => Check::Index,
                    Expr::Int(SHIFTED_OUT) => Check::Overflow,
                    _ => Check::NoAbort,
                };
                self.step(StepKind::Assert(Expr::Int(0), check));
                self.end(End::Stop);
                Err(Refused)
            }
            "exit" | "_exit" | "_Exit" | "quick_exit" => {
                self.program_ends(false);
                self.end(End::Over);
                Err(Refused)
            }
            "llvm.x86.sse2.mfence" => {
                self.step(StepKind::Fence);
                Ok(None)
            }
            "llvm.x86.sse.sfence" => {
                self.step(StepKind::StoreFence);
                Ok(None)
            }
            "llvm.threadlocal.address.p0"
            | "llvm.threadlocal.address"
            | "llvm.launder.invariant.group.p0"
            | "llvm.strip.invariant.group.p0"
            | "llvm.ptr.annotation.p0" => self.operand(operands, 0).map(Some),
            "llvm.expect.i64"
            | "llvm.expect.i32"
            | "llvm.expect.i1"
            | "llvm.expect.i16"
            | "llvm.expect.i8"
            | "llvm.expect.with.probability.i64" => self.operand(operands, 0).map(Some),
            "llvm.is.constant.i32" | "llvm.is.constant.i64" => Ok(Some(Expr::Int(0))),
            "llvm.assume" => {
                let condition = self.operand(operands, 0)?;
                self.step(StepKind::Assert(condition, Check::Unreachable));
                Ok(None)
            }
            _ => {
                if self.context.language != Language::C
                    && let Some(value) = self.rust_function(instruction, name, operands)?
                {
                    return Ok(value);
                }
                if let Some(value) = self.verifier(instruction, name, operands)? {
                    return Ok(value);
                }
                if let Some(value) = self.print_function(instruction, name, operands)? {
                    return Ok(value);
                }
                if let Some(value) = self.kernel_function(instruction, name, operands)? {
                    return Ok(value);
                }
                if let Some(value) = self.memory_function(instruction, name, operands)? {
                    return Ok(value);
                }
                if let Some(value) = self.heap_function(instruction, name, operands)? {
                    return Ok(value);
                }
                if let Some(value) = self.mutex_function(name, operands)? {
                    return Ok(Some(value));
                }
                if let Some(value) = self.condition_function(name, operands)? {
                    return Ok(Some(value));
                }
                if let Some(value) = self.semaphore_function(name, operands)? {
                    return Ok(Some(value));
                }
                if let Some(value) = self.park_function(name, operands)? {
                    return Ok(Some(value));
                }
                if let Some(value) = self.thread_function(instruction, name, operands)? {
                    return Ok(Some(value));
                }
                Err(self.refuse(format!("the function `{name}`")))
            }
        }
    }

    /// The value of an argument.
    pub(crate) fn operand(&mut self, operands: &[Operand], index: usize) -> Result<Expr, Refused> {
        match operands.get(index) {
            Some(&operand) => self.scalar(operand),
            None => Err(self.refuse("a call with too few arguments")),
        }
    }
}
