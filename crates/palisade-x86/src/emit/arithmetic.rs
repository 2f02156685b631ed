//! Arithmetic on integers: sums, logic, shifts, products, quotients, single bits.
//!
//! *Source.* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

use super::flags::Flags;
use super::operands::constant;
use super::{Emitter, Value};
use crate::decode::Code;
use crate::state::{DEFINED, Known};
use iced_x86::{Mnemonic, OpKind, Register};

/// The accumulator and the register above it, by width.
pub(super) fn accumulators(width: u32) -> (Register, Register) {
    match width {
        16 => (Register::AX, Register::DX),
        32 => (Register::EAX, Register::EDX),
        _ => (Register::RAX, Register::RDX),
    }
}

impl Emitter<'_, '_> {
    /// Whether both operands are the same register.
    pub(super) fn is_same(&self, code: &Code) -> bool {
        let instruction = &code.instruction;
        instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register()
    }

    pub(super) fn sum(&mut self, code: &Code) {
        let mnemonic = code.instruction.mnemonic();
        let width = self.width(code, 0);
        if mnemonic == Mnemonic::Sbb && self.is_same(code) {
            // All bits are the carry flag.
            let carry = self.carry();
            let result = self.sign_extend(&carry, width);
            self.write(code, 0, None, &result, DEFINED);
            self.flags =
                Flags::Given { carry: Some(carry), overflow: Some(constant(1, 0)), result: Some(result) };
            return;
        }
        let b = self.read(code, 1, width);
        let (address, a) = self.target(code, width);
        let (op, add) = match mnemonic {
            Mnemonic::Add | Mnemonic::Adc => ("add", true),
            _ => ("sub", false),
        };
        let part = self.bits(op, &a, &b);
        let flags = match mnemonic {
            Mnemonic::Adc | Mnemonic::Sbb => {
                let carry = self.carry();
                let wide = self.zero_extend(&carry, width);
                let result = self.bits(op, &part, &wide);
                let (first, rest) = match add {
                    true => (("ult", &part, &a), ("ult", &result, &part)),
                    false => (("ult", &a, &b), ("ult", &part, &wide)),
                };
                let test = |e: &mut Self, (predicate, x, y): (&str, &Value, &Value)| {
                    e.value(1, format!("icmp {predicate} i{width} {}, {}", x.text, y.text))
                };
                let (first, rest) = (test(self, first), test(self, rest));
                let carry = self.bits("or", &first, &rest);
                let x = match add {
                    true => self.bits("xor", &b, &result),
                    false => self.bits("xor", &a, &b),
                };
                let y = self.bits("xor", &a, &result);
                let both = self.bits("and", &x, &y);
                let overflow = self.value(1, format!("icmp slt i{width} {}, 0", both.text));
                self.write(code, 0, address.as_ref(), &result, DEFINED);
                Flags::Given { carry: Some(carry), overflow: Some(overflow), result: Some(result) }
            }
            _ => {
                if mnemonic != Mnemonic::Cmp {
                    self.write(code, 0, address.as_ref(), &part, DEFINED);
                }
                match add {
                    true => Flags::Sum { a, b, result: part },
                    false => Flags::Difference { a, b, result: part },
                }
            }
        };
        self.flags = flags;
    }

