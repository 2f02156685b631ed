//! Inline assembly for x86: the instructions with which C programs write atomic operations and barriers.
//!
//! *Source.* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2; for constraints, the LLVM
//! Language Reference, "Inline Assembler Expressions".
//!
//! A template is a list of instructions in AT&T syntax, one after the other. Their operands are those of the
//! constraints, constants, the accumulator where a constraint binds it, and memory at an operand. Accesses are those
//! of the machine: atomic, and ordered as the model says. Everything else is refused by name.

use crate::expr::{self, Expr};
use crate::flat::{Access, RegId, StepKind, Written};
use crate::inline::{Generator, Refused};
use crate::memory::Val;
use palisade_llvm::calls::{Argument, ArgumentValue, Assembly};
use palisade_llvm::instructions::Instruction;
use palisade_llvm::types::{Type, TypeId};
use palisade_program::written::{BinaryOp, Rmw};

/// An operand of the constraints.
#[derive(Clone)]
struct Slot {
    place: OperandPlace,
    /// The register that the constraint names, such as `ax`.
    bound: Option<String>,
}

/// Where an operand is.
#[derive(Clone)]
enum OperandPlace {
    /// In memory, at this address.
    Memory(Expr),
    /// In a register of this width. It may have no value yet.
    Register { register: RegId, width: u32, given: bool },
    /// A value that is only read, of this width.
    Value(Expr, u32),
    /// A flag, which is read at the end.
    Flag(String),
}

/// The flags after an instruction that sets them.
#[derive(Clone)]
struct Flags {
    zero: Expr,
    sign: Expr,
}

/// An operand of an instruction.
enum Part {
    Slot(usize),
    /// Memory at the address that is in the slot.
    At(usize),
    Constant(i64),
    /// The accumulator, of this many bytes as a power of 2.
    Accumulator(u32),
}

