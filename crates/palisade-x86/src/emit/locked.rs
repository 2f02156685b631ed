//! Locked instructions, and those that are locked without being asked to.

use super::flags::Flags;
use super::operands::{Address, constant};
use super::{Emitter, Value};
use crate::decode::Code;
use crate::state::DEFINED;
use iced_x86::{Mnemonic, OpKind, Register};

impl Emitter<'_, '_> {
    /// An instruction with the prefix `lock`. Returns whether it was emitted.
    pub(super) fn locked(&mut self, code: &Code) -> bool {
        if code.instruction.op0_kind() != OpKind::Memory {
            return false;
        }
        let address = self.address(code);
        if let Address::Frame(_) = address {
            // A fence: the value stays as it is, and nothing of it is used.
            let nothing = matches!(code.instruction.mnemonic(), Mnemonic::Or | Mnemonic::Add)
                && matches!(
                    code.instruction.op1_kind(),
                    OpKind::Immediate8
                        | OpKind::Immediate8to32
                        | OpKind::Immediate8to64
                        | OpKind::Immediate32
                )
                && code.instruction.immediate(1) == 0;
            if nothing {
                self.line("fence seq_cst");
                self.flags = Flags::Undefined;
                return true;
            }
            // Nobody else accesses the frame at a known place, unless pointers lead there; then it is memory like any
            // other.
            if !self.is_pointed(&address) {
                self.line("fence seq_cst");
                return false;
            }
        }
        let width = self.width(code, 0);
        let mnemonic = code.instruction.mnemonic();
        match mnemonic {
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Xadd => {
                let b = match mnemonic {
                    Mnemonic::Inc | Mnemonic::Dec => constant(width, 1),
                    _ => self.read(code, 1, width),
                };
                let kept = match (&self.flags, mnemonic) {
                    (Flags::Undefined | Flags::Given { carry: None, .. }, _) => None,
                    (_, Mnemonic::Inc | Mnemonic::Dec) => Some(self.carry()),
                    _ => None,
                };
                let op = if matches!(mnemonic, Mnemonic::Sub | Mnemonic::Dec) { "sub" } else { "add" };
                let a = self.atomic(&address, op, &b);
                let result = self.bits(op, &a, &b);
                if mnemonic == Mnemonic::Xadd {
                    self.write(code, 1, None, &a, DEFINED);
                }
                self.flags = match op {
                    "add" => Flags::Sum { a, b, result },
                    _ => Flags::Difference { a, b, result },
                };
                if let Mnemonic::Inc | Mnemonic::Dec = mnemonic {
                    let overflow = self.condition(iced_x86::ConditionCode::o);
                    let (Flags::Sum { result, .. } | Flags::Difference { result, .. }) = self.flags.clone()
                    else {
                        unreachable!("set right before")
                    };
                    self.flags = Flags::Given { carry: kept, overflow: Some(overflow), result: Some(result) };
                }
            }
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                let b = self.read(code, 1, width);
                let op = match mnemonic {
                    Mnemonic::And => "and",
                    Mnemonic::Or => "or",
                    _ => "xor",
                };
                let a = self.atomic(&address, op, &b);
                let result = self.bits(op, &a, &b);
                self.flags = Flags::Logic { result };
            }
            Mnemonic::Not => _ = self.atomic(&address, "xor", &constant(width, -1)),
            Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
                if code.instruction.op1_kind() == OpKind::Immediate8 =>
            {
                let index = code.instruction.immediate(1) & u64::from(width - 1);
                let one = 1i64 << index;
                let (op, operand) = match mnemonic {
                    Mnemonic::Bts => ("or", one),
                    Mnemonic::Btc => ("xor", one),
                    _ => ("and", !one),
                };
                let a = self.atomic(&address, op, &constant(width, operand));
                let moved = self.value(width, format!("lshr i{width} {}, {index}", a.text));
                let carry = self.truncate(&moved, 1);
                self.flags = Flags::Given { carry: Some(carry), overflow: None, result: None };
            }
            Mnemonic::Cmpxchg => {
                let accumulator = accumulator(width);
                let (expected, new) = (self.read_register(accumulator), self.read(code, 1, width));
                let pointer = self.pointer(&address, i64::from(width / 8));
                let (old, new) = (expected.text.clone(), new.text);
                let both = self.value(
                    width,
                    format!("cmpxchg ptr {pointer}, i{width} {old}, i{width} {new} seq_cst seq_cst"),
                );
                let found = self.value(width, format!("extractvalue {{ i{width}, i1 }} {}, 0", both.text));
                self.exchanged(accumulator, &expected, &found);
            }
            Mnemonic::Xchg => return false,
            _ => self.unknown(code),
        }
        true
    }

    /// What a compare-and-exchange leaves behind: the accumulator holds what was found, which is what it held before
    /// if the exchange happened. In that case a register of 32 bits is not written, and so not extended.
    fn exchanged(&mut self, accumulator: Register, expected: &Value, found: &Value) {
        let width = found.width;
        let result = self.bits("sub", expected, found);
        self.flags = Flags::Difference { a: expected.clone(), b: found.clone(), result };
        if width == 32 {
            let full = crate::registers::RAX;
            let before = self.load_register(full);
            let same = self.value(1, format!("icmp eq i32 {}, {}", expected.text, found.text));
            let wide = self.zero_extend(found, 64);
            let text = format!("select i1 {}, i64 {}, i64 {}", same.text, before.text, wide.text);
            let value = self.value(64, text);
            let bits = self.state.get(full).bits();
            self.store_register(full, &value);
            self.state.set(full, crate::state::Known::Defined(bits));
        } else {
            self.write_register(accumulator, found, DEFINED);
        }
    }

    /// Compare and exchange without `lock`.
    pub(super) fn compare_exchange(&mut self, code: &Code) {
        // Processors differ in what is left in the upper half of a register.
        if code.instruction.op0_kind() == OpKind::Register {
            return self.unknown(code);
        }
        let width = self.width(code, 0);
        let accumulator = accumulator(width);
        let (expected, new) = (self.read_register(accumulator), self.read(code, 1, width));
        let (address, found) = self.target(code, width);
        let same = self.value(1, format!("icmp eq i{width} {}, {}", expected.text, found.text));
        let (new, old) = (new.text, found.text.clone());
        let value = self.value(width, format!("select i1 {}, i{width} {new}, i{width} {old}", same.text));
        self.write(code, 0, address.as_ref(), &value, DEFINED);
        self.exchanged(accumulator, &expected, &found);
    }

    /// `xchg`, which is locked if an operand is in memory.
    pub(super) fn exchange(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let memory = (0..2).find(|operand| code.instruction.op_kind(*operand) == OpKind::Memory);
        let Some(memory) = memory else {
            let ((a, known_a), (b, known_b)) = (self.copy(code, 0, width), self.copy(code, 1, width));
            self.write(code, 0, None, &b, known_b);
            self.write(code, 1, None, &a, known_a);
            return;
        };
        let address = self.address(code);
        let new = self.read(code, 1 - memory, width);
        let old = if matches!(address, Address::Frame(_)) && !self.is_pointed(&address) {
            self.line("fence seq_cst");
            let (old, _) = self.load(&address, width);
            self.store(&address, &new, DEFINED);
            old
        } else {
            self.atomic(&address, "xchg", &new)
        };
        self.write(code, 1 - memory, None, &old, DEFINED);
    }

    /// Whether pointers may lead to a place of the frame.
    pub(super) fn is_pointed(&self, address: &Address) -> bool {
        let Address::Frame(at) = address else { return true };
        match &self.regions {
            Some(regions) => regions.find(*at, 1).is_none_or(|(index, _)| regions.all[index].pointed),
            None => false,
        }
    }

    /// A locked operation, which returns the old value.
    fn atomic(&mut self, address: &Address, op: &str, operand: &Value) -> Value {
        let width = operand.width;
        if matches!(address, Address::Constant(_)) {
            self.refuse("a write to the global offset table");
            return constant(width, 0);
        }
        let pointer = self.pointer(address, i64::from(width / 8));
        self.value(width, format!("atomicrmw {op} ptr {pointer}, i{width} {} seq_cst", operand.text))
    }
}

fn accumulator(width: u32) -> Register {
    match width {
        8 => Register::AL,
        16 => Register::AX,
        32 => Register::EAX,
        _ => Register::RAX,
    }
}
