//! Vector registers, as far as compilers copy memory with them.
//!
//! An access of 16 bytes is not atomic. It is made as two accesses of 8 bytes, in either order.

use super::operands::{Address, constant};
use super::{Emitter, Value};
use crate::decode::Code;
use crate::state::DEFINED;
use iced_x86::{Mnemonic, OpKind, Register};

impl Emitter<'_, '_> {
    /// An instruction with vector registers. Returns whether it is one.
    pub(super) fn vector(&mut self, code: &Code) -> bool {
        let instruction = &code.instruction;
        let is_vector = |operand: u32| {
            instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand).is_xmm()
        };
        if !(0..instruction.op_count()).any(is_vector) {
            return false;
        }
        let same = is_vector(0) && is_vector(1) && instruction.op0_register() == instruction.op1_register();
        match instruction.mnemonic() {
            Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd if same => {
                let zero = constant(64, 0);
                self.set_vector(instruction.op0_register(), &zero, &zero);
            }
            Mnemonic::Movaps
            | Mnemonic::Movups
            | Mnemonic::Movapd
            | Mnemonic::Movupd
            | Mnemonic::Movdqa
            | Mnemonic::Movdqu => {
                let (low, high) = if is_vector(1) {
                    self.get_vector(instruction.op1_register())
                } else {
                    let address = self.address(code);
                    self.load_both(&address)
                };
                if is_vector(0) {
                    self.set_vector(instruction.op0_register(), &low, &high);
                } else {
                    let address = self.address(code);
                    self.store_both(&address, &low, &high);
                }
            }
            Mnemonic::Movq | Mnemonic::Movd => {
                let width = if instruction.mnemonic() == Mnemonic::Movd { 32 } else { 64 };
                let value = if is_vector(1) {
                    let (low, _) = self.get_vector(instruction.op1_register());
                    self.truncate(&low, width)
                } else {
                    self.read(code, 1, width)
                };
                if is_vector(0) {
                    let low = self.zero_extend(&value, 64);
                    self.set_vector(instruction.op0_register(), &low, &constant(64, 0));
                } else {
                    self.write(code, 0, None, &value, DEFINED);
                }
            }
            Mnemonic::Movhps | Mnemonic::Movhpd | Mnemonic::Movlps | Mnemonic::Movlpd => {
                let upper = matches!(instruction.mnemonic(), Mnemonic::Movhps | Mnemonic::Movhpd);
                if is_vector(0) {
                    let (low, high) = self.get_vector(instruction.op0_register());
                    let value = self.read(code, 1, 64);
                    let (low, high) = if upper { (low, value) } else { (value, high) };
                    self.set_vector(instruction.op0_register(), &low, &high);
                } else {
                    let (low, high) = self.get_vector(instruction.op1_register());
                    self.write(code, 0, None, if upper { &high } else { &low }, DEFINED);
                }
            }
            Mnemonic::Punpcklqdq if is_vector(1) => {
                let (low, _) = self.get_vector(instruction.op0_register());
                let (high, _) = self.get_vector(instruction.op1_register());
                self.set_vector(instruction.op0_register(), &low, &high);
            }
            _ => self.unknown(code),
        }
        true
    }

    fn get_vector(&mut self, register: Register) -> (Value, Value) {
        let number = register.number();
        if number > 15 || self.state.vectors & 1 << number == 0 {
            self.refuse(format!(
                "a use of `xmm{number}` where it holds nothing that the program has put there"
            ));
            return (constant(64, 0), constant(64, 0));
        }
        let low = self.value(64, format!("load i64, ptr %xmm{number}.lo"));
        let high = self.value(64, format!("load i64, ptr %xmm{number}.hi"));
        (low, high)
    }

    fn set_vector(&mut self, register: Register, low: &Value, high: &Value) {
        let number = register.number();
        if number > 15 {
            return self.refuse(format!("the register `xmm{number}`"));
        }
        self.line(format!("store i64 {}, ptr %xmm{number}.lo", low.text));
        self.line(format!("store i64 {}, ptr %xmm{number}.hi", high.text));
        self.state.vectors |= 1 << number;
    }

    /// The two halves of an access of 16 bytes.
    fn halves(&mut self, address: &Address) -> (Address, Address) {
        match address {
            Address::Frame(at) => (Address::Frame(*at), Address::Frame(at + 8)),
            Address::Computed(value) => {
                let upper = self.bits("add", value, &constant(64, 8));
                (Address::Computed(value.clone()), Address::Computed(upper))
            }
            Address::Constant(_) => {
                self.refuse("an access to the global offset table");
                (address.clone(), address.clone())
            }
        }
    }

    /// Begins two ways to go on, of which any is taken. Returns the labels of the second and of what follows.
    fn either(&mut self) -> (String, String) {
        self.declare("__VERIFIER_nondet_bool", "i32 ()");
        let choice = self.value(32, "call i32 @__VERIFIER_nondet_bool()");
        let choice = self.value(1, format!("icmp ne i32 {}, 0", choice.text));
        let (first, second, after) = (self.label(), self.label(), self.label());
        self.line(format!("br i1 {}, label %{first}, label %{second}", choice.text));
        self.begin(&first);
        (second, after)
    }

    fn load_both(&mut self, address: &Address) -> (Value, Value) {
        let (lower, upper) = self.halves(address);
        if let Address::Frame(_) = address {
            return (self.load(&lower, 64).0, self.load(&upper, 64).0);
        }
        let (second, after) = self.either();
        let first = [self.load(&lower, 64).0, self.load(&upper, 64).0];
        self.put_halves(&first);
        self.line(format!("br label %{after}"));
        self.begin(&second);
        let high = self.load(&upper, 64).0;
        let low = self.load(&lower, 64).0;
        self.put_halves(&[low, high]);
        self.line(format!("br label %{after}"));
        self.begin(&after);
        let low = self.value(64, "load i64, ptr %xmm.lo");
        (low, self.value(64, "load i64, ptr %xmm.hi"))
    }

    fn put_halves(&mut self, [low, high]: &[Value; 2]) {
        self.line(format!("store i64 {}, ptr %xmm.lo", low.text));
        self.line(format!("store i64 {}, ptr %xmm.hi", high.text));
    }

    fn store_both(&mut self, address: &Address, low: &Value, high: &Value) {
        let (lower, upper) = self.halves(address);
        if let Address::Frame(_) = address {
            self.store(&lower, low, DEFINED);
            return self.store(&upper, high, DEFINED);
        }
        let (second, after) = self.either();
        self.store(&lower, low, DEFINED);
        self.store(&upper, high, DEFINED);
        self.line(format!("br label %{after}"));
        self.begin(&second);
        self.store(&upper, high, DEFINED);
        self.store(&lower, low, DEFINED);
        self.line(format!("br label %{after}"));
        self.begin(&after);
    }
}
