//! Arithmetic intrinsics of LLVM, as rustc uses them: checked and saturating operations, minima, and counts of bits.

use crate::expr::{self, Expr};
use crate::flat::StepKind;
use crate::inline::{Generator, Refused};
use crate::memory::Val;
use palisade_llvm::values::Operand;
use palisade_program::written::{BinaryOp, Check};

/// An operation that may leave the range of its width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Sub,
    Mul,
}

impl Generator<'_, '_> {
    /// `None` if the name is not known here.
    pub(super) fn intrinsic(&mut self, name: &str, operands: &[Operand]) -> Result<Option<Val>, Refused> {
        let Some(name) = name.strip_prefix("llvm.") else { return Ok(None) };
        let Some((name, width)) = name.rsplit_once(".i") else { return Ok(None) };
        let Some(width) = width.parse().ok().filter(|width| (8..=64).contains(width)) else {
            return Ok(None);
        };
        let (signed, rest) = (name.starts_with('s'), name.get(1..).unwrap_or_default());
        let operation = |word: &str| match word {
            "add" => Some(Operation::Add),
            "sub" => Some(Operation::Sub),
            "mul" => Some(Operation::Mul),
            _ => None,
        };
        if let Some(operation) = rest.strip_suffix(".with.overflow").and_then(operation) {
            let (a, b) = (self.known_once(operands, 0)?, self.known_once(operands, 1)?);
            let (value, left) = self.or_overflow(operation, signed, width, a, b)?;
            return Ok(Some(Val::Aggregate(vec![Val::Scalar(value), Val::Scalar(left)])));
        }
        let value = match name {
            "umax" | "umin" | "smax" | "smin" => {
                let (a, b) = (self.known_once(operands, 0)?, self.known_once(operands, 1)?);
                let less = self.less(name.starts_with('s'), width, a.clone(), b.clone());
                let (if_less, otherwise) = if name.ends_with("min") { (a, b) } else { (b, a) };
                self.choose(less, if_less, otherwise)
            }
            "usub.sat" => {
                let (a, b) = (self.known_once(operands, 0)?, self.known_once(operands, 1)?);
                let (value, left) = self.or_overflow(Operation::Sub, false, width, a, b)?;
                self.choose(left, Expr::Int(0), value)
            }
            "uadd.sat" => {
                let (a, b) = (self.known_once(operands, 0)?, self.known_once(operands, 1)?);
                let (value, left) = self.or_overflow(Operation::Add, false, width, a, b)?;
                self.choose(left, Expr::Int(-1), value)
            }
            "ctpop" => {
                let value = self.operand(operands, 0)?;
                let value = expr::unsigned(width, value, &self.code.registers);
                self.count_bits(value)
            }
            "cttz" | "ctlz" => {
                let value = self.operand(operands, 0)?;
                let value = expr::unsigned(width, value, &self.code.registers);
                let word = self.in_register(value);
                // The count for 0 may be left open.
                if self.operand(operands, 1)? != Expr::Int(0) {
                    let some = self.binary(BinaryOp::Ne, word.clone(), Expr::Int(0));
                    self.step(StepKind::Assert(some, Check::Value));
                }
                match name {
                    "cttz" => self.count_zeros_below(width, word),
                    _ => self.count_zeros_above(width, word),
                }
            }
            "bswap" => {
                let value = self.operand(operands, 0)?;
                let value = expr::unsigned(width, value, &self.code.registers);
                let word = self.in_register(value);
                let mut sum = Expr::Int(0);
                for byte in 0..i64::from(width / 8) {
                    let moved = self.binary(BinaryOp::WordShr, word.clone(), Expr::Int(8 * byte));
                    let one = self.binary(BinaryOp::BitAnd, moved, Expr::Int(255));
                    let to = i64::from(width) - 8 - 8 * byte;
                    let put = self.binary(BinaryOp::WordMul, one, Expr::Int(1i64.wrapping_shl(to as u32)));
                    let both = self.binary(BinaryOp::BitOr, sum, put);
                    sum = self.in_register(both);
                }
                self.wrap(width, sum)
            }
            _ => return Ok(None),
        };
        Ok(Some(Val::Scalar(value)))
    }

    /// An argument that is used several times.
    fn known_once(&mut self, operands: &[Operand], index: usize) -> Result<Expr, Refused> {
        let value = self.operand(operands, index)?;
        Ok(self.in_register(value))
    }

    /// An expression that is evaluated once.
    pub(super) fn in_register(&mut self, e: Expr) -> Expr {
        if e.size() == 1 {
            return e;
        }
        let register = self.temporary(64);
        self.step(StepKind::Assign(register, e));
        Expr::Reg(register)
    }

    fn less(&self, signed: bool, width: u32, a: Expr, b: Expr) -> Expr {
        if signed {
            return self.binary(BinaryOp::Lt, a, b);
        }
        let [a, b] = [a, b].map(|e| expr::unsigned(width, e, &self.code.registers));
        self.binary(if width == 64 { BinaryOp::WordLt } else { BinaryOp::Lt }, a, b)
    }

    /// One of two values, without a branch: `b ^ ((a ^ b) & -condition)`.
    fn choose(&mut self, condition: Expr, a: Expr, b: Expr) -> Expr {
        let (a, b) = (self.in_register(a), self.in_register(b));
        let ones = self.binary(BinaryOp::WordSub, Expr::Int(0), condition);
        let differing = self.binary(BinaryOp::BitXor, a, b.clone());
        let chosen = self.binary(BinaryOp::BitAnd, differing, ones);
        self.binary(BinaryOp::BitXor, b, chosen)
    }