impl Generator<'_, '_> {
    /// Inline assembly.
    pub(crate) fn assembly(
        &mut self,
        instruction: &Instruction,
        assembly: &Assembly,
        arguments: &[Argument],
    ) -> Result<(), Refused> {
        let template = assembly.template.to_lowercase();
        let unknown = |generator: &mut Self| {
            generator.refuse(format!("the inline assembly `{}`", assembly.template.trim()))
        };
        if assembly.intel {
            return Err(unknown(self));
        }
        let mut slots = match self.slots(instruction.ty, &assembly.constraints, arguments)? {
            Some(slots) => slots,
            None => return Err(unknown(self)),
        };
        let mut flags = None;
        let mut locked = false;
        for line in template.split([';', '\n']).map(str::trim).filter(|line| !line.is_empty()) {
            let (mut word, mut rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            while matches!(word, "lock" | "rep") {
                locked |= word == "lock";
                (word, rest) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
            }
            if word.is_empty() {
                continue;
            }
            let done = self.machine_instruction(word, rest.trim(), locked, &mut slots, &mut flags)?;
            if done.is_none() {
                return Err(unknown(self));
            }
            locked = false;
        }
        let Some(result) = instruction.result else { return Ok(()) };
        let mut values = Vec::new();
        let module = self.module();
        let types = match module.types.body(instruction.ty) {
            Type::Struct { fields, .. } => fields.to_vec(),
            _ => vec![instruction.ty],
        };
        let outputs: Vec<OperandPlace> = slots
            .into_iter()
            .map(|slot| slot.place)
            .filter(|place| matches!(place, OperandPlace::Register { .. } | OperandPlace::Flag(_)))
            .collect();
        for (place, ty) in outputs.into_iter().zip(types) {
            let width = self.type_width(ty)?;
            values.push(match place {
                OperandPlace::Register { register, given: true, .. } => Val::Scalar(Expr::Reg(register)),
                OperandPlace::Flag(name) => match flags.as_ref().and_then(|flags| condition(&name, flags)) {
                    Some(flag) => Val::Scalar(self.wrap(width, flag)),
                    None => return Err(unknown(self)),
                },
                _ => Val::Undefined,
            });
        }
        let value = match values.len() {
            1 => values.remove(0),
            _ => Val::Aggregate(values),
        };
        self.set(result, value);
        Ok(())
    }

    /// The operands of the constraints; `None` if one is not understood. Outputs come first. Those that are not in
    /// memory are results of the call, everything else takes an argument.
    fn slots(
        &mut self,
        ty: TypeId,
        constraints: &str,
        arguments: &[Argument],
    ) -> Result<Option<Vec<Slot>>, Refused> {
        let module = self.module();
        let results = match module.types.body(ty) {
            Type::Struct { fields, .. } => fields.to_vec(),
            _ => vec![ty],
        };
        let mut results = results.into_iter();
        let mut arguments = arguments.iter();
        let mut slots: Vec<Slot> = Vec::new();
        for constraint in constraints.split(',').filter(|text| !text.is_empty() && !text.starts_with('~')) {
            if constraint.contains('|') {
                return Ok(None);
            }
            let output = constraint.strip_prefix('=').map(|rest| rest.trim_start_matches('&'));
            let text = output.unwrap_or(constraint);
            let bound = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::to_owned);
            let place = if let (Some(_), None) = (output, text.strip_prefix('*')) {
                let Some(ty) = results.next() else { return Ok(None) };
                let width = self.type_width(ty)?;
                match bound.as_deref().and_then(|name| name.strip_prefix("@cc")) {
                    Some(flag) => OperandPlace::Flag(flag.to_owned()),
                    None => OperandPlace::Register { register: self.temporary(width), width, given: false },
                }
            } else {
                let Some(ArgumentValue::Operand(operand)) = arguments.next().map(|next| &next.value) else {
                    return Ok(None);
                };
                let value = self.scalar(*operand)?;
                if text.starts_with('*') {
                    OperandPlace::Memory(value)
                } else if let Some(tied) = tied(text, bound.as_deref(), &slots) {
                    // The register of an output holds this value first.
                    let Some(Slot { place: OperandPlace::Register { register, given, .. }, .. }) =
                        slots.get_mut(tied)
                    else {
                        return Ok(None);
                    };
                    *given = true;
                    let kind = StepKind::Assign(*register, value);
                    let place = slots[tied].place.clone();
                    self.step(kind);
                    // What is changed later is read through the output.
                    match place {
                        OperandPlace::Register { register, width, .. } => {
                            OperandPlace::Value(Expr::Reg(register), width)
                        }
                        _ => return Ok(None),
                    }
                } else {
                    OperandPlace::Value(value, self.operand_width(*operand)?)
                }
            };
            slots.push(Slot { place, bound });
        }
        Ok(Some(slots))
    }

