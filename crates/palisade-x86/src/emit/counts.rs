//! Counts of bits, and shifts of two registers.
//!
//! *Source.* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: `POPCNT`, `TZCNT`, `LZCNT`, `BSF`,
//! `BSR`, `SHLD`, `SHRD`. What these leave undefined is not used: flags are refused, and a run that depends on the result
//! of `bsf` or `bsr` for 0 is not followed.

use super::flags::Flags;
use super::operands::constant;
use super::{Emitter, Value};
use crate::decode::Code;
use crate::state::DEFINED;
use iced_x86::{Mnemonic, OpKind, Register};

impl Emitter<'_, '_> {
    /// How many bits of a word are set: sums of 2, 4 and 8 bits each, and then of all bytes.
    fn population(&mut self, word: &Value) -> Value {
        let mut sum = word.clone();
        for (by, mask) in [(1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0f0f_0f0f_0f0f_0f0f)]
        {
            let low = self.bits("and", &sum, &constant(64, mask));
            let high = self.bits("lshr", &sum, &constant(64, by));
            let high = self.bits("and", &high, &constant(64, mask));
            sum = self.bits("add", &low, &high);
        }
        let all = self.bits("mul", &sum, &constant(64, 0x0101_0101_0101_0101));
        self.bits("lshr", &all, &constant(64, 56))
    }

    /// The word with all bits below its highest one set.
    fn filled(&mut self, word: &Value) -> Value {
        [1, 2, 4, 8, 16, 32].into_iter().fold(word.clone(), |word, by| {
            let moved = self.bits("lshr", &word, &constant(64, by));
            self.bits("or", &word, &moved)
        })
    }

    /// `popcnt`, `tzcnt`, `lzcnt`, `bsf` and `bsr`.
    pub(super) fn count_bits(&mut self, code: &Code) {
        let width = self.width(code, 0);
        let source = self.read(code, 1, width);
        let word = self.zero_extend(&source, 64);
        let none = self.value(1, format!("icmp eq i{width} {}, 0", source.text));
        let mnemonic = code.instruction.mnemonic();
        if matches!(mnemonic, Mnemonic::Bsf | Mnemonic::Bsr) {
            let some = self.not(&none);
            self.give_up_unless(&some);
        }
        let count = match mnemonic {
            Mnemonic::Popcnt => self.population(&word),
            Mnemonic::Tzcnt | Mnemonic::Bsf => {
                // A bit above all others ends the count.
                let word = match width {
                    64 => word,
                    width => self.bits("or", &word, &constant(64, 1 << width)),
                };
                let less = self.bits("sub", &word, &constant(64, 1));
                let rest = self.bits("xor", &word, &constant(64, -1));
                let below = self.bits("and", &less, &rest);
                self.population(&below)
            }
            _ => {
                let filled = self.filled(&word);
                let bits = self.population(&filled);
                match mnemonic {
                    Mnemonic::Bsr => self.bits("sub", &bits, &constant(64, 1)),
                    _ => self.bits("sub", &constant(64, i64::from(width)), &bits),
                }
            }
        };
        let result = self.truncate(&count, width);
        self.write(code, 0, None, &result, DEFINED);
        let zero = constant(1, 0);
        self.flags = match mnemonic {
            Mnemonic::Popcnt => {
                Flags::Given { carry: Some(zero.clone()), overflow: Some(zero), result: None }
            }
            Mnemonic::Tzcnt | Mnemonic::Lzcnt => {
                Flags::Given { carry: Some(none), overflow: None, result: None }
            }
            _ => Flags::Given { carry: None, overflow: None, result: Some(source) },
        };
    }

    /// `shld` and `shrd`: bits of another register come in.
    pub(super) fn double_shift(&mut self, code: &Code) {
        let width = self.width(code, 0);
        if width == 16 {
            // What more than 16 bits do is not defined.
            return self.unknown(code);
        }
        let left = code.instruction.mnemonic() == Mnemonic::Shld;
        let mask = i64::from(width - 1);
        let fixed = (code.instruction.op2_kind() != OpKind::Register)
            .then(|| code.instruction.immediate(2) as i64 & mask);
        let by = match fixed {
            Some(by) => constant(width, by),
            None => {
                let count = self.read_register(Register::CL);
                let count = self.zero_extend(&count, width);
                self.bits("and", &count, &constant(width, mask))
            }
        };
        let b = self.read(code, 1, width);
        let (address, a) = self.target(code, width);
        let (out, inwards) = if left { ("shl", "lshr") } else { ("lshr", "shl") };
        let kept = self.bits(out, &a, &by);
        // If nothing is shifted, nothing comes in: one bit is moved first, and then the others.
        let rest = self.bits("sub", &constant(width, mask), &by);
        let one = self.bits(inwards, &b, &constant(width, 1));
        let comes = self.bits(inwards, &one, &rest);
        let result = self.bits("or", &kept, &comes);
        self.write(code, 0, address.as_ref(), &result, DEFINED);
        self.flags = match fixed {
            Some(0) => return,
            // If nothing is shifted the flags stay as they are: compilers do not use them.
            None => Flags::Undefined,
            Some(by) => {
                let last = if left { i64::from(width) - by } else { by - 1 };
                let moved = self.bits("lshr", &a, &constant(width, last));
                let carry = self.truncate(&moved, 1);
                Flags::Given { carry: Some(carry), overflow: None, result: Some(result) }
            }
        };
    }

    /// A product of bytes, which goes to `ax`.
    pub(super) fn multiply_bytes(&mut self, code: &Code) {
        let signed = code.instruction.mnemonic() == Mnemonic::Imul;
        let b = self.read(code, 0, 8);
        let a = self.read_register(Register::AL);
        let (a, b) = match signed {
            true => (self.sign_extend(&a, 16), self.sign_extend(&b, 16)),
            false => (self.zero_extend(&a, 16), self.zero_extend(&b, 16)),
        };
        let product = self.bits("mul", &a, &b);
        self.write_register(Register::AX, &product, DEFINED);
        // Whether the upper half is needed.
        let low = self.truncate(&product, 8);
        let again = if signed { self.sign_extend(&low, 16) } else { self.zero_extend(&low, 16) };
        let more = self.value(1, format!("icmp ne i16 {}, {}", product.text, again.text));
        self.flags = Flags::Given { carry: Some(more.clone()), overflow: Some(more), result: None };
    }
}
