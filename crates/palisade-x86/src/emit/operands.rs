//! Operands of instructions: registers, memory and constants.

use super::{Emitter, Value};
use crate::decode::{Block, Code, Exit, Reference};
use crate::image::Target;
use crate::names::{Unreadable, Variable, quoted};
use crate::program::Callee;
use crate::registers::Gpr;
use crate::state::{DEFINED, Known, UNDEFINED};
use iced_x86::{OpKind, Register};

/// Where an operand in memory is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Address {
    /// At a known place of the frame.
    Frame(i64),
    /// At a computed address.
    Computed(Value),
    /// In the global offset table: the value is this address.
    Constant(Value),
}

/// Where the number is that guards the stack, relative to the thread's own address.
const STACK_GUARD: i64 = 0x28;

pub(super) fn constant(width: u32, value: i64) -> Value {
    let text = match width {
        1 => if value & 1 != 0 { "true" } else { "false" }.to_owned(),
        8 => (value as i8).to_string(),
        16 => (value as i16).to_string(),
        32 => (value as i32).to_string(),
        _ => value.to_string(),
    };
    Value { text, width }
}

impl Emitter<'_, '_> {
    /// What a register holds, all of it.
    pub(super) fn load_register(&mut self, register: Gpr) -> Value {
        match self.state.get(register) {
            Known::Frame(at) => self.frame_address(at),
            _ => match self.constants.get(&register) {
                Some(text) => Value { text: text.clone(), width: 64 },
                None => self.value(64, format!("load i64, ptr %{}", register.name())),
            },
        }
    }

    pub(super) fn store_register(&mut self, register: Gpr, value: &Value) {
        match value.text.starts_with('%') {
            false => _ = self.constants.insert(register, value.text.clone()),
            true => _ = self.constants.remove(&register),
        }
        self.line(format!("store i64 {}, ptr %{}", value.text, register.name()));
    }

    /// The value of a register operand. It must be defined.
    pub(super) fn read_register(&mut self, register: Register) -> Value {
        let width = 8 * register.size() as u32;
        let Some(full) = Gpr::of(register) else {
            self.refuse(format!("the register `{}`", format!("{register:?}").to_lowercase()));
            return constant(width, 0);
        };
        let high = is_high(register);
        let needed = if high { 16 } else { width };
        if self.state.get(full).bits() < needed {
            let name = full.name();
            self.refuse(format!("a use of `{name}` where it holds nothing that the program has put there"));
            return constant(width, 0);
        }
        let whole = self.load_register(full);
        let whole = if high { self.value(64, format!("lshr i64 {}, 8", whole.text)) } else { whole };
        self.truncate(&whole, width)
    }

    /// Writes a register operand. What is known of the value may be more than that it is one.
    pub(super) fn write_register(&mut self, register: Register, value: &Value, known: Known) {
        let Some(full) = Gpr::of(register) else {
            return self.refuse(format!("the register `{}`", format!("{register:?}").to_lowercase()));
        };
        match register.size() {
            8 => {
                if !matches!(known, Known::Frame(_)) {
                    self.store_register(full, value);
                }
                self.state.set(full, known);
            }
            4 => {
                let wide = self.zero_extend(value, 64);
                self.store_register(full, &wide);
                let known = match known {
                    Known::Defined(bits) if bits < 32 => Known::Defined(bits),
                    Known::Entry(_) => Known::Defined(0),
                    _ => DEFINED,
                };
                self.state.set(full, known);
            }
            size => {
                let (shift, bits) = (if is_high(register) { 8 } else { 0 }, 8 * size as i64);
                let old = self.load_register(full);
                let before = self.state.get(full).bits();
                let mask = !(((1i64 << bits) - 1) << shift);
                let kept = self.value(64, format!("and i64 {}, {mask}", old.text));
                let wide = self.zero_extend(value, 64);
                let wide = match shift {
                    0 => wide,
                    shift => self.value(64, format!("shl i64 {}, {shift}", wide.text)),
                };
                let all = self.value(64, format!("or i64 {}, {}", kept.text, wide.text));
                self.store_register(full, &all);
                let bits = known.bits().min(bits as u32);
                let bits = match shift {
                    0 if before > 8 * size as u32 && bits == 8 * size as u32 => before,
                    0 => bits,
                    _ if before >= 8 && bits >= 8 => before.max(16),
                    _ => before.min(8),
                };
                self.state.set(full, Known::Defined(bits));
            }
        }
    }