    pub(super) fn logic(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let mnemonic = code.instruction.mnemonic();
        let all = match code.instruction.op1_kind() {
            OpKind::Register | OpKind::Memory => None,
            _ if code.immediate.is_some() => None,
            _ => Some(code.instruction.immediate(1) as i64),
        };
        // Only some bits of the first operand may be defined, if the others do not matter.
        let masked = match (mnemonic, all, code.instruction.op0_kind()) {
            (Mnemonic::And | Mnemonic::Test, Some(mask @ 0..), OpKind::Register) => 64 - mask.leading_zeros(),
            _ => width,
        };
        if mnemonic == Mnemonic::Or && all == Some(-1) {
            let ones = constant(width, -1);
            let address = (code.instruction.op0_kind() == OpKind::Memory).then(|| self.address(code));
            if let Some(address) = &address {
                self.load(address, width);
            }
            self.write(code, 0, address.as_ref(), &ones, DEFINED);
            self.flags = Flags::Logic { result: ones };
            return;
        }
        let b = self.read(code, 1, width);
        let (address, a) = match masked < width {
            true => {
                let (value, known) = self.copy(code, 0, width);
                match known {
                    Known::Frame(at) => (None, self.frame_address(at)),
                    known if known.bits() < masked => (None, self.read(code, 0, width)),
                    _ => (None, value),
                }
            }
            false => self.target(code, width),
        };
        let op = match mnemonic {
            Mnemonic::And | Mnemonic::Test => "and",
            Mnemonic::Or => "or",
            _ => "xor",
        };
        // A value and itself is the value.
        let result = if self.is_same(code) && op != "xor" { a } else { self.bits(op, &a, &b) };
        if mnemonic != Mnemonic::Test {
            self.write(code, 0, address.as_ref(), &result, DEFINED);
        }
        self.flags = Flags::Logic { result };
    }

    /// The number of bits of a shift: a constant, or a value that is small enough.
    fn count(&mut self, code: &Code, width: u32) -> Result<u32, Value> {
        let mask = if width == 64 { 63 } else { 31 };
        match code.instruction.op1_kind() {
            OpKind::Register => {
                let count = self.read_register(Register::CL);
                let count = self.zero_extend(&count, 64);
                Err(self.value(64, format!("and i64 {}, {mask}", count.text)))
            }
            _ => Ok(code.instruction.immediate(1) as u32 & mask),
        }
    }

    pub(super) fn shift(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let mnemonic = code.instruction.mnemonic();
        let count = self.count(code, width);
        let (address, a) = self.target(code, width);
        if count == Ok(0) {
            self.write(code, 0, address.as_ref(), &a, DEFINED);
            return;
        }
        // Narrow values are shifted as wide ones: the count may be larger than the width.
        let wide = match mnemonic {
            Mnemonic::Sar => self.sign_extend(&a, 64),
            _ => self.zero_extend(&a, 64),
        };
        let op = match mnemonic {
            Mnemonic::Shr => "lshr",
            Mnemonic::Sar => "ashr",
            _ => "shl",
        };
        let by = match &count {
            Ok(count) => constant(64, i64::from(*count)),
            Err(count) => count.clone(),
        };
        let moved = self.bits(op, &wide, &by);
        let result = self.truncate(&moved, width);
        self.write(code, 0, address.as_ref(), &result, DEFINED);
        self.flags = match count {
            // If nothing is shifted the flags stay as they are: compilers do not use them.
            Err(_) => Flags::Undefined,
            Ok(count) => {
                // The last bit that was shifted out.
                let last = match mnemonic {
                    Mnemonic::Shr | Mnemonic::Sar => i64::from(count) - 1,
                    _ => i64::from(width) - i64::from(count),
                };
                let carry = (0..64).contains(&last).then(|| {
                    let bit = self.value(64, format!("lshr i64 {}, {last}", wide.text));
                    self.truncate(&bit, 1)
                });
                Flags::Given { carry, overflow: None, result: Some(result) }
            }
        };
    }

    pub(super) fn rotate(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let count = match self.count(code, width) {
            Ok(count) => constant(width, i64::from(count % width)),
            Err(count) => {
                let count = self.truncate(&count, width);
                self.bits("and", &count, &constant(width, i64::from(width) - 1))
            }
        };
        let (address, a) = self.target(code, width);
        let rest = self.bits("sub", &constant(width, i64::from(width)), &count);
        let rest = self.bits("and", &rest, &constant(width, i64::from(width) - 1));
        let (left, right) = match code.instruction.mnemonic() {
            Mnemonic::Rol => (count, rest),
            _ => (rest, count),
        };
        let (up, down) = (self.bits("shl", &a, &left), self.bits("lshr", &a, &right));
        let result = self.bits("or", &up, &down);
        self.write(code, 0, address.as_ref(), &result, DEFINED);
        self.flags = Flags::Undefined;
    }

