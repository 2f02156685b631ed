//! Types of operands: every operation gets what it works on, so that later stages can rely on it.

use super::{Parse, Parser};
use crate::instructions::{BinaryOp, CastOp};
use crate::types::{Type, TypeId, Types};
use crate::values::{ConstantId, ConstantKind};
use palisade_base::Diagnostic;

impl Parser<'_> {
    /// The error for an operand of the wrong type.
    pub(super) fn wrong_operand(&self, found: TypeId, expected: &str) -> Box<Diagnostic> {
        let message = format!("`{}` is not {expected}", self.module.types.display(found));
        Box::new(Diagnostic::error("type-mismatch", message).at(self.last_span(), ""))
    }

    pub(super) fn same_type(&self, found: TypeId, expected: TypeId) -> Parse<()> {
        if found == expected {
            return Ok(());
        }
        let types = &self.module.types;
        let (found, expected) = (types.display(found), types.display(expected));
        let message = format!("expected a value of type `{expected}`, found one of type `{found}`");
        Err(Box::new(Diagnostic::error("type-mismatch", message).at(self.last_span(), "")))
    }

    pub(super) fn check_integer(&self, ty: TypeId) -> Parse<()> {
        match self.module.types.integer_bits(ty) {
            Some(_) => Ok(()),
            None => Err(self.wrong_operand(ty, "an integer")),
        }
    }

    /// Floats or vectors of floats.
    pub(super) fn check_float(&self, ty: TypeId) -> Parse<()> {
        let types = &self.module.types;
        match types.get(types.scalar(ty)) {
            Type::Float(_) => Ok(()),
            _ => Err(self.wrong_operand(ty, "a floating-point number")),
        }
    }

    /// What arithmetic works on.
    pub(super) fn check_binary(&self, op: BinaryOp, ty: TypeId) -> Parse<()> {
        let types = &self.module.types;
        match types.get(types.scalar(ty)) {
            _ if op.is_float() => self.check_float(ty),
            Type::Integer(_) => Ok(()),
            _ => Err(self.wrong_operand(ty, "an integer")),
        }
    }

    /// What `icmp` compares.
    pub(super) fn check_compare(&self, ty: TypeId) -> Parse<()> {
        let types = &self.module.types;
        match types.get(types.scalar(ty)) {
            Type::Integer(_) | Type::Pointer { .. } => Ok(()),
            _ => Err(self.wrong_operand(ty, "an integer or a pointer")),
        }
    }

    /// The result of a comparison: `i1`, or a vector of them.
    pub(super) fn compare_type(&mut self, operands: TypeId) -> Parse<TypeId> {
        match *self.module.types.get(operands) {
            Type::Vector { length, scalable, .. } => {
                self.type_id(Type::Vector { element: Types::I1, length, scalable })
            }
            _ => Ok(Types::I1),
        }
    }

    /// The condition of a `select` between values of type `ty`.
    pub(super) fn check_condition(&self, condition: TypeId, ty: TypeId) -> Parse<()> {
        let types = &self.module.types;
        let fits = match (types.get(condition), types.get(ty)) {
            (Type::Vector { element, length, .. }, Type::Vector { length: other, .. }) => {
                *element == Types::I1 && length == other
            }
            _ => condition == Types::I1,
        };
        match fits {
            true => Ok(()),
            false => Err(self.wrong_operand(condition, "a condition")),
        }
    }

    pub(super) fn check_cast(&self, op: CastOp, from: TypeId, to: TypeId) -> Parse<()> {
        let types = &self.module.types;
        let lengths = [from, to].map(|ty| match types.get(ty) {
            Type::Vector { length, scalable, .. } => Some((*length, *scalable)),
            _ => None,
        });
        let (scalar_from, scalar_to) = (types.get(types.scalar(from)), types.get(types.scalar(to)));
        use Type::{Float, Integer, Pointer};
        let fits = match (op, scalar_from, scalar_to) {
            (CastOp::Trunc, Integer(a), Integer(b)) => a > b,
            (CastOp::ZExt | CastOp::SExt, Integer(a), Integer(b)) => a < b,
            (CastOp::FpTrunc, Float(a), Float(b)) => a.bits() > b.bits(),
            (CastOp::FpExt, Float(a), Float(b)) => a.bits() < b.bits(),
            (CastOp::FpToUi | CastOp::FpToSi, Float(_), Integer(_)) => true,
            (CastOp::UiToFp | CastOp::SiToFp, Integer(_), Float(_)) => true,
            (CastOp::PtrToInt | CastOp::PtrToAddr, Pointer { .. }, Integer(_)) => true,
            (CastOp::IntToPtr, Integer(_), Pointer { .. }) => true,
            (CastOp::AddrSpaceCast, Pointer { address_space: a, .. }, Pointer { address_space: b, .. }) => {
                a != b
            }
            (CastOp::BitCast, Pointer { address_space: a, .. }, Pointer { address_space: b, .. }) => a == b,
            (CastOp::BitCast, Pointer { .. }, _) | (CastOp::BitCast, _, Pointer { .. }) => false,
            (CastOp::BitCast, ..) => return self.check_bitcast(from, to),
            _ => false,
        };
        match fits && lengths[0] == lengths[1] {
            true => Ok(()),
            false => Err(self.wrong_cast(op, from, to)),
        }
    }

    fn wrong_cast(&self, op: CastOp, from: TypeId, to: TypeId) -> Box<Diagnostic> {
        let (from, to) = (self.module.types.display(from), self.module.types.display(to));
        let message = format!("`{}` does not convert `{from}` to `{to}`", op.word());
        Box::new(Diagnostic::error("type-mismatch", message).at(self.last_span(), ""))
    }

    /// The bits of both types are as many.
    fn check_bitcast(&self, from: TypeId, to: TypeId) -> Parse<()> {
        let bits = |ty: TypeId| -> Option<u64> {
            let types = &self.module.types;
            let (scalar, length) = match types.get(ty) {
                Type::Vector { element, length, scalable: false } => (*element, *length),
                Type::Vector { .. } => return None,
                _ => (ty, 1),
            };
            match types.get(scalar) {
                Type::Integer(bits) => u64::from(*bits).checked_mul(length),
                Type::Float(kind) => u64::from(kind.bits()).checked_mul(length),
                _ => None,
            }
        };
        match (bits(from), bits(to)) {
            (Some(a), Some(b)) if a == b => Ok(()),
            _ => Err(self.wrong_cast(CastOp::BitCast, from, to)),
        }
    }

    /// The type of a `getelementptr`. `constants` are the indices that are constants.
    pub(super) fn element_pointer(
        &mut self,
        source: TypeId,
        base: TypeId,
        indices: &[TypeId],
        constants: &[Option<ConstantId>],
    ) -> Parse<TypeId> {
        let types = &self.module.types;
        let &Type::Pointer { pointee, address_space } = types.get(types.scalar(base)) else {
            return Err(self.wrong_operand(base, "a pointer"));
        };
        if pointee.is_some_and(|pointee| pointee != source) {
            return Err(self.wrong_operand(base, &format!("a pointer to `{}`", types.display(source))));
        }
        let mut vector = None;
        for &ty in [base].iter().chain(indices) {
            if let Type::Vector { length, scalable, .. } = *types.get(ty) {
                vector = Some((length, scalable));
            }
        }
        // The first index is about whole objects, the others are about parts.
        let mut element = source;
        for (&ty, &constant) in indices.iter().zip(constants).skip(1) {
            element = self.part(element, ty, constant)?;
        }
        if let Some(&first) = indices.first() {
            self.check_index(first)?;
        }
        let pointee = pointee.map(|_| element);
        let pointer = self.type_id(Type::Pointer { pointee, address_space })?;
        match vector {
            Some((length, scalable)) => self.type_id(Type::Vector { element: pointer, length, scalable }),
            None => Ok(pointer),
        }
    }

    fn check_index(&self, ty: TypeId) -> Parse<()> {
        self.check_integer(self.module.types.scalar(ty))
    }

    /// The part of a type that an index selects. Which field of a struct it is must be known.
    fn part(&self, whole: TypeId, index: TypeId, constant: Option<ConstantId>) -> Parse<TypeId> {
        self.check_index(index)?;
        let types = &self.module.types;
        match types.body(whole) {
            Type::Array { element, .. } | Type::Vector { element, .. } => Ok(*element),
            Type::Struct { fields, .. } => {
                let kind = constant.map(|constant| &self.module.constants[constant].kind);
                let field = match kind {
                    Some(ConstantKind::Integer(field)) => usize::try_from(*field).ok(),
                    Some(ConstantKind::Zero) => Some(0),
                    Some(ConstantKind::Splat(splat)) => match self.module.constants[*splat].kind {
                        ConstantKind::Integer(field) => usize::try_from(field).ok(),
                        _ => None,
                    },
                    _ => None,
                };
                match field.and_then(|field| fields.get(field)) {
                    Some(&field) => Ok(field),
                    None => Err(self.wrong_operand(whole, "a type with such a field")),
                }
            }
            _ => Err(self.wrong_operand(whole, "a type with parts")),
        }
    }
}