    /// The result of an operation, and whether it leaves the range.
    fn or_overflow(
        &mut self,
        operation: Operation,
        signed: bool,
        width: u32,
        a: Expr,
        b: Expr,
    ) -> Result<(Expr, Expr), Refused> {
        let op = match operation {
            Operation::Add => BinaryOp::WordAdd,
            Operation::Sub => BinaryOp::WordSub,
            Operation::Mul => BinaryOp::WordMul,
        };
        if width <= 32 || width < 64 && operation != Operation::Mul {
            // The exact result fits into a word.
            let exact = |e: Expr| if signed { e } else { expr::unsigned(width, e, &self.code.registers) };
            let (x, y) = (exact(a), exact(b));
            let exact = self.binary(op, x, y);
            let exact = self.in_register(exact);
            let value = self.wrap(width, exact.clone());
            let back = if signed {
                value.clone()
            } else {
                expr::unsigned(width, value.clone(), &self.code.registers)
            };
            let left = self.binary(BinaryOp::Ne, back, exact);
            return Ok((value, left));
        }
        let sum = self.binary(op, a.clone(), b.clone());
        let value = self.in_register(sum);
        let negative = |this: &Self, e| this.binary(BinaryOp::Lt, e, Expr::Int(0));
        let left = match (operation, signed) {
            (Operation::Add, false) => self.binary(BinaryOp::WordLt, value.clone(), a),
            (Operation::Sub, false) => self.binary(BinaryOp::WordLt, a, b),
            (Operation::Add, true) => {
                // Both operands have the sign that the result lacks.
                let x = self.binary(BinaryOp::BitXor, a, value.clone());
                let y = self.binary(BinaryOp::BitXor, b, value.clone());
                negative(self, self.binary(BinaryOp::BitAnd, x, y))
            }
            (Operation::Sub, true) => {
                let x = self.binary(BinaryOp::BitXor, a.clone(), b);
                let y = self.binary(BinaryOp::BitXor, a, value.clone());
                negative(self, self.binary(BinaryOp::BitAnd, x, y))
            }
            (Operation::Mul, false) => {
                // Division takes a wrong product apart. Nothing is divided by 0.
                let zero = self.binary(BinaryOp::Eq, a.clone(), Expr::Int(0));
                let divisor = self.binary(BinaryOp::BitOr, a.clone(), zero);
                let quotient = self.binary(BinaryOp::WordDiv, value.clone(), divisor);
                let differs = self.binary(BinaryOp::Ne, quotient, b);
                let some = self.binary(BinaryOp::Ne, a, Expr::Int(0));
                self.binary(BinaryOp::And, some, differs)
            }
            (Operation::Mul, true) => {
                return Err(self.refuse("a checked product of signed numbers of 64 bits"));
            }
        };
        Ok((value, left))
    }

    /// How many bits below the lowest one that is set are not.
    fn count_zeros_below(&mut self, width: u32, word: Expr) -> Expr {
        // A bit above all others ends the count.
        let word = match width {
            64 => word,
            width => self.binary(BinaryOp::BitOr, word, Expr::Int(1 << width)),
        };
        let word = self.in_register(word);
        let less = self.binary(BinaryOp::WordSub, word.clone(), Expr::Int(1));
        let rest = self.binary(BinaryOp::BitXor, word, Expr::Int(-1));
        let below = self.binary(BinaryOp::BitAnd, less, rest);
        self.count_bits(below)
    }

    /// How many bits above the highest one that is set are not.
    fn count_zeros_above(&mut self, width: u32, word: Expr) -> Expr {
        let mut filled = word;
        for by in [1, 2, 4, 8, 16, 32] {
            let moved = self.binary(BinaryOp::WordShr, filled.clone(), Expr::Int(by));
            let both = self.binary(BinaryOp::BitOr, filled, moved);
            filled = self.in_register(both);
        }
        let bits = self.count_bits(filled);
        self.binary(BinaryOp::WordSub, Expr::Int(i64::from(width)), bits)
    }

    /// How many bits of a word are set: sums of 2, 4 and 8 bits side by side, which a product adds up.
    fn count_bits(&mut self, word: Expr) -> Expr {
        let shift = |this: &Self, e, by| this.binary(BinaryOp::WordShr, e, Expr::Int(by));
        let and = |this: &Self, e, mask: u64| this.binary(BinaryOp::BitAnd, e, Expr::Int(mask as i64));
        let x = self.in_register(word);
        let odd = and(self, shift(self, x.clone(), 1), 0x5555_5555_5555_5555);
        let difference = self.binary(BinaryOp::WordSub, x, odd);
        let x = self.in_register(difference);
        let high = and(self, shift(self, x.clone(), 2), 0x3333_3333_3333_3333);
        let sum = self.binary(BinaryOp::WordAdd, and(self, x, 0x3333_3333_3333_3333), high);
        let x = self.in_register(sum);
        let sum = self.binary(BinaryOp::WordAdd, x.clone(), shift(self, x, 4));
        let x = and(self, sum, 0x0f0f_0f0f_0f0f_0f0f);
        let product = self.binary(BinaryOp::WordMul, x, Expr::Int(0x0101_0101_0101_0101));
        shift(self, product, 56)
    }
}