    pub(super) fn multiply(&mut self, code: &Code) {
        let instruction = &code.instruction;
        let width = self.width(code, 0);
        let signed = instruction.mnemonic() == Mnemonic::Imul;
        if instruction.op_count() == 1 {
            let (low, high) = accumulators(width);
            let b = self.read(code, 0, width);
            let a = self.read_register(low);
            let (first, second) = match width {
                64 => self.wide_product(&a, &b, signed),
                width => {
                    let (a, b) = match signed {
                        true => (self.sign_extend(&a, 64), self.sign_extend(&b, 64)),
                        false => (self.zero_extend(&a, 64), self.zero_extend(&b, 64)),
                    };
                    let all = self.bits("mul", &a, &b);
                    let up = self.value(64, format!("lshr i64 {}, {width}", all.text));
                    (self.truncate(&all, width), self.truncate(&up, width))
                }
            };
            self.write_register(low, &first, DEFINED);
            self.write_register(high, &second, DEFINED);
            // Whether the upper half is needed.
            let expected = match signed {
                true => self.value(width, format!("ashr i{width} {}, {}", first.text, width - 1)),
                false => constant(width, 0),
            };
            let more = self.value(1, format!("icmp ne i{width} {}, {}", second.text, expected.text));
            self.flags = Flags::Given { carry: Some(more.clone()), overflow: Some(more), result: None };
            return;
        }
        let (first, second) = if instruction.op_count() == 3 { (1, 2) } else { (0, 1) };
        let (a, b) = (self.read(code, first, width), self.read(code, second, width));
        let result = self.bits("mul", &a, &b);
        self.write(code, 0, None, &result, DEFINED);
        let high = match width {
            64 => self.wide_product(&a, &b, true).1,
            width => {
                let (a, b) = (self.sign_extend(&a, 64), self.sign_extend(&b, 64));
                let all = self.bits("mul", &a, &b);
                let up = self.value(64, format!("lshr i64 {}, {width}", all.text));
                self.truncate(&up, width)
            }
        };
        let expected = self.value(width, format!("ashr i{width} {}, {}", result.text, width - 1));
        let more = self.value(1, format!("icmp ne i{width} {}, {}", high.text, expected.text));
        self.flags = Flags::Given { carry: Some(more.clone()), overflow: Some(more), result: None };
    }

    /// The lower and the upper half of the product of two values of 64 bits, from products of 32 bits.
    fn wide_product(&mut self, a: &Value, b: &Value, signed: bool) -> (Value, Value) {
        let low = |e: &mut Self, v: &Value| e.value(64, format!("and i64 {}, 4294967295", v.text));
        let high = |e: &mut Self, v: &Value| e.value(64, format!("lshr i64 {}, 32", v.text));
        let (a0, a1, b0, b1) = (low(self, a), high(self, a), low(self, b), high(self, b));
        let (p00, p01) = (self.bits("mul", &a0, &b0), self.bits("mul", &a0, &b1));
        let (p10, p11) = (self.bits("mul", &a1, &b0), self.bits("mul", &a1, &b1));
        let carried = high(self, &p00);
        let middle = self.bits("add", &p10, &carried);
        let (middle_low, middle_high) = (low(self, &middle), high(self, &middle));
        let second = self.bits("add", &p01, &middle_low);
        let second_high = high(self, &second);
        let upper = self.bits("add", &p11, &middle_high);
        let mut upper = self.bits("add", &upper, &second_high);
        let lower = self.bits("mul", a, b);
        if signed {
            for (x, y) in [(a, b), (b, a)] {
                let sign = self.value(64, format!("ashr i64 {}, 63", x.text));
                let part = self.bits("and", &sign, y);
                upper = self.bits("sub", &upper, &part);
            }
        }
        (lower, upper)
    }

