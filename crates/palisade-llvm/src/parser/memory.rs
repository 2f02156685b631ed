//! Instructions that access memory or compute addresses.

use super::locals::Locals;
use super::{Parse, Parser};
use crate::instructions::{Access, Op, Ordering, RmwOp, Scope};
use crate::token::Token;
use crate::types::{Type, TypeId, Types};
use crate::values::{ConstantId, Operand};
use palisade_base::Diagnostic;

type Parsed = (Op, TypeId);

impl Parser<'_> {
    pub(super) fn alloca(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        if let Token::Word("inalloca" | "swifterror") = self.token() {
            return Err(self.unsupported(format!("`alloca` with {}", self.token())));
        }
        let ty = self.ty()?;
        self.check_stored(ty)?;
        let (mut count, mut align, mut address_space) = (None, None, 0);
        while self.eat_comma() {
            match self.token() {
                Token::Word("align") => align = Some(self.align()?),
                Token::Word("addrspace") => address_space = self.address_space()?,
                _ => {
                    let (count_type, operand) = self.typed_operand(locals)?;
                    self.check_integer(count_type)?;
                    count = Some(operand);
                }
            }
        }
        let pointer = self.pointer_in(ty, address_space)?;
        Ok((Op::Alloca { ty, count, align }, pointer))
    }

    pub(super) fn load(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let mut access = self.access_words();
        let ty = self.ty()?;
        self.check_stored(ty)?;
        self.sign(b',')?;
        let pointer = self.pointer_operand(locals)?;
        self.check_pointee(pointer, ty, locals)?;
        self.access_tail(&mut access)?;
        if matches!(access.atomic, Some((Ordering::Release | Ordering::AcquireRelease, _))) {
            return Err(self.error("ir-syntax", "a load cannot have this ordering"));
        }
        Ok((Op::Load { ty, pointer, access }, ty))
    }

    pub(super) fn store(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let mut access = self.access_words();
        let (ty, value) = self.typed_operand(locals)?;
        self.sign(b',')?;
        let pointer = self.pointer_operand(locals)?;
        self.check_pointee(pointer, ty, locals)?;
        self.access_tail(&mut access)?;
        if matches!(access.atomic, Some((Ordering::Acquire | Ordering::AcquireRelease, _))) {
            return Err(self.error("ir-syntax", "a store cannot have this ordering"));
        }
        Ok((Op::Store { value, pointer, access }, Types::VOID))
    }

    /// `atomic volatile`
    fn access_words(&mut self) -> Access {
        // The ordering and the scope follow after the operands.
        let atomic = self.eat_word("atomic").then_some((Ordering::SequentiallyConsistent, Scope::System));
        let volatile = self.eat_word("volatile");
        Access { atomic, volatile, align: None, nontemporal: false, written: false }
    }

    /// `syncscope("singlethread") seq_cst, align 4`
    fn access_tail(&mut self, access: &mut Access) -> Parse<()> {
        if access.atomic.is_some() {
            let scope = self.scope()?;
            access.atomic = Some((self.ordering()?, scope));
        }
        access.align = self.align_tail()?;
        Ok(())
    }

    /// `, align 4`
    fn align_tail(&mut self) -> Parse<Option<u64>> {
        match self.eat_comma() {
            true => self.align().map(Some),
            false => Ok(None),
        }
    }

    fn scope(&mut self) -> Parse<Scope> {
        if !self.eat_word("syncscope") {
            return Ok(Scope::System);
        }
        self.sign(b'(')?;
        let scope = match self.token() {
            Token::Text("") => Scope::System,
            Token::Text("singlethread") => Scope::SingleThread,
            Token::Text(name) => return Err(self.unsupported(format!("the scope `{name}`"))),
            token => return Err(self.expected("the name of a scope", token)),
        };
        self.advance();
        self.sign(b')')?;
        Ok(scope)
    }

    fn ordering(&mut self) -> Parse<Ordering> {
        let ordering = match self.token() {
            Token::Word(word) => Ordering::of_word(word),
            _ => None,
        };
        match ordering {
            Some(ordering) => {
                self.advance();
                Ok(ordering)
            }
            None => Err(self.unsupported(format!("the ordering {}", self.token()))),
        }
    }

    pub(super) fn fence(&mut self, _: &mut Locals) -> Parse<Parsed> {
        let scope = self.scope()?;
        let ordering = self.ordering()?;
        if matches!(ordering, Ordering::Unordered | Ordering::Monotonic) {
            return Err(self.error("ir-syntax", "a fence cannot have this ordering"));
        }
        Ok((Op::Fence { ordering, scope }, Types::VOID))
    }

    pub(super) fn compare_exchange(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let weak = self.eat_word("weak");
        let volatile = self.eat_word("volatile");
        let pointer = self.pointer_operand(locals)?;
        self.sign(b',')?;
        let (ty, expected) = self.typed_operand(locals)?;
        self.check_pointee(pointer, ty, locals)?;
        self.sign(b',')?;
        let (new_type, new) = self.typed_operand(locals)?;
        self.same_type(new_type, ty)?;
        if !matches!(self.module.types.get(ty), Type::Integer(_) | Type::Pointer { .. }) {
            return Err(self.wrong_operand(ty, "an integer or a pointer"));
        }
        let scope = self.scope()?;
        let success = self.ordering()?;
        let failure = self.ordering()?;
        if matches!(failure, Ordering::Release | Ordering::AcquireRelease | Ordering::Unordered)
            || success == Ordering::Unordered
        {
            return Err(self.error("ir-syntax", "a compare-and-exchange cannot have these orderings"));
        }
        let align = self.align_tail()?;
        let result = self.type_id(Type::Struct { fields: Box::new([ty, Types::I1]), packed: false })?;
        let op =
            Op::CompareExchange { pointer, expected, new, weak, volatile, success, failure, scope, align };
        Ok((op, result))
    }

    pub(super) fn read_modify_write(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let volatile = self.eat_word("volatile");
        let op = match self.token() {
            Token::Word(word) => RmwOp::of_word(word),
            _ => None,
        };
        let Some(op) = op else {
            return Err(self.unsupported(format!("the operation {} of `atomicrmw`", self.token())));
        };
        self.advance();
        let pointer = self.pointer_operand(locals)?;
        self.sign(b',')?;
        let (ty, value) = self.typed_operand(locals)?;
        self.check_pointee(pointer, ty, locals)?;
        let types = &self.module.types;
        let fits = match types.get(ty) {
            Type::Integer(_) => !op.is_float(),
            Type::Float(_) => op.is_float() || op == RmwOp::Xchg,
            Type::Pointer { .. } => op == RmwOp::Xchg,
            Type::Vector { .. } => op.is_float(),
            _ => false,
        };
        if !fits {
            return Err(self.wrong_operand(ty, &format!("what `atomicrmw {}` works on", op.word())));
        }
        let scope = self.scope()?;
        let ordering = self.ordering()?;
        if ordering == Ordering::Unordered {
            return Err(self.error("ir-syntax", "a read-modify-write cannot have this ordering"));
        }
        let align = self.align_tail()?;
        Ok((Op::ReadModifyWrite { op, pointer, value, volatile, ordering, scope, align }, ty))
    }

    pub(super) fn get_element_ptr(&mut self, locals: &mut Locals) -> Parse<Parsed> {
        let mut flags = self.flags();
        if self.eat_word("inrange") {
            self.skip_brackets()?;
            flags.add(self.flags());
        }
        let source = self.ty()?;
        self.sign(b',')?;
        let (base_type, base) = self.typed_operand(locals)?;
        let mut indices = Vec::new();
        while self.eat_comma() {
            indices.push(self.typed_operand(locals)?.1);
        }
        let types: Vec<TypeId> = indices.iter().map(|&index| self.operand_type(index, locals)).collect();
        let constants: Vec<Option<ConstantId>> = indices
            .iter()
            .map(|index| match index {
                Operand::Constant(constant) => Some(*constant),
                Operand::Local(_) => None,
            })
            .collect();
        let result = self.element_pointer(source, base_type, &types, &constants)?;
        Ok((Op::GetElementPtr { source, base, indices: indices.into(), flags }, result))
    }

    /// A pointer of any type.
    pub(super) fn pointer_operand(&mut self, locals: &mut Locals) -> Parse<Operand> {
        let (ty, operand) = self.typed_operand(locals)?;
        match self.module.types.is_pointer(ty) {
            true => Ok(operand),
            false => Err(self.wrong_operand(ty, "a pointer")),
        }
    }

    /// A pointer with a pointee is used for accesses of that type only.
    fn check_pointee(&self, pointer: Operand, ty: TypeId, locals: &Locals) -> Parse<()> {
        self.check_stored(ty)?;
        let pointer = self.operand_type(pointer, locals);
        match *self.module.types.get(pointer) {
            Type::Pointer { pointee: Some(pointee), .. } if pointee != ty => {
                let types = &self.module.types;
                let (pointer, ty) = (types.display(pointer), types.display(ty));
                let message = format!("a pointer of type `{pointer}` does not point to a `{ty}`");
                Err(Box::new(Diagnostic::error("type-mismatch", message).at(self.last_span(), "")))
            }
            _ => Ok(()),
        }
    }

    /// Only values with a size are in memory.
    fn check_stored(&self, ty: TypeId) -> Parse<()> {
        let types = &self.module.types;
        match types.is_first_class(ty) && ty != Types::TOKEN {
            true => Ok(()),
            false => Err(self.wrong_operand(ty, "a type that can be in memory")),
        }
    }
}