    /// One instruction; `None` if it is not known.
    fn machine_instruction(
        &mut self,
        word: &str,
        operands: &str,
        locked: bool,
        slots: &mut [Slot],
        flags: &mut Option<Flags>,
    ) -> Result<Option<()>, Refused> {
        match (word, operands) {
            ("nop" | "pause" | "lfence", "") => return Ok(Some(())),
            ("mfence", "") => {
                self.step(StepKind::Fence);
                return Ok(Some(()));
            }
            ("sfence", "") => {
                self.step(StepKind::StoreFence);
                return Ok(Some(()));
            }
            _ => {}
        }
        // A locked instruction that changes nothing on the thread's own stack is a fence.
        let text: String = operands.chars().filter(|c| !c.is_whitespace()).collect();
        if locked && is_stack(&text) && matches!(word, "addl" | "addq" | "orl" | "orq" | "orb" | "addb") {
            self.step(StepKind::Fence);
            return Ok(Some(()));
        }
        let parts: Option<Vec<Part>> =
            text.split(',').filter(|part| !part.is_empty()).map(|part| part_of(part, slots)).collect();
        let Some(parts) = parts else { return Ok(None) };
        if let Some(name) = word.strip_prefix("set") {
            let flag = flags.as_ref().and_then(|flags| condition(name, flags));
            let (Some(flag), [to]) = (flag, parts.as_slice()) else { return Ok(None) };
            return self.put(to, 0, flag, slots);
        }
        let Some((operation, size)) = operation(word) else { return Ok(None) };
        let Some(size) = size.or_else(|| parts.iter().find_map(|part| part_size(part, slots))) else {
            return Ok(None);
        };
        let width = 8 << size;
        let memory = parts.iter().position(|part| address(part, slots).is_some());
        if parts.iter().filter(|part| address(part, slots).is_some()).count() > 1 {
            return Ok(None);
        }
        match (operation, parts.as_slice()) {
            ("mov", [from, to]) if !locked => {
                let Some(value) = self.get(from, size, slots)? else { return Ok(None) };
                self.put(to, size, value, slots)
            }
            ("xchg", [a, b]) => {
                // The one in memory may come first or second. It is always locked.
                let (other, at) = match memory {
                    Some(0) => (b, address(a, slots)),
                    Some(_) => (a, address(b, slots)),
                    None => return Ok(None),
                };
                let (Some(operand), Some(pointer)) = (self.get(other, size, slots)?, at) else {
                    return Ok(None);
                };
                let old = self.temporary(width);
                let at = Access { pointer, size, plain: false };
                self.step(StepKind::Locked { rmw: Rmw::Exchange, old, at, operand });
                self.put(other, size, Expr::Reg(old), slots)
            }
            ("cmpxchg", [new, to]) if locked => {
                let accumulator = Part::Accumulator(size);
                let (Some(pointer), Some(new)) = (address(to, slots), self.get(new, size, slots)?) else {
                    return Ok(None);
                };
                let Some(expected) = self.get(&accumulator, size, slots)? else { return Ok(None) };
                let (old, done) = (self.temporary(width), self.temporary(1));
                let at = Access { pointer, size, plain: false };
                self.step(StepKind::Cas { old: Some(old), done: Some(done), at, expected, new });
                *flags = Some(Flags { zero: Expr::Reg(done), sign: Expr::Int(0) });
                self.put(&accumulator, size, Expr::Reg(old), slots)
            }
            ("xadd", [other, to]) => {
                let Some(operand) = self.get(other, size, slots)? else { return Ok(None) };
                let change = (Rmw::FetchAdd, operand);
                let Some(old) = self.change(to, size, locked, change, slots, flags)? else { return Ok(None) };
                self.put(other, size, old, slots)
            }
            ("inc" | "dec" | "not", [to]) => {
                let change = match operation {
                    "inc" => (Rmw::FetchAdd, Expr::Int(1)),
                    "dec" => (Rmw::FetchSub, Expr::Int(1)),
                    _ => (Rmw::FetchXor, Expr::Int(-1)),
                };
                Ok(self.change(to, size, locked, change, slots, flags)?.map(|_| ()))
            }
            ("add" | "sub" | "and" | "or" | "xor", [from, to]) => {
                let Some(operand) = self.get(from, size, slots)? else { return Ok(None) };
                let rmw = match operation {
                    "add" => Rmw::FetchAdd,
                    "sub" => Rmw::FetchSub,
                    "and" => Rmw::FetchAnd,
                    "or" => Rmw::FetchOr,
                    _ => Rmw::FetchXor,
                };
                Ok(self.change(to, size, locked, (rmw, operand), slots, flags)?.map(|_| ()))
            }
            _ => Ok(None),
        }
    }