    pub(super) fn divide(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let signed = code.instruction.mnemonic() == Mnemonic::Idiv;
        let divisor = self.read(code, 0, width);
        if width == 8 {
            return self.divide_byte(&divisor, signed);
        }
        let (low, high) = accumulators(width);
        let (a, upper) = (self.read_register(low), self.read_register(high));
        // Compilers extend the dividend.
        let expected = match signed {
            true => self.value(width, format!("ashr i{width} {}, {}", a.text, width - 1)),
            false => constant(width, 0),
        };
        let fits = self.value(1, format!("icmp eq i{width} {}, {}", upper.text, expected.text));
        self.give_up_unless(&fits);
        let (quotient, rest) = if signed { ("sdiv", "srem") } else { ("udiv", "urem") };
        let (quotient, rest) = (self.bits(quotient, &a, &divisor), self.bits(rest, &a, &divisor));
        self.write_register(low, &quotient, DEFINED);
        self.write_register(high, &rest, DEFINED);
        self.flags = Flags::Undefined;
    }

    /// A division of a number of 16 bits, `ax`, by one of 8.
    fn divide_byte(&mut self, divisor: &Value, signed: bool) {
        let a = self.read_register(Register::AX);
        let (divisor, quotient, rest) = match signed {
            true => (self.sign_extend(divisor, 16), "sdiv", "srem"),
            false => (self.zero_extend(divisor, 16), "udiv", "urem"),
        };
        let (quotient, rest) = (self.bits(quotient, &a, &divisor), self.bits(rest, &a, &divisor));
        let narrow = self.truncate(&quotient, 8);
        let again = if signed { self.sign_extend(&narrow, 16) } else { self.zero_extend(&narrow, 16) };
        let fits = self.value(1, format!("icmp eq i16 {}, {}", quotient.text, again.text));
        self.give_up_unless(&fits);
        let rest = self.truncate(&rest, 8);
        self.write_register(Register::AL, &narrow, DEFINED);
        self.write_register(Register::AH, &rest, DEFINED);
        self.flags = Flags::Undefined;
    }

    /// Tests a bit, and may change it.
    pub(super) fn bit(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let is_register = code.instruction.op0_kind() == OpKind::Register;
        let index = match code.instruction.op1_kind() {
            OpKind::Register if !is_register => return self.unknown(code),
            OpKind::Register => {
                let index = self.read(code, 1, width);
                self.bits("and", &index, &constant(width, i64::from(width) - 1))
            }
            _ => constant(width, (code.instruction.immediate(1) & u64::from(width - 1)) as i64),
        };
        let (address, a) = self.target(code, width);
        let moved = self.bits("lshr", &a, &index);
        let carry = self.truncate(&moved, 1);
        let one = self.bits("shl", &constant(width, 1), &index);
        let result = match code.instruction.mnemonic() {
            Mnemonic::Bts => Some(self.bits("or", &a, &one)),
            Mnemonic::Btc => Some(self.bits("xor", &a, &one)),
            Mnemonic::Btr => {
                let others = self.bits("xor", &one, &constant(width, -1));
                Some(self.bits("and", &a, &others))
            }
            _ => None,
        };
        if let Some(result) = result {
            self.write(code, 0, address.as_ref(), &result, DEFINED);
        }
        self.flags = Flags::Given { carry: Some(carry), overflow: None, result: None };
    }

    pub(super) fn swap_bytes(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let a = self.read(code, 0, width);
        let mut sum = constant(width, 0);
        for byte in 0..width / 8 {
            let moved = self.value(width, format!("lshr i{width} {}, {}", a.text, 8 * byte));
            let one = self.bits("and", &moved, &constant(width, 255));
            let put = self.value(width, format!("shl i{width} {}, {}", one.text, width - 8 - 8 * byte));
            sum = self.bits("or", &sum, &put);
        }
        self.write(code, 0, None, &sum, DEFINED);
    }
}
