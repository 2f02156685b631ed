//! The functions with which verifiers write the atomic operations of the Linux kernel: `__LKMM_LOAD` and similar
//! ones, as Dartagnan's header declares them.
//!
//! They are translated as in the kernel on x86: loads and stores are ordinary ones, operations that change
//! a variable are locked instructions, `smp_mb` is a fence and `smp_wmb` a store-store fence. `smp_rmb` and the
//! barriers around operations that are locked anyway do nothing. Read-copy-update is refused.

use crate::expr::Expr;
use crate::flat::{Access, StepKind, Written};
use crate::inline::{Generator, Refused};
use palisade_llvm::instructions::{Instruction, RmwOp};
use palisade_llvm::values::Operand;
use palisade_program::written::BinaryOp;

/// The orders and barriers, by their numbers in the header.
const RELEASE: i64 = 3;
const MB: i64 = 4;
const WMB: i64 = 5;
const RMB: i64 = 6;
const BEFORE_ATOMIC: i64 = 10;
const AFTER_SPINLOCK: i64 = 12;

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn kernel_function(
        &mut self,
        instruction: &Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Option<Expr>>, Refused> {
        let value = match name {
            "__LKMM_LOAD" => {
                let (size, width) = (self.size(instruction.ty)?, self.type_width(instruction.ty)?);
                let from = Access { pointer: self.operand(operands, 0)?, size, plain: false };
                let to = self.temporary(width);
                self.step(StepKind::Load { to, from, written: Written::Needed });
                Some(Expr::Reg(to))
            }
            "__LKMM_STORE" => {
                let at = self.kernel_access(operands)?;
                let (value, order) = (self.operand(operands, 1)?, self.constant(operands, 2)?);
                if order >= RELEASE {
                    self.step(StepKind::StoreFence);
                }
                self.step(StepKind::Store { to: at, value });
                None
            }
            "__LKMM_FENCE" => {
                match self.constant(operands, 0)? {
                    MB => self.step(StepKind::Fence),
                    WMB => self.step(StepKind::StoreFence),
                    RMB | BEFORE_ATOMIC..=AFTER_SPINLOCK => {}
                    _ => return Err(self.refuse("read-copy-update")),
                }
                None
            }
            "__LKMM_XCHG" => Some(self.kernel_operation(operands, 1, RmwOp::Xchg)?),
            "__LKMM_CMPXCHG" => {
                let at = self.kernel_access(operands)?;
                let (expected, new) = (self.operand(operands, 1)?, self.operand(operands, 2)?);
                let width = self.type_width(instruction.ty)?;
                let old = self.temporary(width);
                self.step(StepKind::Cas { old: Some(old), done: None, at, expected, new });
                Some(Expr::Reg(old))
            }
            "__LKMM_ATOMIC_OP" => {
                let op = self.kernel_operator(operands, 2)?;
                self.kernel_operation(operands, 1, op)?;
                None
            }
            "__LKMM_ATOMIC_FETCH_OP" => {
                let op = self.kernel_operator(operands, 3)?;
                Some(self.kernel_operation(operands, 1, op)?)
            }
            "__LKMM_ATOMIC_OP_RETURN" => {
                let op = self.kernel_operator(operands, 3)?;
                let old = self.kernel_operation(operands, 1, op)?;
                let (operand, width) = (self.operand(operands, 1)?, self.type_width(instruction.ty)?);
                let op = match op {
                    RmwOp::Add => BinaryOp::WordAdd,
                    RmwOp::Sub => BinaryOp::WordSub,
                    RmwOp::And => BinaryOp::BitAnd,
                    _ => BinaryOp::BitOr,
                };
                let value = self.binary(op, old, operand);
                Some(self.wrap(width, value))
            }
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// The variable that the first argument points to, of the type of the second.
    fn kernel_access(&mut self, operands: &[Operand]) -> Result<Access, Refused> {
        let pointer = self.operand(operands, 0)?;
        let Some(&value) = operands.get(1) else {
            return Err(self.refuse("a call with too few arguments"));
        };
        let ty = self.module().type_of(self.body(), value);
        Ok(Access { pointer, size: self.size(ty)?, plain: false })
    }

    /// A locked operation; the value before it.
    fn kernel_operation(&mut self, operands: &[Operand], index: usize, op: RmwOp) -> Result<Expr, Refused> {
        let (pointer, operand) = (self.operand(operands, 0)?, self.operand(operands, index)?);
        let ty = self.module().type_of(self.body(), operands[index]);
        match self.read_modify_write(op, ty, pointer, operand)? {
            crate::memory::Val::Scalar(old) => Ok(old),
            _ => Err(self.refuse("an operation of this form")),
        }
    }

    fn kernel_operator(&mut self, operands: &[Operand], index: usize) -> Result<RmwOp, Refused> {
        match self.constant(operands, index)? {
            0 => Ok(RmwOp::Add),
            1 => Ok(RmwOp::Sub),
            2 => Ok(RmwOp::And),
            3 => Ok(RmwOp::Or),
            _ => Err(self.refuse("an operation of this form")),
        }
    }

    /// An argument that must be a constant.
    fn constant(&mut self, operands: &[Operand], index: usize) -> Result<i64, Refused> {
        match self.operand(operands, index)? {
            Expr::Int(value) => Ok(value),
            _ => Err(self.refuse("a memory order that is not a constant")),
        }
    }
}
