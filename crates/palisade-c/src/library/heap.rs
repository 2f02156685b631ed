//! `malloc`, `calloc`, `realloc`, `free` and similar functions. What they do is in [`crate::heap`].

use crate::expr::Expr;
use crate::flat::{Access, StepKind};
use crate::inline::{Generator, Refused};
use palisade_llvm::debug::{Node, NodeId};
use palisade_llvm::instructions::{CastOp, Instruction, Op};
use palisade_llvm::module::SymbolKind;
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{ConstantId, ConstantKind, Operand, ValueId};
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
            "realloc" => {
                let (old, size) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
                let new = self.allocate(instruction, size.clone(), false);
                self.step(StepKind::Move { from: old.clone(), to: new.clone(), size });
                self.step(StepKind::Free { pointer: old, lists: Vec::new() });
                self.context.notes.insert(crate::Note("`realloc` always moves the block".to_owned()));
                Ok(Some(Some(new)))
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

    pub(super) fn allocate(&mut self, instruction: &Instruction, size: Expr, zero: bool) -> Expr {
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
    pub(crate) fn use_as(&self, pointer: ValueId) -> Option<TypeId> {
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
                Op::Store { value, pointer, .. } if is_pointer(value) => {
                    let variable = match *pointer {
                        Operand::Local(variable) => self.variable_type(variable),
                        Operand::Constant(constant) => self.global_type(constant),
                    };
                    if let Some(found) = variable.and_then(|ty| self.target(ty)) {
                        return Some(found);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The type of a global variable in the source program.
    fn global_type(&self, constant: ConstantId) -> Option<NodeId> {
        let module = self.module();
        let ConstantKind::Symbol(symbol) = module.constants[constant].kind else { return None };
        let SymbolKind::Global(global) = module.symbols[symbol].kind else { return None };
        let variable = *module.globals[global].variables.first()?;
        module.debug.variable(variable)?.ty
    }

    /// What a pointer of the source program points to: a struct, a number or a pointer.
    fn target(&self, pointer: NodeId) -> Option<TypeId> {
        let module = self.module();
        let pointer = module.debug.resolve_type(pointer)?;
        if &*pointer.tag != "DW_TAG_pointer_type" {
            return None;
        }
        let find =
            |wanted: &dyn Fn(&Type) -> bool| module.types.ids().find(|&id| wanted(module.types.get(id)));
        let mut target = pointer.base?;
        // The type itself or one of the names that were given to it.
        for _ in 0..16 {
            let Some(Node::Type(ty)) = module.debug.get(target) else { return None };
            let name = ty.name.as_deref().unwrap_or_default();
            let named = ["struct", "union"]
                .iter()
                .find_map(|kind| module.types.find_named(&format!("{kind}.{name}")));
            if named.is_some() {
                return named;
            }
            match &*ty.tag {
                "DW_TAG_pointer_type" => return find(&|ty| matches!(ty, Type::Pointer { .. })),
                "DW_TAG_base_type" if name.contains("float") || name.contains("double") => return None,
                "DW_TAG_base_type" | "DW_TAG_enumeration_type" => {
                    let bits = u32::try_from(ty.bits?).ok()?;
                    return find(&|ty| *ty == Type::Integer(bits));
                }
                _ => target = ty.base?,
            }
        }
        None
    }
}
