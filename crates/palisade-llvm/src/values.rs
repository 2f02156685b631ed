//! Constants and operands.

use crate::instructions::{BinaryOp, CastOp, Flags, IntPredicate};
use crate::module::{BlockId, FunctionId, SymbolId};
use crate::types::TypeId;
use palisade_base::define_id;

define_id! {
    /// A parameter or the result of an instruction, within one function.
    ValueId
}
define_id! {
    /// A constant of a module.
    ConstantId
}

/// What an instruction works on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A parameter or a result.
    Local(ValueId),
    /// A constant.
    Constant(ConstantId),
}

/// A constant and its type.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// The type.
    pub ty: TypeId,
    /// The value.
    pub kind: ConstantKind,
}

/// The value of a constant.
#[derive(Clone, PartialEq, Debug)]
pub enum ConstantKind {
    /// An integer. Bits above the width of the type are zero. For types of more than 128 bits, these are the
    /// lowest 128 bits, and the rest are copies of the highest of them.
    Integer(u128),
    /// A floating-point number, as it is written.
    Float(Box<str>),
    /// The null pointer.
    Null,
    /// Any value, possibly a different one at each use.
    Undef,
    /// A value that must not be used.
    Poison,
    /// Zero in all parts.
    Zero,
    /// The token that is no token.
    NoToken,
    /// An array of bytes, written as a string.
    Bytes(Box<[u8]>),
    /// The elements of an array, struct or vector.
    Aggregate(Box<[ConstantId]>),
    /// A vector in which all elements are this one.
    Splat(ConstantId),
    /// The address of a variable, function or alias.
    Symbol(SymbolId),
    /// The address of a basic block.
    BlockAddress {
        /// The function.
        function: FunctionId,
        /// Its block.
        block: BlockId,
    },
    /// What an instruction would make of constants.
    Expression(Expression),
}

/// A constant that is computed from others.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A conversion to the type of the constant.
    Cast {
        /// Which conversion.
        op: CastOp,
        /// What is converted.
        value: ConstantId,
    },
    /// The address of a part.
    GetElementPtr {
        /// The type that the indices are about.
        source: TypeId,
        /// The address of the whole.
        base: ConstantId,
        /// Which part.
        indices: Box<[ConstantId]>,
        /// `inbounds` and the like.
        flags: Flags,
    },
    /// Arithmetic.
    Binary {
        /// Which operation.
        op: BinaryOp,
        /// `nsw` and the like.
        flags: Flags,
        /// The left operand.
        left: ConstantId,
        /// The right operand.
        right: ConstantId,
    },
    /// A comparison of integers or pointers.
    Compare {
        /// Which comparison.
        predicate: IntPredicate,
        /// The left operand.
        left: ConstantId,
        /// The right operand.
        right: ConstantId,
    },
    /// One of two constants.
    Select {
        /// Which one.
        condition: ConstantId,
        /// If the condition is true.
        yes: ConstantId,
        /// If it is false.
        no: ConstantId,
    },
}

/// The value of an integer literal of `bits` bits, from its sign and magnitude. `None` if it does not fit,
/// whether it is meant as signed or as unsigned.
pub(crate) fn integer_bits(bits: u32, negative: bool, magnitude: u128) -> Option<u128> {
    let mask = if bits >= 128 { u128::MAX } else { (1 << bits) - 1 };
    let sign = if bits >= 128 { 1 << 127 } else { 1 << (bits - 1) };
    if negative {
        (magnitude <= sign).then(|| magnitude.wrapping_neg() & mask)
    } else if bits > 128 {
        // The bits above the lowest 128 are copies of the sign.
        (magnitude < sign).then_some(magnitude)
    } else {
        (magnitude <= mask).then_some(magnitude)
    }
}

#[cfg(test)]
mod tests {
    use super::integer_bits;

    #[test]
    fn literals_fit_signed_or_unsigned() {
        let check = |bits, negative, magnitude, expected| {
            assert_eq!(integer_bits(bits, negative, magnitude), expected, "i{bits} {negative} {magnitude}");
        };
        check(1, false, 1, Some(1));
        check(1, true, 1, Some(1));
        check(1, false, 2, None);
        check(8, false, 255, Some(255));
        check(8, true, 128, Some(128));
        check(8, true, 1, Some(255));
        check(8, true, 129, None);
        check(8, false, 256, None);
        check(64, true, 1 << 63, Some(1 << 63));
        check(64, false, 1 << 64, None);
        check(128, false, u128::MAX, Some(u128::MAX));
        check(128, true, 1 << 127, Some(1 << 127));
        check(200, false, u128::MAX, None);
        check(200, true, 1, Some(u128::MAX));
        check(200, true, 0, Some(0));
    }
}
