//! Instructions that compute, and those that access memory.
//!
//! Arithmetic on signed integers (`nsw`) that leaves the range is an error of the program. Everything else wraps.

use crate::Language;
use crate::expr::{self, Expr, width_bounds};
use crate::flat::{Access, BlockId, End, RegId, Register, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::memory::{Val, access_size, element_offset, offset};
use palisade_llvm::instructions::{
    BinaryOp as Ir, CastOp, Instruction, IntPredicate, Op, Ordering, RmwOp, Scope,
};
use palisade_llvm::types::{Type, TypeId};
use palisade_llvm::values::{Operand, ValueId};
use palisade_program::written::{BinaryOp, Check, Rmw};

impl Generator<'_, '_> {
    /// An instruction other than calls, locals and control flow.
    pub(crate) fn operation(&mut self, instruction: &Instruction) -> Result<(), Refused> {
        let value = match &instruction.op {
            Op::Load { ty, pointer, access } => {
                let plain = is_plain(access);
                let own_result = |result| self.loads_own_result(result, *pointer);
                let written = match instruction.result {
                    // A register may be loaded and not used, so this is not an error of the program.
                    _ if self.context.language == Language::Machine => Written::Partly,
                    Some(result) if self.is_masked(result) => Written::Partly,
                    Some(result) if own_result(result) => Written::Copied,
                    Some(_) if self.is_only_moved(access) => Written::Copied,
                    _ => Written::Needed,
                };
                let pointer = self.scalar(*pointer)?;
                let value = self.load_type(*ty, pointer, plain, written)?;
                if let (Some(result), Written::Copied, Val::Scalar(Expr::Reg(register))) =
                    (instruction.result, written, &value)
                {
                    self.check_when_used(result, *register);
                }
                value
            }
            Op::Store { value, pointer, access } => {
                if access.nontemporal {
                    return Err(self.refuse("a non-temporal store"));
                }
                let ty = self.module().type_of(self.body(), *value);
                let (value, pointer) = (self.value(*value)?, self.scalar(*pointer)?);
                let ordering = access.atomic.filter(|(_, scope)| *scope == Scope::System);
                let ordering = ordering.map(|(ordering, _)| ordering);
                if matches!(ordering, Some(Ordering::Release | Ordering::SequentiallyConsistent)) {
                    self.step(StepKind::StoreFence);
                }
                self.store_type(ty, pointer, is_plain(access), value)?;
                if ordering == Some(Ordering::SequentiallyConsistent) {
                    self.step(StepKind::Fence);
                }
                return Ok(());
            }
            Op::Fence { ordering, scope } => {
                match (ordering, scope) {
                    (_, Scope::SingleThread) | (Ordering::Acquire, _) => {}
                    (Ordering::SequentiallyConsistent, _) => self.step(StepKind::Fence),
                    _ => self.step(StepKind::StoreFence),
                }
                return Ok(());
            }
            Op::ReadModifyWrite { op, pointer, value, .. } => {
                let ty = self.module().type_of(self.body(), *value);
                let (pointer, value) = (self.scalar(*pointer)?, self.scalar(*value)?);
                self.read_modify_write(*op, ty, pointer, value)?
            }
            Op::CompareExchange { pointer, expected, new, weak, .. } => {
                let ty = self.module().type_of(self.body(), *expected);
                let _ = weak;
                let pointer = self.scalar(*pointer)?;
                let (expected, new) = (self.scalar(*expected)?, self.scalar(*new)?);
                self.compare_exchange(ty, pointer, expected, new)?
            }
            Op::GetElementPtr { source, base, indices, .. } => {
                let base = self.scalar(*base)?;
                let indices: Vec<Expr> =
                    indices.iter().map(|&index| self.scalar(index)).collect::<Result<_, _>>()?;
                let by = offset(self.module(), *source, &indices, &self.code.registers);
                let by = self.accept(by)?;
                Val::Scalar(self.binary(BinaryOp::WordAdd, base, by))
            }
            Op::Binary { op, .. } if op.is_float() => return Err(self.refuse("floating-point numbers")),
            Op::Binary { op, flags, left, right } => {
                let width = self.operand_width(*left)?;
                let moves = matches!(op, Ir::And | Ir::Or | Ir::Xor | Ir::Shl | Ir::LShr);
                let (a, b) = match moves {
                    true => (self.bits(*left)?, self.bits(*right)?),
                    false => (self.scalar(*left)?, self.scalar(*right)?),
                };
                Val::Scalar(self.arithmetic(*op, flags.no_signed_wrap(), width, a, b)?)
            }
            Op::Cast { op, value, .. } => {
                let ty = self.module().type_of(self.body(), *value);
                // rustc also casts addresses of which only some bytes were written.
                let keeps_undefined = *op == CastOp::BitCast || self.context.language == Language::Rust;
                if keeps_undefined && self.value(*value)? == Val::Undefined {
                    Val::Undefined
                } else {
                    Val::Scalar(self.cast(*op, ty, instruction.ty, *value)?)
                }
            }
            Op::Compare { predicate, left, right, .. } => {
                let (a, b) = (self.scalar(*left)?, self.scalar(*right)?);
                Val::Scalar(compare(*predicate, a, b, &self.code.registers))
            }
            Op::Select { condition, yes, no } => {
                let width = self.type_width(instruction.ty)?;
                let (condition, yes, no) = (self.scalar(*condition)?, self.bits(*yes)?, self.bits(*no)?);
                Val::Scalar(self.select(condition, yes, no, width))
            }
            Op::Freeze(value) => self.value(*value)?,
            Op::ExtractValue { aggregate, indices } => {
                let mut val = self.value(*aggregate)?;
                for &index in indices {
                    val = match val {
                        Val::Aggregate(mut parts) if (index as usize) < parts.len() => {
                            parts.swap_remove(index as usize)
                        }
                        Val::Undefined => Val::Undefined,
                        _ => return Err(self.refuse("a part of a value of this form")),
                    };
                }
                val
            }
            Op::InsertValue { aggregate, value, indices } => {
                let ty = self.module().type_of(self.body(), *aggregate);
                let (mut whole, part) = (self.value(*aggregate)?, self.value(*value)?);
                if self.insert(&mut whole, ty, indices, part).is_none() {
                    return Err(self.refuse("a part of a value of this form"));
                }
                whole
            }
            Op::Invoke { .. } | Op::LandingPad { .. } | Op::Resume(_) => {
                return Err(self.refuse("exceptions"));
            }
            Op::IndirectBranch { .. } | Op::CallBranch { .. } => return Err(self.refuse("computed jumps")),
            Op::NextArgument { .. } => return Err(self.refuse("variable numbers of arguments")),
            Op::FloatNegate(_) | Op::FloatCompare { .. } => {
                return Err(self.refuse("floating-point numbers"));
            }
            Op::ExtractElement { .. } | Op::InsertElement { .. } | Op::ShuffleVector { .. } => {
                return Err(self.refuse("vectors"));
            }
            Op::Return(_)
            | Op::Branch(_)
            | Op::BranchIf { .. }
            | Op::Switch { .. }
            | Op::Unreachable
            | Op::Phi(_)
            | Op::Alloca { .. }
            | Op::Call(_) => unreachable!("handled before"),
        };
        if let Some(result) = instruction.result {
            self.set(result, value);
        }
        Ok(())
    }

    fn insert(&self, whole: &mut Val, ty: TypeId, path: &[u32], part: Val) -> Option<()> {
        let Some((&index, rest)) = path.split_first() else {
            *whole = part;
            return Some(());
        };
        if *whole == Val::Undefined {
            let count = match self.module().types.body(ty) {
                Type::Struct { fields, .. } => fields.len(),
                Type::Array { length, .. } => {
                    usize::try_from(*length).ok().filter(|length| *length < 1024)?
                }
                _ => return None,
            };
            *whole = Val::Aggregate(vec![Val::Undefined; count]);
        }
        let inner = self.module().types.element(ty, index.into())?;
        match whole {
            Val::Aggregate(parts) => self.insert(parts.get_mut(index as usize)?, inner, rest, part),
            _ => None,
        }
    }

    /// Whether the only use of a value masks it with a constant, as code for bit-fields does.
    fn is_masked(&self, value: ValueId) -> bool {
        let mut instructions = self.body().blocks.iter().flat_map(|block| &block.instructions);
        self.uses(value) == 1
            && instructions.any(|instruction| match &instruction.op {
                Op::Binary { op: Ir::And, left, right: Operand::Constant(_), .. } => {
                    *left == Operand::Local(value)
                }
                _ => false,
            })
    }

    /// Loads a value of a type, part by part.
    fn load_type(
        &mut self,
        ty: TypeId,
        pointer: Expr,
        plain: bool,
        written: Written,
    ) -> Result<Val, Refused> {
        let module = self.module();
        match module.types.body(ty) {
            Type::Struct { fields, .. } => {
                let mut parts = Vec::new();
                for (index, &field) in fields.iter().enumerate() {
                    let at = element_offset(module, ty, index);
                    let at = self.accept(at)?;
                    let pointer = self.binary(BinaryOp::WordAdd, pointer.clone(), Expr::Int(at));
                    parts.push(self.load_type(field, pointer, plain, written)?);
                }
                Ok(Val::Aggregate(parts))
            }
            _ => {
                let size = self.size(ty)?;
                let width = self.type_width(ty)?;
                let copied = written == Written::Copied;
                // A copy is kept as it is, with what marks it as never written.
                let register = self.temporary(if width == 1 && !copied { 8 } else { width });
                self.step(StepKind::Load { to: register, from: Access { pointer, size, plain }, written });
                Ok(Val::Scalar(self.wrap(width, Expr::Reg(register))))
            }
        }
    }

    /// Stores a value of a type, part by part.
    fn store_type(&mut self, ty: TypeId, pointer: Expr, plain: bool, value: Val) -> Result<(), Refused> {
        let module = self.module();
        match (module.types.body(ty), value) {
            // What must not be read is not written.
            (_, Val::Undefined) => Ok(()),
            (Type::Struct { fields, .. }, Val::Aggregate(parts)) => {
                for (index, (&field, part)) in fields.iter().zip(parts).enumerate() {
                    let at = element_offset(module, ty, index);
                    let at = self.accept(at)?;
                    let pointer = self.binary(BinaryOp::WordAdd, pointer.clone(), Expr::Int(at));
                    self.store_type(field, pointer, plain, part)?;
                }
                Ok(())
            }
            (Type::Array { element, .. }, Val::Aggregate(parts)) => {
                let element = *element;
                for (index, part) in parts.into_iter().enumerate() {
                    let at = element_offset(module, ty, index);
                    let at = self.accept(at)?;
                    let pointer = self.binary(BinaryOp::WordAdd, pointer.clone(), Expr::Int(at));
                    self.store_type(element, pointer, plain, part)?;
                }
                Ok(())
            }
            (_, Val::Scalar(Expr::Int(crate::UNINITIALISED | crate::FREED))) => {
                Err(self.refuse("a constant with which the translation marks memory"))
            }
            (_, Val::Scalar(value)) => {
                let size = self.size(ty)?;
                self.step(StepKind::Store { to: Access { pointer, size, plain }, value });
                Ok(())
            }
            _ => Err(self.refuse("a store of this form")),
        }
    }

    /// The size of an access of a scalar type.
    pub(crate) fn size(&mut self, ty: TypeId) -> Result<u32, Refused> {
        match access_size(self.module(), ty) {
            Some(size) => Ok(size),
            None => {
                let what = format!("accesses of type `{}`", self.module().types.display(ty));
                Err(self.refuse(what))
            }
        }
    }

    pub(crate) fn read_modify_write(
        &mut self,
        op: RmwOp,
        ty: TypeId,
        pointer: Expr,
        operand: Expr,
    ) -> Result<Val, Refused> {
        let (size, width) = (self.size(ty)?, self.type_width(ty)?);
        let old = self.temporary(width);
        let at = Access { pointer, size, plain: false };
        let rmw = match op {
            RmwOp::Xchg => Some(Rmw::Exchange),
            RmwOp::Add => Some(Rmw::FetchAdd),
            RmwOp::Sub => Some(Rmw::FetchSub),
            RmwOp::And => Some(Rmw::FetchAnd),
            RmwOp::Or => Some(Rmw::FetchOr),
            RmwOp::Xor => Some(Rmw::FetchXor),
            _ => None,
        };
        if let Some(rmw) = rmw {
            self.step(StepKind::Locked { rmw, old, at, operand });
            return Ok(Val::Scalar(Expr::Reg(old)));
        }
        // The compiler makes a loop of these that ends with a locked instruction, which takes effect at once.
        let load = self.make_step(StepKind::Load { to: old, from: at.clone(), written: Written::Needed });
        let store = |generator: &Self, value| generator.make_step(StepKind::Store { to: at.clone(), value });
        let less = |a, b, unsigned| self.binary(if unsigned { BinaryOp::WordLt } else { BinaryOp::Lt }, a, b);
        let change = match op {
            RmwOp::Nand => {
                let both = self.binary(BinaryOp::BitAnd, Expr::Reg(old), operand);
                let value = self.binary(BinaryOp::BitXor, both, Expr::Int(-1));
                store(self, self.wrap(width, value))
            }
            RmwOp::Max | RmwOp::UMax => {
                let smaller = less(Expr::Reg(old), operand.clone(), op == RmwOp::UMax);
                self.make_step(StepKind::If(smaller, vec![store(self, operand)], Vec::new()))
            }
            RmwOp::Min | RmwOp::UMin => {
                let larger = less(operand.clone(), Expr::Reg(old), op == RmwOp::UMin);
                self.make_step(StepKind::If(larger, vec![store(self, operand)], Vec::new()))
            }
            _ => return Err(self.refuse(format!("`atomicrmw {}`", op.word()))),
        };
        self.step(StepKind::Atomic(vec![load, change]));
        Ok(Val::Scalar(Expr::Reg(old)))
    }

    fn compare_exchange(
        &mut self,
        ty: TypeId,
        pointer: Expr,
        expected: Expr,
        new: Expr,
    ) -> Result<Val, Refused> {
        let (size, width) = (self.size(ty)?, self.type_width(ty)?);
        let (old, done) = (self.temporary(width), self.temporary(1));
        let at = Access { pointer, size, plain: false };
        self.step(StepKind::Cas { old: Some(old), done: Some(done), at, expected, new });
        Ok(Val::Aggregate(vec![Val::Scalar(Expr::Reg(old)), Val::Scalar(Expr::Reg(done))]))
    }

    /// Arithmetic on canonical values of a width.
    fn arithmetic(&mut self, op: Ir, signed: bool, width: u32, a: Expr, b: Expr) -> Result<Expr, Refused> {
        Ok(match op {
            Ir::Add | Ir::Sub | Ir::Mul => {
                let word = match op {
                    Ir::Add => BinaryOp::WordAdd,
                    Ir::Sub => BinaryOp::WordSub,
                    _ => BinaryOp::WordMul,
                };
                if signed {
                    return self.checked(word, width, a, b);
                }
                let e = self.binary(word, a, b);
                self.wrap(width, e)
            }
            Ir::And => self.binary(BinaryOp::BitAnd, a, b),
            Ir::Or => self.binary(BinaryOp::BitOr, a, b),
            Ir::Xor => {
                let e = self.binary(BinaryOp::BitXor, a, b);
                // All bits of an `i1` are one bit.
                self.wrap(width, e)
            }
            Ir::Shl | Ir::LShr | Ir::AShr => {
                match b.as_int() {
                    Some(by) if (0..i64::from(width)).contains(&by) => {}
                    _ => {
                        let inside = self.binary(BinaryOp::WordLt, b.clone(), Expr::Int(width.into()));
                        self.step(StepKind::Assert(inside, Check::Shift));
                        if matches!(b.as_int(), Some(by) if !(0..64).contains(&by)) {
                            return Ok(Expr::Int(0));
                        }
                    }
                }
                match op {
                    Ir::Shl => {
                        // The value is made small enough first: a shift must not fail.
                        let e = self.binary(BinaryOp::WordShl, a, b);
                        self.wrap(width, e)
                    }
                    Ir::LShr => {
                        let a = expr::unsigned(width, a, &self.code.registers);
                        let e = self.binary(BinaryOp::WordShr, a, b);
                        self.wrap(width, e)
                    }
                    _ => self.binary(BinaryOp::Shr, a, b),
                }
            }
            Ir::SDiv | Ir::SRem | Ir::UDiv | Ir::URem => {
                let registers = &self.code.registers;
                let (op, a, b) = match op {
                    Ir::SDiv => (BinaryOp::Div, a, b),
                    Ir::SRem => (BinaryOp::Rem, a, b),
                    _ => {
                        let (a, b) =
                            (expr::unsigned(width, a, registers), expr::unsigned(width, b, registers));
                        (if op == Ir::UDiv { BinaryOp::WordDiv } else { BinaryOp::WordRem }, a, b)
                    }
                };
                if matches!(op, BinaryOp::Div | BinaryOp::Rem) && self.is_maybe_minus_one(&b) {
                    let (lo, _) = width_bounds(width);
                    let small = self.binary(BinaryOp::Eq, a.clone(), Expr::Int(lo));
                    let minus = self.binary(BinaryOp::Eq, b.clone(), Expr::Int(-1));
                    let both = Expr::Binary(BinaryOp::And, Box::new(small), Box::new(minus));
                    self.step(StepKind::Assert(expr::not(both), Check::Overflow));
                }
                let e = self.binary(op, a, b.clone());
                if b.as_int().is_some_and(|b| b != 0) {
                    return Ok(self.wrap(width, e));
                }
                // The division fails by itself if the divisor is 0, at this place.
                let register = self.temporary(width);
                let e = self.wrap(width, e);
                self.step(StepKind::Assign(register, e));
                Expr::Reg(register)
            }
            _ => return Err(self.refuse("floating-point numbers")),
        })
    }

    fn is_maybe_minus_one(&self, e: &Expr) -> bool {
        let (lo, hi) = e.bounds(&self.code.registers);
        lo <= -1 && hi >= -1
    }

    /// Signed arithmetic that must stay in range.
    fn checked(&mut self, word: BinaryOp, width: u32, a: Expr, b: Expr) -> Result<Expr, Refused> {
        let (lo, hi) = width_bounds(width);
        let e = self.binary(word, a.clone(), b.clone());
        let registers = &self.code.registers;
        let ((a_lo, a_hi), (b_lo, b_hi)) = (a.bounds(registers), b.bounds(registers));
        let wide = |a: i64, b: i64| {
            let (a, b) = (i128::from(a), i128::from(b));
            match word {
                BinaryOp::WordAdd => a + b,
                BinaryOp::WordSub => a - b,
                _ => a * b,
            }
        };
        let corners = [wide(a_lo, b_lo), wide(a_lo, b_hi), wide(a_hi, b_lo), wide(a_hi, b_hi)];
        let least = corners.into_iter().min().unwrap_or(0);
        let most = corners.into_iter().max().unwrap_or(0);
        let below = least < i128::from(lo);
        let above = most > i128::from(hi);
        if !below && !above {
            return Ok(e);
        }
        // A constant operand: compare the other one with what is left.
        if let (BinaryOp::WordAdd | BinaryOp::WordSub, Some(b)) = (word, b.as_int()) {
            let by = if word == BinaryOp::WordAdd { i128::from(b) } else { -i128::from(b) };
            let limit = if by > 0 { i128::from(hi) - by } else { i128::from(lo) - by };
            let op = if by > 0 { BinaryOp::Le } else { BinaryOp::Ge };
            if let Ok(limit) = i64::try_from(limit) {
                let inside = self.binary(op, a, Expr::Int(limit));
                self.step(StepKind::Assert(inside, Check::Overflow));
                return Ok(self.canonical(e, width));
            }
        }
        if i64::try_from(least).is_ok() && i64::try_from(most).is_ok() {
            if below {
                let inside = self.binary(BinaryOp::Ge, e.clone(), Expr::Int(lo));
                self.step(StepKind::Assert(inside, Check::Overflow));
            }
            if above {
                let inside = self.binary(BinaryOp::Le, e.clone(), Expr::Int(hi));
                self.step(StepKind::Assert(inside, Check::Overflow));
            }
            return Ok(self.canonical(e, width));
        }
        // The operators that do not wrap fail by themselves, at this place.
        let op = match word {
            BinaryOp::WordAdd => BinaryOp::Add,
            BinaryOp::WordSub => BinaryOp::Sub,
            _ => BinaryOp::Mul,
        };
        let register = self.temporary(width);
        self.step(StepKind::Assign(register, self.binary(op, a, b)));
        Ok(Expr::Reg(register))
    }

    /// A value that a check has just found to be in the range of the width. A register keeps that in mind.
    fn canonical(&mut self, e: Expr, width: u32) -> Expr {
        if width >= 64 {
            return e;
        }
        let register = self.temporary(width);
        self.step(StepKind::Assign(register, e));
        Expr::Reg(register)
    }

    fn cast(&mut self, op: CastOp, from: TypeId, to: TypeId, value: Operand) -> Result<Expr, Refused> {
        let e = self.bits(value)?;
        Ok(match op {
            CastOp::BitCast => {
                self.type_width(to)?;
                e
            }
            CastOp::IntToPtr | CastOp::ZExt => {
                let from = self.type_width(from)?;
                self.type_width(to)?;
                expr::unsigned(from, e, &self.code.registers)
            }
            CastOp::SExt => {
                self.type_width(to)?;
                match self.type_width(from)? {
                    1 => self.binary(BinaryOp::WordSub, Expr::Int(0), e),
                    _ => e,
                }
            }
            CastOp::Trunc | CastOp::PtrToInt | CastOp::PtrToAddr => {
                let width = self.type_width(to)?;
                self.wrap(width, e)
            }
            CastOp::AddrSpaceCast => return Err(self.refuse("address spaces")),
            _ => return Err(self.refuse("floating-point numbers")),
        })
    }

    /// One of two values.
    pub(crate) fn select(&mut self, condition: Expr, yes: Expr, no: Expr, width: u32) -> Expr {
        if let Some(condition) = condition.as_int() {
            return if condition != 0 { yes } else { no };
        }
        let result = self.temporary(width);
        let (then, otherwise, after) = (self.new_block(), self.new_block(), self.new_block());
        self.end(End::Branch(condition, then, otherwise));
        self.assign_and_go(then, result, yes, after);
        self.assign_and_go(otherwise, result, no, after);
        self.go_on(after);
        Expr::Reg(result)
    }

    fn assign_and_go(&mut self, block: BlockId, register: RegId, value: Expr, after: BlockId) {
        self.go_on(block);
        self.step(StepKind::Assign(register, value));
        self.end(End::Goto(after));
    }
}

/// A comparison.
pub(crate) fn compare(predicate: IntPredicate, a: Expr, b: Expr, registers: &[Register]) -> Expr {
    let binary = |op, a, b| expr::binary(op, a, b, registers);
    match predicate {
        IntPredicate::Eq => binary(BinaryOp::Eq, a, b),
        IntPredicate::Ne => binary(BinaryOp::Ne, a, b),
        IntPredicate::Slt => binary(BinaryOp::Lt, a, b),
        IntPredicate::Sle => binary(BinaryOp::Le, a, b),
        IntPredicate::Sgt => binary(BinaryOp::Gt, a, b),
        IntPredicate::Sge => binary(BinaryOp::Ge, a, b),
        IntPredicate::Ult => binary(BinaryOp::WordLt, a, b),
        IntPredicate::Ule => binary(BinaryOp::WordLe, a, b),
        IntPredicate::Ugt => binary(BinaryOp::WordLt, b, a),
        IntPredicate::Uge => binary(BinaryOp::WordLe, b, a),
    }
}

/// Whether a load or store is plain: neither atomic nor volatile.
fn is_plain(access: &palisade_llvm::instructions::Access) -> bool {
    access.atomic.is_none() && !access.volatile
}