    pub(super) fn truncate(&mut self, value: &Value, width: u32) -> Value {
        if value.width <= width {
            return value.clone();
        }
        if let (Ok(number), true) = (value.text.parse(), width > 1) {
            return constant(width, number);
        }
        self.value(width, format!("trunc i{} {} to i{width}", value.width, value.text))
    }

    pub(super) fn zero_extend(&mut self, value: &Value, width: u32) -> Value {
        if value.width >= width {
            return value.clone();
        }
        if let Ok(number) = value.text.parse::<i64>() {
            return constant(width, number & ((1 << value.width) - 1));
        }
        self.value(width, format!("zext i{} {} to i{width}", value.width, value.text))
    }

    pub(super) fn sign_extend(&mut self, value: &Value, width: u32) -> Value {
        if value.width >= width {
            return value.clone();
        }
        self.value(width, format!("sext i{} {} to i{width}", value.width, value.text))
    }

    /// An address in the frame, used as a number.
    pub(super) fn frame_address(&mut self, at: i64) -> Value {
        self.uses.pointed.insert(at);
        if at >= 0 {
            self.refuse("the address of an argument on the stack");
            return constant(64, 0);
        }
        match self.regions.as_ref().map(|regions| regions.find(at, 0)) {
            None => constant(64, 0),
            Some(Some((region, offset))) => {
                let pointer = self.value(64, format!("getelementptr i8, ptr %frame{region}, i64 {offset}"));
                self.value(64, format!("ptrtoint ptr {} to i64", pointer.text))
            }
            Some(None) => {
                self.refuse("an address in the frame that belongs to no variable");
                constant(64, 0)
            }
        }
    }

    /// The address that a target stands for.
    pub(super) fn address_of(&mut self, target: &Target, by: i64) -> Value {
        let (base, by) = match (self.shared.program.resolve(self.id.unit, &target.moved(by)), target) {
            (Some(Callee::Function(function)), _) => (quoted(self.shared.names.function(function)), 0),
            (Some(Callee::Library(name)), _) => {
                let ty = super::library_type(&name);
                self.declare(&name, &ty);
                (quoted(&name), 0)
            }
            (_, Target::External(name)) => {
                match self.shared.names.global(name) {
                    Some(variable) => {
                        if let Some(why) = self.unreadable(variable) {
                            self.refuse(why);
                        }
                    }
                    None => _ = self.shared.external.insert(name.clone()),
                }
                (quoted(name), by)
            }
            (_, Target::Place(_) | Target::Symbol(_)) => {
                match self.shared.names.target(self.id.unit, target, by) {
                    Some((variable, offset)) => {
                        if let Some(why) = self.unreadable(variable) {
                            self.refuse(why);
                        }
                        (quoted(&variable.name), offset)
                    }
                    None => {
                        self.refuse("the address of something in the code");
                        return constant(64, 0);
                    }
                }
            }
        };
        let text = match by {
            0 => format!("ptrtoint (ptr {base} to i64)"),
            by => format!("add (i64 ptrtoint (ptr {base} to i64), i64 {by})"),
        };
        Value { text, width: 64 }
    }

    /// Why a variable cannot be used. A table of jumps of this function can: nothing but the jump reads it.
    fn unreadable(&self, variable: &Variable) -> Option<String> {
        let own = |block: &Block| matches!(&block.exit, Exit::Table(jumps) if variable.contains(jumps.table));
        match variable.unreadable.as_ref()? {
            Unreadable::Jumps if self.function.blocks.values().any(own) => None,
            Unreadable::Jumps => Some("a table of jumps that is used in another way".to_owned()),
            Unreadable::Relocation(how) => {
                Some(format!("the variable `{}`, which holds a relocation of the form {how}", variable.name))
            }
        }
    }

