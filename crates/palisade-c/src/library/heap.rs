//! `malloc`, `calloc`, `free` and their kin. What they do is in [`crate::heap`].

use crate::expr::Expr;
use crate::flat::{Access, StepKind};
use crate::inline::{Generator, Refused};
use palisade_llvm::debug::Node;
use palisade_llvm::instructions::{CastOp, Instruction, Op};
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{Operand, ValueId};
use palisade_program::written::BinaryOp;

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn heap_function(
        &mut self,
        instruction: &Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Option<Expr>>, Refused> {
        match name {
            "malloc" => {
                let size = self.operand(operands, 0)?;
                Ok(Some(Some(self.allocate(instruction, size, false))))
            }
            "aligned_alloc" | "memalign" => {
                let size = self.operand(operands, 1)?;
                Ok(Some(Some(self.allocate(instruction, size, false))))
            }
            "calloc" => {
                let (count, size) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                let size = self.binary(BinaryOp::WordMul, count, size);
                Ok(Some(Some(self.allocate(instruction, size, true))))
            }
            "posix_memalign" => {
                let (to, size) = (self.operand(operands, 0)?, self.operand(operands, 2)?);
                let pointer = self.allocate(instruction, size, false);
                self.step(StepKind::Store {
                    to: Access { pointer: to, size: 3, plain: false },
                    value: pointer,
                });
                Ok(Some(Some(Expr::Int(0))))
            }
            "free" => {
                let pointer = self.operand(operands, 0)?;
                self.step(StepKind::Free { pointer, lists: Vec::new() });
                Ok(Some(None))
            }
            _ => Ok(None),
        }
    }

    fn allocate(&mut self, instruction: &Instruction, size: Expr, zero: bool) -> Expr {
        let hint = instruction.result.and_then(|result| self.use_as(result));
        let hint = hint.map(|ty| (self.module_index(), ty));
        let to = self.temporary(64);
        let count = self.code.new_register("allocated", 64);
        let nothing_yet = self.make_step(StepKind::Assign(count, Expr::Int(0)));
        self.code.blocks[0].steps.insert(0, nothing_yet);
        self.step(StepKind::Allocate { to, size, hint, zero, count });
        Expr::Reg(to)
    }

    /// The type as which a pointer is used: by a cast, by an access to a part, or by the variable that gets it.
    fn use_as(&self, pointer: ValueId) -> Option<TypeId> {
        let module = self.module();
        let is_pointer = |operand: &Operand| *operand == Operand::Local(pointer);
        for instruction in self.body().blocks.iter().flat_map(|block| &block.instructions) {
            match &instruction.op {
                Op::Cast { op: CastOp::BitCast, value, .. } if is_pointer(value) => {
                    if let Type::Pointer { pointee: Some(pointee), .. } = module.types.get(instruction.ty) {
                        return Some(*pointee);
                    }
                }
                Op::GetElementPtr { source, base, .. }
                    if is_pointer(base) && !matches!(module.types.get(*source), Type::Integer(8)) =>
                {
                    return Some(*source);
                }
                Op::Store { value, pointer: Operand::Local(variable), .. } if is_pointer(value) => {
                    if let Some(found) = self.variable_target(*variable) {
                        return Some(found);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The struct to which a local variable points, by its debug type.
    fn variable_target(&self, variable: ValueId) -> Option<TypeId> {
        let module = self.module();
        let ty = self.variable_type(variable)?;
        let pointer = module.debug.resolve_type(ty)?;
        if &*pointer.tag != "DW_TAG_pointer_type" {
            return None;
        }
        let mut target = pointer.base?;
        // The struct itself or one of the names that were given to it.
        for _ in 0..16 {
            let Some(Node::Type(ty)) = module.debug.get(target) else { return None };
            if let Some(name) = &ty.name {
                let found = ["struct", "union"]
                    .iter()
                    .find_map(|kind| module.types.find_named(&format!("{kind}.{name}")));
                if found.is_some() {
                    return found;
                }
            }
            target = ty.base?;
        }
        None
    }
}