    /// Changes an operand by a value. Returns what it was before, and sets the flags.
    fn change(
        &mut self,
        to: &Part,
        size: u32,
        locked: bool,
        (rmw, operand): (Rmw, Expr),
        slots: &mut [Slot],
        flags: &mut Option<Flags>,
    ) -> Result<Option<Expr>, Refused> {
        let width = 8 << size;
        let op = match rmw {
            Rmw::FetchAdd => BinaryOp::WordAdd,
            Rmw::FetchSub => BinaryOp::WordSub,
            Rmw::FetchAnd => BinaryOp::BitAnd,
            Rmw::FetchOr => BinaryOp::BitOr,
            _ => BinaryOp::BitXor,
        };
        let old = self.temporary(width);
        match address(to, slots) {
            Some(pointer) if locked => {
                let at = Access { pointer, size, plain: false };
                self.step(StepKind::Locked { rmw, old, at, operand: operand.clone() });
            }
            None if locked => return Ok(None),
            _ => {
                let Some(value) = self.get(to, size, slots)? else { return Ok(None) };
                self.step(StepKind::Assign(old, value));
            }
        }
        let new = self.binary(op, Expr::Reg(old), operand);
        let new = self.wrap(width, new);
        let zero = self.binary(BinaryOp::Eq, new.clone(), Expr::Int(0));
        let sign = self.binary(BinaryOp::Lt, new.clone(), Expr::Int(0));
        *flags = Some(Flags { zero, sign });
        if !locked && self.put(to, size, new, slots)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Expr::Reg(old)))
    }

    /// The value of an operand.
    fn get(&mut self, part: &Part, size: u32, slots: &[Slot]) -> Result<Option<Expr>, Refused> {
        let width = 8 << size;
        if let Some(pointer) = address(part, slots) {
            let to = self.temporary(width);
            let from = Access { pointer, size, plain: false };
            self.step(StepKind::Load { to, from, written: Written::Needed });
            return Ok(Some(Expr::Reg(to)));
        }
        let (value, wide) = match part {
            Part::Constant(value) => (Expr::Int(*value), 64),
            Part::Slot(_) | Part::At(_) | Part::Accumulator(_) => match slot(part, slots).map(|s| &s.place) {
                Some(OperandPlace::Register { register, width, given: true }) => {
                    (Expr::Reg(*register), *width)
                }
                Some(OperandPlace::Value(value, width)) => (value.clone(), *width),
                _ => return Ok(None),
            },
        };
        if wide < width && value.as_int().is_none() {
            return Ok(None);
        }
        Ok(Some(self.wrap(width, value)))
    }

    /// Changes an operand.
    fn put(
        &mut self,
        part: &Part,
        size: u32,
        value: Expr,
        slots: &mut [Slot],
    ) -> Result<Option<()>, Refused> {
        if let Some(pointer) = address(part, slots) {
            self.step(StepKind::Store { to: Access { pointer, size, plain: false }, value });
            return Ok(Some(()));
        }
        let index = match part {
            // An instruction must not change an input that is not an output too.
            Part::Accumulator(_) => {
                let output =
                    |slot: &Slot| is_accumulator(slot) && matches!(slot.place, OperandPlace::Register { .. });
                match slots.iter().position(output) {
                    Some(index) => index,
                    None => return Ok(None),
                }
            }
            Part::Slot(index) => *index,
            _ => return Ok(None),
        };
        let Some(Slot { place: OperandPlace::Register { register, width, given }, .. }) =
            slots.get_mut(index)
        else {
            return Ok(None);
        };
        let value = match (size, *width) {
            (size, width) if 8 << size == width => value,
            // Instructions on 32 bits clear the upper half.
            (2, 64) => expr::unsigned(32, value, &self.code.registers),
            _ => return Ok(None),
        };
        *given = true;
        let kind = StepKind::Assign(*register, value);
        self.step(kind);
        Ok(Some(()))
    }
}

/// The output that an input shares its register with: by its number, or because both name the register.
fn tied(constraint: &str, bound: Option<&str>, slots: &[Slot]) -> Option<usize> {
    let same = |slot: &Slot| {
        bound.is_some()
            && slot.bound.as_deref() == bound
            && matches!(slot.place, OperandPlace::Register { .. })
    };
    constraint.parse().ok().or_else(|| slots.iter().position(same))
}

fn is_accumulator(slot: &Slot) -> bool {
    matches!(slot.bound.as_deref(), Some("ax" | "eax" | "rax" | "al"))
}

