//! Instructions on integers.
//!
//! *Source.* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

use super::flags::Flags;
use super::operands::constant;
use super::{Emitter, Value};
use crate::decode::Code;
use crate::registers::{Gpr, RBP, RSP};
use crate::state::{DEFINED, Known};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

/// The accumulator and the register above it, by width.
fn accumulators(width: u32) -> (Register, Register) {
    match width {
        16 => (Register::AX, Register::DX),
        32 => (Register::EAX, Register::EDX),
        _ => (Register::RAX, Register::RDX),
    }
}

/// Whether an instruction is `setcc` or `cmovcc`.
fn is_conditional(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic());
    instruction.condition_code() != ConditionCode::None
        && (name.starts_with("Set") || name.starts_with("Cmov"))
}

impl Emitter<'_, '_> {
    /// An instruction other than a jump.
    pub(super) fn instruction(&mut self, code: &Code) {
        let instruction = &code.instruction;
        if let Some(why) = &code.refused {
            let why = why.clone();
            return self.refuse(why);
        }
        if instruction.is_call_near() || instruction.is_call_near_indirect() {
            return self.call(code);
        }
        if instruction.has_lock_prefix() && self.locked(code) {
            return;
        }
        if self.vector(code) {
            return;
        }
        match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Pause | Mnemonic::Lfence | Mnemonic::Cld => {}
            Mnemonic::Prefetcht0 | Mnemonic::Prefetcht1 | Mnemonic::Prefetcht2 | Mnemonic::Prefetchnta => {}
            Mnemonic::Prefetchw => {}
            Mnemonic::Mfence => self.line("fence seq_cst"),
            Mnemonic::Sfence => {
                self.declare("llvm.x86.sse.sfence", "void ()");
                self.line("call void @llvm.x86.sse.sfence()");
            }
            Mnemonic::Mov => self.mov(code),
            Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                let (to, from) = (self.width(code, 0), self.width(code, 1));
                let value = self.read(code, 1, from);
                let value = match instruction.mnemonic() {
                    Mnemonic::Movzx => self.zero_extend(&value, to),
                    _ => self.sign_extend(&value, to),
                };
                self.write(code, 0, None, &value, DEFINED);
            }
            Mnemonic::Lea => self.lea(code),
            Mnemonic::Push => {
                let (value, known) = self.copy(code, 0, 64);
                self.push(&value, known);
            }
            Mnemonic::Pop => {
                let (value, known) = self.pop();
                self.write(code, 0, None, &value, known);
            }
            Mnemonic::Leave => {
                let frame = self.state.get(RBP);
                self.state.set(RSP, frame);
                let (value, known) = self.pop();
                self.write_register(Register::RBP, &value, known);
            }
            Mnemonic::Add | Mnemonic::Sub if self.moves_frame(code) => {}
            Mnemonic::And if self.aligns_stack(code) => {}
            Mnemonic::Xor | Mnemonic::Sub if self.is_same(code) => {
                let zero = constant(self.width(code, 0), 0);
                self.write(code, 0, None, &zero, DEFINED);
                self.flags = Flags::Logic { result: zero };
            }
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Cmp | Mnemonic::Adc | Mnemonic::Sbb => self.sum(code),
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test => self.logic(code),
            Mnemonic::Inc | Mnemonic::Dec => {
                // The carry flag stays as it is.
                let kept = match &self.flags {
                    Flags::Undefined | Flags::Given { carry: None, .. } => None,
                    _ => Some(self.carry()),
                };
                let width = self.width(code, 0);
                let (address, a) = self.target(code, width);
                let (op, last) = match instruction.mnemonic() {
                    Mnemonic::Inc => ("add", i64::MIN >> (64 - width)),
                    _ => ("sub", !(i64::MIN >> (64 - width))),
                };
                let result = self.bits(op, &a, &constant(width, 1));
                let last = constant(width, last);
                let overflow = self.value(1, format!("icmp eq i{width} {}, {}", result.text, last.text));
                self.write(code, 0, address.as_ref(), &result, DEFINED);
                self.flags = Flags::Given { carry: kept, overflow: Some(overflow), result: Some(result) };
            }
            Mnemonic::Neg => {
                let width = self.width(code, 0);
                let (address, b) = self.target(code, width);
                let a = constant(width, 0);
                let result = self.bits("sub", &a, &b);
                self.write(code, 0, address.as_ref(), &result, DEFINED);
                self.flags = Flags::Difference { a, b, result };
            }
            Mnemonic::Not => {
                let width = self.width(code, 0);
                let (address, a) = self.target(code, width);
                let result = self.bits("xor", &a, &constant(width, -1));
                self.write(code, 0, address.as_ref(), &result, DEFINED);
            }
            Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar => self.shift(code),
            Mnemonic::Rol | Mnemonic::Ror => self.rotate(code),
            Mnemonic::Imul | Mnemonic::Mul => self.multiply(code),
            Mnemonic::Div | Mnemonic::Idiv => self.divide(code),
            Mnemonic::Cbw | Mnemonic::Cwde | Mnemonic::Cdqe => {
                let (from, to) = match instruction.mnemonic() {
                    Mnemonic::Cbw => (Register::AL, Register::AX),
                    Mnemonic::Cwde => (Register::AX, Register::EAX),
                    _ => (Register::EAX, Register::RAX),
                };
                let value = self.read_register(from);
                let value = self.sign_extend(&value, 8 * to.size() as u32);
                self.write_register(to, &value, DEFINED);
            }
            Mnemonic::Cwd | Mnemonic::Cdq | Mnemonic::Cqo => {
                let width = match instruction.mnemonic() {
                    Mnemonic::Cwd => 16,
                    Mnemonic::Cdq => 32,
                    _ => 64,
                };
                let (low, high) = accumulators(width);
                let value = self.read_register(low);
                let sign = self.value(width, format!("ashr i{width} {}, {}", value.text, width - 1));
                self.write_register(high, &sign, DEFINED);
            }
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => self.bit(code),
            Mnemonic::Bswap => self.swap_bytes(code),
            Mnemonic::Xchg => self.exchange(code),
            Mnemonic::Xadd => {
                let width = self.width(code, 0);
                let b = self.read(code, 1, width);
                let (address, a) = self.target(code, width);
                let result = self.bits("add", &a, &b);
                self.write(code, 1, None, &a, DEFINED);
                self.write(code, 0, address.as_ref(), &result, DEFINED);
                self.flags = Flags::Sum { a, b, result };
            }
            Mnemonic::Cmpxchg => self.compare_exchange(code),
            Mnemonic::Stosb | Mnemonic::Stosd | Mnemonic::Stosq | Mnemonic::Stosw
                if instruction.has_rep_prefix() =>
            {
                self.fill(code);
            }
            Mnemonic::Stc | Mnemonic::Clc => {
                let carry = constant(1, i64::from(instruction.mnemonic() == Mnemonic::Stc));
                self.flags = Flags::Given { carry: Some(carry), overflow: None, result: None };
            }
            _ if is_conditional(instruction) && instruction.op_count() == 1 => {
                let bit = self.condition(instruction.condition_code());
                let value = self.zero_extend(&bit, 8);
                self.write(code, 0, None, &value, DEFINED);
            }
            _ if is_conditional(instruction) && instruction.op_count() == 2 => {
                let width = self.width(code, 0);
                let condition = self.condition(instruction.condition_code());
                let (yes, no) = (self.read(code, 1, width), self.read(code, 0, width));
                let text =
                    format!("select i1 {}, i{width} {}, i{width} {}", condition.text, yes.text, no.text);
                let value = self.value(width, text);
                self.write(code, 0, None, &value, DEFINED);
            }
            _ => self.unknown(code),
        }
    }

    /// An instruction that is not followed.
    pub(super) fn unknown(&mut self, code: &Code) {
        let text = crate::listing::instruction(&code.instruction);
        self.refuse(format!("the instruction `{}`", text.trim()));
    }

    /// The first operand, which is read and written: where it is, and its value.
    pub(super) fn target(&mut self, code: &Code, width: u32) -> (Option<super::operands::Address>, Value) {
        match code.instruction.op0_kind() {
            OpKind::Memory => {
                let address = self.address(code);
                let (value, known) = self.load(&address, width);
                if known.bits() < width {
                    self.refuse("a use of a value that the program has not put there");
                }
                (Some(address), value)
            }
            _ => (None, self.read(code, 0, width)),
        }
    }

    fn mov(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let segment = |operand| {
            code.instruction.op_kind(operand) == OpKind::Register
                && code.instruction.op_register(operand).is_segment_register()
        };
        if segment(0) || segment(1) {
            return self.unknown(code);
        }
        let (value, known) = self.copy(code, 1, width);
        if code.instruction.op0_register() == Register::RSP && !matches!(known, Known::Frame(_)) {
            self.refuse("a stack pointer that is not known");
        }
        self.write(code, 0, None, &value, known);
    }

    fn lea(&mut self, code: &Code) {
        let to = code.instruction.op0_register();
        let value = match self.address(code) {
            super::operands::Address::Frame(at) if to.size() == 8 => {
                return self.write_register(to, &constant(64, 0), Known::Frame(at));
            }
            super::operands::Address::Frame(at) => self.frame_address(at),
            super::operands::Address::Computed(value) => value,
            super::operands::Address::Constant(_) => return self.unknown(code),
        };
        if Gpr::of(to) == Some(RSP) {
            self.refuse("a stack pointer that is not known");
        }
        let value = self.truncate(&value, 8 * to.size() as u32);
        self.write_register(to, &value, DEFINED);
    }

    pub(super) fn push(&mut self, value: &Value, known: Known) {
        let Some(at) = self.state.stack() else { return self.refuse("a stack pointer that is not known") };
        let value = match known {
            Known::Frame(at) => self.frame_address(at),
            _ => value.clone(),
        };
        self.state.set(RSP, Known::Frame(at - 8));
        self.store(&super::operands::Address::Frame(at - 8), &value, known);
    }

    fn pop(&mut self) -> (Value, Known) {
        let Some(at) = self.state.stack() else {
            self.refuse("a stack pointer that is not known");
            return (constant(64, 0), DEFINED);
        };
        self.state.set(RSP, Known::Frame(at + 8));
        // What was pushed to make room need not have been written.
        self.load(&super::operands::Address::Frame(at), 64)
    }

    /// Adds a constant to an address in the frame.
    fn moves_frame(&mut self, code: &Code) -> bool {
        let instruction = &code.instruction;
        let is_register =
            instruction.op0_kind() == OpKind::Register && instruction.op0_register().size() == 8;
        let by = match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 if code.immediate.is_none() => {
                instruction.immediate(1) as i64
            }
            _ => {
                if is_register && Gpr::of(instruction.op0_register()) == Some(RSP) {
                    self.refuse("a stack pointer that is not known");
                    return true;
                }
                return false;
            }
        };
        let Some(register) = Gpr::of(instruction.op0_register()).filter(|_| is_register) else {
            return false;
        };
        let Known::Frame(at) = self.state.get(register) else { return false };
        let at = match instruction.mnemonic() {
            Mnemonic::Add => at.wrapping_add(by),
            _ => at.wrapping_sub(by),
        };
        self.state.set(register, Known::Frame(at));
        self.flags = Flags::Undefined;
        true
    }

    /// Aligns the stack pointer. At the return address it is 8 more than a multiple of 16.
    fn aligns_stack(&mut self, code: &Code) -> bool {
        let instruction = &code.instruction;
        if instruction.op0_kind() != OpKind::Register || instruction.op0_register() != Register::RSP {
            return false;
        }
        match (self.state.stack(), instruction.immediate(1) as i64) {
            (Some(at), -16) => self.state.set(RSP, Known::Frame(((at + 8) & -16) - 8)),
            _ => self.refuse("a stack that is aligned to more than 16 bytes"),
        }
        self.flags = Flags::Undefined;
        true
    }

    /// Whether both operands are the same register.
    fn is_same(&self, code: &Code) -> bool {
        let instruction = &code.instruction;
        instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register()
    }

    fn sum(&mut self, code: &Code) {
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

    fn logic(&mut self, code: &Code) {
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

    fn shift(&mut self, code: &Code) {
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

    fn rotate(&mut self, code: &Code) {
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

    fn multiply(&mut self, code: &Code) {
        let instruction = &code.instruction;
        let width = self.width(code, 0);
        let signed = instruction.mnemonic() == Mnemonic::Imul;
        if instruction.op_count() == 1 {
            let (low, high) = accumulators(width);
            let b = self.read(code, 0, width);
            if width == 8 {
                return self.unknown(code);
            }
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

    fn divide(&mut self, code: &Code) {
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
        let (yes, no) = (self.label(), self.label());
        self.line(format!("br i1 {}, label %{yes}, label %{no}", fits.text));
        self.begin(&no);
        self.refuse("a division of a number that is as wide as two registers");
        self.line("unreachable");
        self.begin(&yes);
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
        let (yes, no) = (self.label(), self.label());
        self.line(format!("br i1 {}, label %{yes}, label %{no}", fits.text));
        self.begin(&no);
        self.refuse("a division whose result does not fit");
        self.line("unreachable");
        self.begin(&yes);
        let rest = self.truncate(&rest, 8);
        self.write_register(Register::AL, &narrow, DEFINED);
        self.write_register(Register::AH, &rest, DEFINED);
        self.flags = Flags::Undefined;
    }

    /// Tests a bit, and may change it.
    fn bit(&mut self, code: &Code) {
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

    fn swap_bytes(&mut self, code: &Code) {
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

    /// `rep stos`: fills memory.
    fn fill(&mut self, code: &Code) {
        let size: i64 = match code.instruction.mnemonic() {
            Mnemonic::Stosb => 1,
            Mnemonic::Stosw => 2,
            Mnemonic::Stosd => 4,
            _ => 8,
        };
        let value = self.read_register(Register::AL);
        if size > 1 {
            // Only if all bytes are the same: compilers fill with zeros.
            let whole = self.read_register(match size {
                2 => Register::AX,
                4 => Register::EAX,
                _ => Register::RAX,
            });
            let zero = self.value(1, format!("icmp eq i{} {}, 0", whole.width, whole.text));
            let (yes, no) = (self.label(), self.label());
            self.line(format!("br i1 {}, label %{yes}, label %{no}", zero.text));
            self.begin(&no);
            self.refuse("`rep stos` with a value that is not 0");
            self.line("unreachable");
            self.begin(&yes);
        }
        let (to, count) = (self.read_register(Register::RDI), self.read_register(Register::RCX));
        let bytes = self.value(64, format!("mul i64 {}, {size}", count.text));
        let byte = self.zero_extend(&value, 32);
        let byte = if size > 1 { constant(32, 0) } else { byte };
        self.declare("memset", &super::library_type("memset"));
        let (to_text, byte, length) = (to.text.clone(), byte.text, bytes.text.clone());
        self.value(64, format!("call i64 @memset(i64 {to_text}, i32 {byte}, i64 {length})"));
        let after = self.bits("add", &to, &bytes);
        self.write_register(Register::RDI, &after, DEFINED);
        self.write_register(Register::RCX, &constant(64, 0), DEFINED);
    }
}