    /// The address of the memory operand of an instruction.
    pub(super) fn address(&mut self, code: &Code) -> Address {
        let instruction = &code.instruction;
        let segment = instruction.segment_prefix();
        if segment == Register::GS {
            self.refuse("the segment register `gs`");
        }
        match code.displacement.clone() {
            Some(Reference::TableEntry(target) | Reference::ThreadTableEntry(target)) => {
                if segment == Register::FS {
                    self.refuse("an address relative to the thread's own");
                }
                return Address::Constant(self.address_of(&target, 0));
            }
            Some(Reference::Address(target, by)) => {
                if segment == Register::FS {
                    self.refuse("an address relative to the thread's own");
                }
                let symbol = self.address_of(&target, by);
                return self.address_sum(code, Some(symbol), 0);
            }
            // The address of a thread-local variable is that of the thread's own copy.
            Some(Reference::ThreadPosition(target, by)) => {
                let base = Gpr::of(instruction.memory_base()).map(|base| self.state.get(base));
                let symbol = self.address_of(&target, by);
                if segment != Register::FS && base != Some(Known::Thread) {
                    self.refuse("the position of a thread-local variable, without the thread's address");
                }
                return self.address_sum(code, Some(symbol), 0);
            }
            None => {}
        }
        if instruction.memory_base() == Register::RIP || instruction.memory_base() == Register::EIP {
            self.refuse("a read of the code");
            return Address::Constant(constant(64, 0));
        }
        self.address_sum(code, None, instruction.memory_displacement64() as i64)
    }

    /// The sum of a symbol, a constant, and registers.
    fn address_sum(&mut self, code: &Code, symbol: Option<Value>, by: i64) -> Address {
        let instruction = &code.instruction;
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        let base = if base == Register::RIP { Register::None } else { base };
        if instruction.segment_prefix() == Register::FS
            && symbol.is_none()
            && base == Register::None
            && index == Register::None
        {
            // The number that guards the stack is 0 here.
            if by != STACK_GUARD {
                self.refuse("what the C library keeps for each thread");
            }
            return Address::Constant(constant(64, 0));
        }
        if let (None, Register::None, Some(Known::Frame(at))) =
            (&symbol, index, Gpr::of(base).map(|base| self.state.get(base)))
        {
            return Address::Frame(at.wrapping_add(by));
        }
        let thread = symbol.is_some();
        let mut sum = symbol;
        let mut add = |emitter: &mut Self, value: Value| {
            sum = Some(match sum.take() {
                None => value,
                Some(sum) => emitter.value(64, format!("add i64 {}, {}", sum.text, value.text)),
            });
        };
        let mut by = by;
        if base != Register::None {
            let base = match Gpr::of(base).map(|base| self.state.get(base)) {
                Some(Known::Thread) if thread => constant(64, 0),
                Some(Known::Frame(at)) => {
                    // The constant belongs to the address, which is then the beginning of an array.
                    let at = at.wrapping_add(std::mem::take(&mut by));
                    self.frame_address(at)
                }
                _ => self.read_register(base),
            };
            add(self, base);
        }
        if index != Register::None {
            let index = self.read_register(index);
            let scaled = match instruction.memory_index_scale() {
                1 => index,
                scale => self.value(64, format!("mul i64 {}, {scale}", index.text)),
            };
            add(self, scaled);
        }
        if by != 0 {
            add(self, constant(64, by));
        }
        Address::Computed(sum.unwrap_or_else(|| constant(64, by)))
    }

    /// The pointer of an access to memory.
    pub(super) fn pointer(&mut self, address: &Address, size: i64) -> String {
        match address {
            Address::Frame(at) => {
                self.uses.direct.insert((*at, size));
                if *at < 8 && at + size > 0 {
                    self.refuse("an access to the return address");
                    return "null".to_owned();
                }
                match self.regions.as_ref().map(|regions| regions.find(*at, size)) {
                    None => "null".to_owned(),
                    Some(Some((region, 0))) => format!("%frame{region}"),
                    Some(Some((region, offset))) => {
                        self.value(64, format!("getelementptr i8, ptr %frame{region}, i64 {offset}")).text
                    }
                    Some(None) => {
                        self.refuse("an access to the frame that overlaps others");
                        "null".to_owned()
                    }
                }
            }
            Address::Computed(value) | Address::Constant(value) => {
                self.value(64, format!("inttoptr i64 {} to ptr", value.text)).text
            }
        }
    }

    /// Loads from memory.
    pub(super) fn load(&mut self, address: &Address, width: u32) -> (Value, Known) {
        let size = i64::from(width / 8);
        if let Address::Constant(value) = address {
            let value = value.clone();
            if width != 64 {
                self.refuse("a part of an address in the global offset table");
            }
            return (self.truncate(&value, width), DEFINED);
        }
        let known = match address {
            Address::Frame(at) => self.state.load(*at, size),
            _ => DEFINED,
        };
        if let (Address::Frame(at), UNDEFINED) = (address, known) {
            self.uses.direct.insert((*at, size));
            self.pushes = true;
            return (constant(width, 0), known);
        }
        let pointer = self.pointer(address, size);
        (self.value(width, format!("load i{width}, ptr {pointer}, align 1")), known)
    }

