//! The functions with which programs talk to verifiers.

use crate::expr::{Expr, mask, width_bounds};
use crate::flat::{End, StepKind};
use crate::inline::{Generator, Refused};
use crate::{Aim, Note};
use palisade_llvm::instructions::Instruction;
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check};

/// The most values that are tried one by one.
const MAX_CHOICES: i64 = 1 << 16;

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn verifier(
        &mut self,
        instruction: &Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Option<Expr>>, Refused> {
        match name {
            "__VERIFIER_assume" | "assume_abort_if_not" | "__CPROVER_assume" => {
                let condition = self.operand(operands, 0)?;
                let condition = self.binary(BinaryOp::Ne, condition, Expr::Int(0));
                self.step(StepKind::Assume(condition));
                if self.context.options.aim == Aim::Progress {
                    let note = "where an assumption fails, the program counts as finished";
                    self.context.notes.insert(Note(note.to_owned()));
                }
                Ok(Some(None))
            }
            "__VERIFIER_assert" | "__CPROVER_assert" => {
                let condition = self.operand(operands, 0)?;
                let condition = self.binary(BinaryOp::Ne, condition, Expr::Int(0));
                self.step(StepKind::Assert(condition, Check::Assertion));
                Ok(Some(None))
            }
            "__VERIFIER_silent_exit" => {
                self.end(End::Over);
                Err(Refused)
            }
            // Bounds and hints for other tools, which are not needed here.
            "__VERIFIER_loop_bound"
            | "__VERIFIER_loop_begin"
            | "__VERIFIER_spin_start"
            | "__VERIFIER_make_nb" => Ok(Some(None)),
            _ if name.starts_with("__VERIFIER_nondet_") => {
                let width = self.type_width(instruction.ty)?;
                let (lo, hi) = match &name["__VERIFIER_nondet_".len()..] {
                    "bool" | "_Bool" => (0, 1),
                    "uchar" | "u8" | "unsigned_char" | "uint8" => (0, 255),
                    "ushort" | "u16" | "unsigned_short" | "uint16" => (0, mask(16)),
                    _ => width_bounds(width),
                };
                if hi.saturating_sub(lo) >= MAX_CHOICES {
                    return Err(self.refuse(format!(
                        "`{name}`: too many values to try; use `__VERIFIER_nondet_uchar() % n` for n of them"
                    )));
                }
                let holds = |width: &u32| width_bounds(*width).0 <= lo && hi <= width_bounds(*width).1;
                let register = self.temporary([1, 8, 16, 32].into_iter().find(holds).unwrap_or(64));
                self.step(StepKind::Any { to: register, lo, hi });
                Ok(Some(Some(self.wrap(width, Expr::Reg(register)))))
            }
            _ => Ok(None),
        }
    }
}
