//! Values that were never written, where a compiler has moved them from memory to registers.
//!
//! *Problem.* rustc may write `phi i32 [ 5, %a ], [ undef, %b ]` for a variable that only one path writes. Moving such a
//! value around is fine; computing with it is not.
//!
//! *How.* The register of a phi is marked as never written on edges that bring nothing (`Uninitialise`), and checked
//! where an instruction depends on its value. So is what is loaded without `!noundef`, which rustc attaches to all loads
//! that need a value. Checks that cannot fail are dropped later (`definite`).
//!
//! *Difference.* Where such a value is cut into bytes or put together with others in one word, it is not followed: its
//! bytes count as 0. The answer then says so.

use crate::expr::Expr;
use crate::flat::{RegId, StepKind};
use crate::inline::{Generator, Refused};
use crate::memory::Val;
use crate::{Language, Note};
use palisade_llvm::Module;
use palisade_llvm::instructions::{Access, Op};
use palisade_llvm::module::Body;
use palisade_llvm::values::{ConstantId, ConstantKind, Operand, ValueId};
use palisade_program::written::Check;
use rustc_hash::FxHashSet;

/// What an answer rests on if a value was not followed.
const NOT_FOLLOWED: &str =
    "bytes that were never written are not used where the compiler has combined them with others in one word";

impl Generator<'_, '_> {
    /// Fails in the program if an operand that an instruction depends on was never written.
    pub(crate) fn depend_on(&mut self, operand: Operand) {
        let Operand::Local(value) = operand else { return };
        if self.context.language == Language::Rust
            && let Some(register) = self.phi(value).or_else(|| self.frame().unchecked.get(&value).copied())
        {
            self.step(StepKind::Initialised(register, Check::Initialised));
        }
    }

    /// Whether what is loaded may be moved elsewhere even if it was never written: rustc marks all other loads.
    pub(crate) fn is_only_moved(&self, access: &Access) -> bool {
        self.context.language == Language::Rust
            && !access.written
            && access.atomic.is_none()
            && !access.volatile
    }

    /// A value that was loaded without a check is checked where something depends on it.
    pub(crate) fn check_when_used(&mut self, value: ValueId, register: RegId) {
        self.frame_mut().unchecked.insert(value, register);
    }

    /// Whether an operand may never have been written.
    fn may_be_undefined(&self, operand: Operand) -> bool {
        let Operand::Local(value) = operand else { return false };
        self.frame().undefined.contains(&value) || self.frame().unchecked.contains_key(&value)
    }

    /// The value of an operand whose bits are moved elsewhere. Those that were never written are taken for 0.
    pub(crate) fn bits(&mut self, operand: Operand) -> Result<Expr, Refused> {
        let value = self.value(operand)?;
        if self.context.language == Language::Rust
            && (value == Val::Undefined || self.may_be_undefined(operand))
        {
            self.context.notes.insert(Note(NOT_FOLLOWED.to_owned()));
        }
        match value {
            Val::Undefined if self.context.language == Language::Rust => Ok(Expr::Int(0)),
            Val::Scalar(e) => Ok(e),
            _ => self.scalar(operand),
        }
    }
}

/// The phis of a function that may stand for a value that was never written.
pub(crate) fn undefined_phis(module: &Module, body: &Body) -> FxHashSet<ValueId> {
    let mut found: FxHashSet<ValueId> = FxHashSet::default();
    let nothing = |found: &FxHashSet<ValueId>, operand: Operand| match operand {
        Operand::Constant(constant) => holds_nothing(module, constant),
        Operand::Local(value) => found.contains(&value),
    };
    loop {
        let before = found.len();
        for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
            let undefined = match &instruction.op {
                Op::Phi(incoming) => incoming.iter().any(|(value, _)| nothing(&found, *value)),
                Op::Freeze(value) | Op::Cast { value, .. } | Op::ExtractValue { aggregate: value, .. } => {
                    nothing(&found, *value)
                }
                _ => false,
            };
            found.extend(instruction.result.filter(|_| undefined));
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether a constant or a part of it is not a value.
fn holds_nothing(module: &Module, constant: ConstantId) -> bool {
    match &module.constants[constant].kind {
        ConstantKind::Undef | ConstantKind::Poison => true,
        ConstantKind::Aggregate(parts) => parts.iter().any(|part| holds_nothing(module, *part)),
        _ => false,
    }
}
