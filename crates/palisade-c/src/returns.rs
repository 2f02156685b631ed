//! Functions that end without `return`.
//!
//! C allows a function to end without a value, as long as its caller does not use the value. The compiler keeps the
//! value in a local of its own, `retval`, which may then hold nothing. So reading it in order to return it is a copy, and
//! the value is checked where a call is used.

use crate::expr::Expr;
use crate::flat::StepKind;
use crate::inline::Generator;
use crate::memory::Val;
use palisade_llvm::Module;
use palisade_llvm::instructions::Op;
use palisade_llvm::module::Body;
use palisade_llvm::values::{ConstantKind, Operand, ValueId};
use palisade_program::written::Check;

/// What the compiler calls the local.
const SLOT: &str = "retval";

impl Generator<'_, '_> {
    /// Whether a load reads the value that the function is about to return.
    pub(crate) fn loads_own_result(&self, loaded: ValueId, from: Operand) -> bool {
        let Operand::Local(slot) = from else { return false };
        let returned = |instruction: &palisade_llvm::instructions::Instruction| match instruction.op {
            Op::Return(Some(value)) => value == Operand::Local(loaded),
            _ => false,
        };
        &*self.body().values[slot].name == SLOT
            && !self.is_variable(slot)
            && self.uses(loaded) == 1
            && self.body().blocks.iter().flat_map(|block| &block.instructions).any(returned)
    }

    /// Checks what a call gives that is used.
    pub(crate) fn check_returned(&mut self, value: &Val) {
        match value {
            Val::Scalar(Expr::Reg(register)) => {
                self.step(StepKind::Initialised(*register, Check::Returned));
            }
            Val::Aggregate(parts) => parts.iter().for_each(|part| self.check_returned(part)),
            Val::Scalar(_) | Val::Undefined => {}
        }
    }
}

/// Whether a function may end without a value, as far as the form of its text says.
pub(crate) fn may_lack_value(module: &Module, body: &Body) -> bool {
    let instructions = || body.blocks.iter().flat_map(|block| &block.instructions);
    let undefined = |operand: Operand| match operand {
        Operand::Constant(constant) => {
            matches!(module.constants[constant].kind, ConstantKind::Undef | ConstantKind::Poison)
        }
        Operand::Local(value) => instructions().any(|instruction| match instruction.op {
            Op::Load { pointer: Operand::Local(slot), .. } => {
                instruction.result == Some(value) && &*body.values[slot].name == SLOT
            }
            _ => false,
        }),
    };
    instructions().any(|instruction| matches!(instruction.op, Op::Return(Some(value)) if undefined(value)))
}
