//! The functions with which programs talk to verifiers.

use crate::Note;
use crate::expr::{Expr, mask, width_bounds};
use crate::flat::{End, StepKind};
use crate::inline::{Generator, Refused};
use crate::narrow::MAX_CHOICES;
use palisade_llvm::instructions::Instruction;
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check};

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
                if self.context.options.aim.asks_finish() {
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
            | "__VERIFIER_spin_end"
            | "__VERIFIER_annotate_begin"
            | "__VERIFIER_annotate_end"
            | "__VERIFIER_make_nb" => Ok(Some(None)),
            _ if name.starts_with("__VERIFIER_nondet_") => {
                let width = self.type_width(instruction.ty)?;
                let (lo, hi) = match &name["__VERIFIER_nondet_".len()..] {
                    "bool" | "_Bool" => (0, 1),
                    "uchar" | "u8" | "unsigned_char" | "uint8" => (0, 255),
                    "ushort" | "u16" | "unsigned_short" | "uint16" => (0, mask(16)),
                    _ => width_bounds(width),
                };
                let wide = (hi.saturating_sub(lo) >= MAX_CHOICES).then(|| {
                    let what = format!(
                        "`{name}`: too many values to try; restrict them right after the call, as in \
                         `__VERIFIER_assume(0 <= n && n < 4)`"
                    );
                    self.context.add_unsupported(what, self.span, None)
                });
                let holds = |width: &u32| width_bounds(*width).0 <= lo && hi <= width_bounds(*width).1;
                let register = self.temporary([1, 8, 16, 32].into_iter().find(holds).unwrap_or(64));
                self.step(StepKind::Any { to: register, lo, hi, wide });
                Ok(Some(Some(self.wrap(width, Expr::Reg(register)))))
            }
            _ => Ok(None),
        }
    }
}