    /// Stores to memory.
    pub(super) fn store(&mut self, address: &Address, value: &Value, known: Known) {
        let size = i64::from(value.width / 8);
        if matches!(address, Address::Constant(_)) {
            return self.refuse("a write to the global offset table");
        }
        if let Address::Frame(at) = address {
            // A push that only makes room. Once it is known where pointers lead, nothing else writes there.
            let room = known.bits() == 0 && !matches!(known, Known::Entry(_));
            let kept = match known {
                Known::Entry(_) => known,
                _ if room && self.regions.is_some() && !self.is_pointed(address) => UNDEFINED,
                _ if room => Known::Room,
                _ => DEFINED,
            };
            self.state.store(*at, size, kept);
            if matches!(known, Known::Entry(_)) && size == 8 {
                self.uses.saved.insert(*at);
            }
            if room {
                self.uses.direct.insert((*at, size));
                return;
            }
        }
        let saves = matches!((address, known), (Address::Frame(_), Known::Entry(_))) && size == 8;
        if known.bits() < value.width && !saves {
            self.refuse("a store of a register that holds nothing that the program has put there");
        }
        let pointer = self.pointer(address, size);
        self.line(format!("store i{} {}, ptr {pointer}, align 1", value.width, value.text));
    }

    /// The width of an operand.
    pub(super) fn width(&self, code: &Code, operand: u32) -> u32 {
        let instruction = &code.instruction;
        match instruction.op_kind(operand) {
            OpKind::Register => 8 * instruction.op_register(operand).size() as u32,
            OpKind::Memory => 8 * instruction.memory_size().size() as u32,
            OpKind::Immediate8 => 8,
            OpKind::Immediate16 | OpKind::Immediate8to16 => 16,
            OpKind::Immediate32 | OpKind::Immediate8to32 => 32,
            _ => 64,
        }
    }

    /// The value of an operand of this width, and what is known of it. It need not be defined.
    pub(super) fn copy(&mut self, code: &Code, operand: u32, width: u32) -> (Value, Known) {
        let instruction = &code.instruction;
        match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = instruction.op_register(operand);
                match Gpr::of(register).map(|full| self.state.get(full)) {
                    Some(known) if known.bits() < width && !is_high(register) => {
                        let known = if width == 64 { known } else { Known::Defined(known.bits().min(width)) };
                        // What is not defined is never used.
                        let value = match known.bits() {
                            0 => constant(width, 0),
                            _ => {
                                let full = Gpr::of(register).expect("a general register");
                                let whole = self.load_register(full);
                                self.truncate(&whole, width)
                            }
                        };
                        (value, known)
                    }
                    Some(known @ Known::Frame(_)) if width == 64 => (constant(64, 0), known),
                    _ => (self.read_register(register), DEFINED),
                }
            }
            OpKind::Memory => {
                let address = self.address(code);
                self.load(&address, width)
            }
            _ => {
                let value = match code.immediate.clone() {
                    Some(Reference::Address(target, by)) if width == 64 => self.address_of(&target, by),
                    Some(_) => {
                        self.refuse("an immediate operand of this form");
                        constant(width, 0)
                    }
                    None => constant(width, instruction.immediate(operand) as i64),
                };
                (value, DEFINED)
            }
        }
    }

    /// The value of an operand of this width, which must be defined.
    pub(super) fn read(&mut self, code: &Code, operand: u32, width: u32) -> Value {
        let (value, known) = self.copy(code, operand, width);
        match known {
            Known::Frame(at) => self.frame_address(at),
            known if known.bits() < width => {
                self.refuse("a use of a value that the program has not put there");
                constant(width, 0)
            }
            _ => value,
        }
    }

    /// Writes an operand, at an address that was computed before if it is in memory.
    pub(super) fn write(
        &mut self,
        code: &Code,
        operand: u32,
        address: Option<&Address>,
        value: &Value,
        known: Known,
    ) {
        match code.instruction.op_kind(operand) {
            OpKind::Register => self.write_register(code.instruction.op_register(operand), value, known),
            OpKind::Memory => {
                let computed;
                let address = match address {
                    Some(address) => address,
                    None => {
                        computed = self.address(code);
                        &computed
                    }
                };
                let value = match known {
                    Known::Frame(at) => self.frame_address(at),
                    _ => value.clone(),
                };
                self.store(address, &value, known);
            }
            _ => self.refuse("an operand of this form"),
        }
    }
}

/// Whether a register is the second byte of another.
pub(super) fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}
