//! `memset`, `memcpy` and `memmove` of small known sizes.
//!
//! The bytes are those of scalars. The object, or the type of the pointer, shows which ones.

use crate::Language;
use crate::expr::Expr;
use crate::flat::{Access, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::memory::{Leaf, leaves};
use palisade_llvm::instructions::{CastOp, Instruction, Op};
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{ConstantKind, Expression, Operand};
use palisade_program::written::{BinaryOp, Check};

/// The largest size in bytes.
const MAX_BYTES: i64 = 4096;

/// The scalars that a copy covers.
enum Shape {
    /// Whole ones.
    Whole(Vec<Leaf>),
    /// Part of one, at least.
    Parts,
}

/// Whether a scalar overlaps the first bytes of what a pointer points to.
fn overlaps(leaf: &Leaf, size: i64) -> bool {
    leaf.offset < size && leaf.offset + (1 << leaf.size) > 0
}

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn memory_function(
        &mut self,
        instruction: &Instruction,
        name: &str,
        operands: &[Operand],
    ) -> Result<Option<Option<Expr>>, Refused> {
        let _ = instruction;
        let is = |prefix: &str, plain: &str| name.starts_with(prefix) || name == plain;
        let set = is("llvm.memset.", "memset");
        let copy = is("llvm.memcpy.", "memcpy") || is("llvm.memmove.", "memmove");
        if !set && !copy {
            return Ok(None);
        }
        let to = self.operand(operands, 0)?;
        let second = self.operand(operands, 1)?;
        let size = self.operand(operands, 2)?;
        let small = size.as_int().filter(|size| (0..=MAX_BYTES).contains(size));
        let disjoint = is("llvm.memcpy.", "memcpy");
        let size = match (self.context.language, small, size.as_int()) {
            (Language::C, Some(size), _) => size,
            (Language::C, None, Some(_)) => {
                return Err(self.refuse(format!("a copy of more than {MAX_BYTES} bytes")));
            }
            // The size, or the scalars, may be known once calls are inlined.
            _ => {
                if disjoint && self.context.language == Language::C {
                    let size = self.in_register(size.clone());
                    self.check_disjoint(&to, &second, &size);
                }
                return self.bytes_function(&to, &second, size, set).map(|()| Some(Some(to)));
            }
        };
        for pointer in [&to, &second].into_iter().take(if copy { 2 } else { 1 }) {
            self.touch_outside(pointer, size);
        }
        if disjoint {
            self.check_disjoint(&to, &second, &Expr::Int(size));
        }
        let shape = self.shape(operands, &to, if copy { Some(&second) } else { None }, size, copy);
        let shape = match shape {
            Some(Shape::Whole(shape)) => shape,
            Some(Shape::Parts) => return Err(self.refuse("a copy of part of a variable")),
            None => return Err(self.refuse("a copy of memory whose type is not known")),
        };
        if set {
            let Some(byte) = second.as_int() else {
                return Err(self.refuse("`memset` with a value that is not a constant"));
            };
            for leaf in shape {
                let bytes = [byte as u8; 8];
                let value = crate::expr::wrap_int(8 << leaf.size, i64::from_le_bytes(bytes));
                let pointer = self.binary(BinaryOp::WordAdd, to.clone(), Expr::Int(leaf.offset));
                let access = Access { pointer, size: leaf.size, plain: true };
                self.step(StepKind::Store { to: access, value: Expr::Int(value) });
            }
        } else {
            // Everything is loaded before anything is stored, so that overlapping objects are copied correctly.
            let mut loaded = Vec::new();
            for leaf in shape {
                let pointer = self.binary(BinaryOp::WordAdd, second.clone(), Expr::Int(leaf.offset));
                let register = self.temporary(8 << leaf.size);
                let from = Access { pointer, size: leaf.size, plain: true };
                self.step(StepKind::Load { to: register, from, written: Written::Copied });
                loaded.push((leaf, register));
            }
            for (leaf, register) in loaded {
                let pointer = self.binary(BinaryOp::WordAdd, to.clone(), Expr::Int(leaf.offset));
                let access = Access { pointer, size: leaf.size, plain: true };
                self.step(StepKind::Store { to: access, value: Expr::Reg(register) });
            }
        }
        Ok(Some(Some(to)))
    }

    /// The same where the size or the scalars are not known yet.
    fn bytes_function(&mut self, to: &Expr, second: &Expr, size: Expr, set: bool) -> Result<(), Refused> {
        if size.as_int() == Some(0) {
            return Ok(());
        }
        let (to, second) = (to.clone(), second.clone());
        if !set {
            self.step(StepKind::Copy { from: second, to, size });
            return Ok(());
        }
        match second.as_int().and_then(|byte| u8::try_from(byte & 0xff).ok()) {
            Some(byte) => self.step(StepKind::Fill { to, size, byte: Some(byte) }),
            None => return Err(self.refuse("memory that is filled with a value that is not a constant")),
        }
        Ok(())
    }

    /// Checks that what is copied does not overlap its copy. A struct may be assigned to itself, which the compiler
    /// makes a copy as well, so the same address is allowed.
    fn check_disjoint(&mut self, to: &Expr, from: &Expr, size: &Expr) {
        if matches!((to.base(), from.base()), (Some(a), Some(b)) if a != b) {
            return;
        }
        let [to, from] = [to, from].map(|pointer| match pointer.size() {
            1 => pointer.clone(),
            _ => {
                let register = self.temporary(64);
                self.step(StepKind::Assign(register, pointer.clone()));
                Expr::Reg(register)
            }
        });
        let distance = self.binary(BinaryOp::WordSub, to, from);
        let back = self.binary(BinaryOp::WordSub, Expr::Int(0), size.clone());
        let compare = |op, bound| self.binary(op, distance.clone(), bound);
        let apart =
            self.binary(BinaryOp::Or, compare(BinaryOp::Ge, size.clone()), compare(BinaryOp::Le, back));
        let allowed = self.binary(BinaryOp::Or, compare(BinaryOp::Eq, Expr::Int(0)), apart);
        self.step(StepKind::Assert(allowed, Check::Disjoint));
    }

    /// The scalars of the first bytes of what a pointer points to, if they are known, and whole ones.
    pub(super) fn whole_scalars(&self, operands: &[Operand], pointer: &Expr, size: i64) -> Option<Vec<Leaf>> {
        match self.shape(operands, pointer, None, size, false)? {
            Shape::Whole(leaves) => Some(leaves),
            Shape::Parts => None,
        }
    }

    /// Accesses the first of some bytes that is outside the object, if there is one. That fails.
    pub(super) fn touch_outside(&mut self, pointer: &Expr, size: i64) {
        let Expr::Address(object, offset) = pointer else { return };
        let end = self.context.memory.object(*object).size;
        if size == 0 || (0 <= *offset && offset + size <= end) {
            return;
        }
        let first = if *offset < 0 { 0 } else { (end - offset).max(0) };
        let pointer = self.binary(BinaryOp::WordAdd, pointer.clone(), Expr::Int(first));
        let to = self.temporary(8);
        let from = Access { pointer, size: 0, plain: true };
        self.step(StepKind::Load { to, from, written: Written::Copied });
    }

    /// The scalars of the first bytes of what two pointers point to.
    fn shape(
        &self,
        operands: &[Operand],
        to: &Expr,
        from: Option<&Expr>,
        size: i64,
        copy: bool,
    ) -> Option<Shape> {
        let of_object = |pointer: &Expr| match pointer {
            Expr::Address(object, offset) => {
                let object = self.context.memory.object(*object);
                let moved = |leaf: &Leaf| Leaf { offset: leaf.offset - offset, ..leaf.clone() };
                let mut inside: Vec<Leaf> = object.leaves.iter().map(moved).collect();
                inside.retain(|leaf| overlaps(leaf, size));
                Some(inside)
            }
            _ => None,
        };
        let of_type = |operand: Operand| {
            let ty = self.pointee(operand)?;
            let whole = i64::try_from(self.module().layouts.size(ty)?).ok()?;
            (whole >= size).then(|| leaves(self.module(), ty).ok())?
        };
        let found = of_object(to)
            .or_else(|| from.and_then(of_object))
            .or_else(|| operands.first().copied().and_then(of_type))
            .or_else(|| operands.get(1).filter(|_| copy).copied().and_then(of_type))?;
        let found: Vec<Leaf> = found.into_iter().filter(|leaf| overlaps(leaf, size)).collect();
        let whole = found.iter().all(|leaf| leaf.offset >= 0 && leaf.offset + (1 << leaf.size) <= size);
        Some(if whole { Shape::Whole(found) } else { Shape::Parts })
    }

    /// What a pointer points to, where the text says so: before casts to `i8*`, or in a `getelementptr`.
    fn pointee(&self, operand: Operand) -> Option<TypeId> {
        let module = self.module();
        let of = |ty: TypeId| match module.types.get(ty) {
            Type::Pointer { pointee: Some(pointee), .. } => {
                (!matches!(module.types.get(*pointee), Type::Integer(8))).then_some(*pointee)
            }
            _ => None,
        };
        match operand {
            Operand::Local(value) => {
                let instructions = self.body().blocks.iter().flat_map(|block| &block.instructions);
                let definition = instructions.into_iter().find(|other| other.result == Some(value))?;
                match &definition.op {
                    Op::Cast { op: CastOp::BitCast, value, .. } => {
                        of(module.type_of(self.body(), *value)).or_else(|| self.pointee(*value))
                    }
                    Op::GetElementPtr { source, indices, .. } if indices.len() == 1 => Some(*source),
                    _ => of(self.body().values[value].ty),
                }
            }
            Operand::Constant(constant) => match &module.constants[constant].kind {
                ConstantKind::Expression(Expression::Cast { op: CastOp::BitCast, value }) => {
                    of(module.constants[*value].ty)
                }
                _ => of(module.constants[constant].ty),
            },
        }
    }
}