/// The slot of an operand.
fn slot<'s>(part: &Part, slots: &'s [Slot]) -> Option<&'s Slot> {
    match part {
        Part::Slot(index) | Part::At(index) => slots.get(*index),
        Part::Accumulator(_) => slots.iter().find(|slot| is_accumulator(slot)),
        Part::Constant(_) => None,
    }
}

/// The address of an operand in memory.
fn address(part: &Part, slots: &[Slot]) -> Option<Expr> {
    match (part, &slot(part, slots)?.place) {
        (Part::Slot(_), OperandPlace::Memory(pointer)) => Some(pointer.clone()),
        (Part::At(_), OperandPlace::Value(pointer, 64)) => Some(pointer.clone()),
        (Part::At(_), OperandPlace::Register { register, width: 64, given: true }) => {
            Some(Expr::Reg(*register))
        }
        _ => None,
    }
}

/// The size that a register operand has.
fn part_size(part: &Part, slots: &[Slot]) -> Option<u32> {
    match (part, slot(part, slots).map(|slot| &slot.place)) {
        (Part::Accumulator(size), _) => Some(*size),
        (Part::Slot(_), Some(OperandPlace::Register { width, .. } | OperandPlace::Value(_, width))) => {
            matches!(width, 8 | 16 | 32 | 64).then(|| width.trailing_zeros() - 3)
        }
        _ => None,
    }
}

/// An operand of an instruction: `$0`, `${0:q}`, `($0)`, `$$1`, `%eax`.
fn part_of(text: &str, slots: &[Slot]) -> Option<Part> {
    if let Some(constant) = text.strip_prefix("$$") {
        let value = match constant.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok()?,
            None => constant.parse().ok()?,
        };
        return Some(Part::Constant(value));
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return match part_of(inner, slots)? {
            Part::Slot(index) => Some(Part::At(index)),
            _ => None,
        };
    }
    if let Some(name) = text.strip_prefix('$') {
        let name = name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(name);
        // The letter after the colon repeats the size that the instruction has anyway.
        let number = match name.split_once(':') {
            Some((number, "b" | "w" | "k" | "q")) => number,
            Some(_) => return None,
            None => name,
        };
        let index: usize = number.parse().ok()?;
        return (index < slots.len()).then_some(Part::Slot(index));
    }
    match text {
        "%al" => Some(Part::Accumulator(0)),
        "%ax" => Some(Part::Accumulator(1)),
        "%eax" => Some(Part::Accumulator(2)),
        "%rax" => Some(Part::Accumulator(3)),
        _ => None,
    }
}

/// What an instruction does, and the size that its last letter gives.
fn operation(word: &str) -> Option<(&'static str, Option<u32>)> {
    const KNOWN: [&str; 12] =
        ["mov", "xchg", "cmpxchg", "xadd", "inc", "dec", "not", "add", "sub", "and", "or", "xor"];
    KNOWN.into_iter().find_map(|known| match word.strip_prefix(known)? {
        "" => Some((known, None)),
        "b" => Some((known, Some(0))),
        "w" => Some((known, Some(1))),
        "l" => Some((known, Some(2))),
        "q" => Some((known, Some(3))),
        _ => None,
    })
}

/// A condition on the flags, as 0 or 1.
fn condition(name: &str, flags: &Flags) -> Option<Expr> {
    match name {
        "e" | "z" => Some(flags.zero.clone()),
        "ne" | "nz" => Some(expr::not(flags.zero.clone())),
        "s" => Some(flags.sign.clone()),
        "ns" => Some(expr::not(flags.sign.clone())),
        _ => None,
    }
}

/// Whether the operands are 0 and a place on the stack.
fn is_stack(text: &str) -> bool {
    text.strip_prefix("$$0,")
        .and_then(|rest| rest.strip_suffix("(%rsp)"))
        .is_some_and(|offset| matches!(offset, "" | "0" | "-4" | "-8" | "-128"))
}
