//! Instructions on integers: which they are, moves, the stack.
//!
//! *Source.* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

use super::arithmetic::accumulators;
use super::flags::Flags;
use super::operands::{constant, is_high};
use super::{Emitter, Value};
use crate::decode::{Code, Reference, is_short_move};
use crate::registers::{Gpr, RBP, RSP};
use crate::state::{DEFINED, Known, UNDEFINED};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Whether an instruction is `setcc` or `cmovcc`.
fn is_conditional(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp, Cmovns,
        Cmovo, Cmovp, Cmovs, Seta, Setae, Setb, Setbe, Sete, Setg, Setge, Setl, Setle, Setne, Setno, Setnp,
        Setns, Seto, Setp, Sets,
    };
    let sets = matches!(
        instruction.mnemonic(),
        Seta | Setae
            | Setb
            | Setbe
            | Sete
            | Setg
            | Setge
            | Setl
            | Setle
            | Setne
            | Setno
            | Setnp
            | Setns
            | Seto
            | Setp
            | Sets
    );
    let moves = matches!(
        instruction.mnemonic(),
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    );
    sets || moves
}

/// Whether an instruction may have an address as its immediate operand. Every one of them asks for it with `copy`.
fn takes_address(instruction: &Instruction) -> bool {
    let plain = !instruction.has_lock_prefix() && !instruction.has_rep_prefix();
    let known = matches!(
        instruction.mnemonic(),
        Mnemonic::Mov | Mnemonic::Cmp | Mnemonic::Push | Mnemonic::Add | Mnemonic::Sub
    );
    plain && known
}

/// Whether an operand is the thread's own address.
fn is_thread_address(code: &Code, operand: u32) -> bool {
    let instruction = &code.instruction;
    instruction.op_count() > operand
        && instruction.op_kind(operand) == OpKind::Memory
        && instruction.segment_prefix() == Register::FS
        && (instruction.memory_base(), instruction.memory_index()) == (Register::None, Register::None)
        && code.displacement.is_none()
        && instruction.memory_displacement64() == 0
}

impl Emitter<'_, '_> {
    /// Whether an instruction moves the stack pointer as its form for 64 bits does.
    fn is_usual_stack(&self, code: &Code) -> bool {
        let instruction = &code.instruction;
        match instruction.mnemonic() {
            Mnemonic::Push => instruction.stack_pointer_increment() == -8,
            Mnemonic::Pop => instruction.stack_pointer_increment() == 8,
            Mnemonic::Call => instruction.stack_pointer_increment() == -8,
            Mnemonic::Ret => instruction.code() == iced_x86::Code::Retnq,
            Mnemonic::Leave => instruction.code() == iced_x86::Code::Leaveq,
            _ => false,
        }
    }

    /// The address of a thread-local variable from the thread's own address and the position of the variable.
    fn thread_address(&mut self, code: &Code) -> bool {
        let instruction = &code.instruction;
        let to = instruction.op0_register();
        if instruction.op0_kind() != OpKind::Register || !to.is_gpr64() || to == Register::RSP {
            return false;
        }
        match instruction.mnemonic() {
            Mnemonic::Mov if is_thread_address(code, 1) => {
                self.write_register(to, &constant(64, 0), Known::Thread);
            }
            // What is added to is the position: the address of this thread's copy.
            Mnemonic::Add if is_thread_address(code, 1) => {
                let position = self.read_register(to);
                self.write_register(to, &position, DEFINED);
                self.flags = Flags::Undefined;
            }
            Mnemonic::Add if self.state.get(Gpr::of(to).expect("a general register")) == Known::Thread => {
                let Some(Reference::ThreadTableEntry(target)) = code.displacement.clone() else {
                    return false;
                };
                let address = self.address_of(&target, 0);
                self.write_register(to, &address, DEFINED);
                self.flags = Flags::Undefined;
            }
            _ => return false,
        }
        true
    }

    /// An instruction other than a jump.
    pub(super) fn instruction(&mut self, code: &Code) {
        let instruction = &code.instruction;
        if let Some(why) = &code.refused {
            let why = why.clone();
            return self.refuse(why);
        }
        if code.immediate.is_some() && !takes_address(instruction) {
            return self.unknown(code);
        }
        if instruction.is_stack_instruction() && !self.is_usual_stack(code) {
            return self.unknown(code);
        }
        if self.thread_address(code) {
            return;
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
                let pushes = self.pushes;
                let (value, known) = self.pop();
                // Room on the stack is given back like this.
                let register = Gpr::of(instruction.op0_register());
                if register.is_some_and(|register| !self.used_after().has(register)) {
                    self.pushes = pushes;
                }
                self.write(code, 0, None, &value, known);
            }
            Mnemonic::Leave => {
                let frame = self.state.get(RBP);
                self.state.set(RSP, frame);
                let (value, known) = self.pop();
                self.write_register(Register::RBP, &value, known);
            }
            Mnemonic::Add | Mnemonic::Sub if self.moves_frame(code) => {}
            _ if self.keeps_low_bits(code) => {}
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
            Mnemonic::Imul | Mnemonic::Mul if self.width(code, 0) == 8 => self.multiply_bytes(code),
            Mnemonic::Imul | Mnemonic::Mul => self.multiply(code),
            Mnemonic::Popcnt | Mnemonic::Tzcnt | Mnemonic::Lzcnt | Mnemonic::Bsf | Mnemonic::Bsr => {
                self.count_bits(code);
            }
            Mnemonic::Shld | Mnemonic::Shrd => self.double_shift(code),
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

    /// An operation of which each bit of the result depends on the same and lower bits of the operands, with an operand
    /// of which only the lowest bits are defined: so are those of the result, and no flags.
    fn keeps_low_bits(&mut self, code: &Code) -> bool {
        let instruction = &code.instruction;
        let op = match instruction.mnemonic() {
            Mnemonic::And => "and",
            Mnemonic::Or => "or",
            Mnemonic::Xor => "xor",
            Mnemonic::Add => "add",
            Mnemonic::Sub => "sub",
            Mnemonic::Not => "xor",
            _ => return false,
        };
        let width = self.width(code, 0);
        let unary = instruction.mnemonic() == Mnemonic::Not;
        let second = if unary { OpKind::Immediate8 } else { instruction.op1_kind() };
        if instruction.op0_kind() != OpKind::Register || second == OpKind::Memory || self.is_same(code) {
            return false;
        }
        // Only some of the bits matter, and these may be all that are defined.
        if op == "and" && second != OpKind::Register {
            return false;
        }
        let known = |emitter: &Self, operand: u32| match instruction.op_kind(operand) {
            OpKind::Register if is_high(instruction.op_register(operand)) => UNDEFINED,
            OpKind::Register => Gpr::of(instruction.op_register(operand))
                .map_or(UNDEFINED, |register| emitter.state.get(register)),
            _ => DEFINED,
        };
        let operands = if unary { [known(self, 0), DEFINED] } else { [known(self, 0), known(self, 1)] };
        if operands.iter().any(|known| !matches!(known, Known::Defined(1..))) {
            return false;
        }
        let defined = operands.iter().map(|known| known.bits()).min().unwrap_or(0);
        if defined >= width {
            return false;
        }
        let (a, _) = self.copy(code, 0, width);
        let b = if unary { constant(width, -1) } else { self.copy(code, 1, width).0 };
        let result = self.bits(op, &a, &b);
        self.write(code, 0, None, &result, Known::Defined(defined));
        if !unary {
            self.flags = Flags::Undefined;
        }
        true
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
        if let (Some(reference), true) = (&code.immediate, is_short_move(&code.instruction)) {
            // Such code is only linked to programs that are in the lowest 4 GiB: the address is not cut.
            let (target, by) = reference.target();
            let address = self.address_of(&target.clone(), by);
            let whole = code.instruction.op0_register().full_register();
            if whole == Register::RSP {
                self.refuse("a stack pointer that is not known");
            }
            return self.write_register(whole, &address, DEFINED);
        }
        let (value, known) = self.copy(code, 1, width);
        if code.instruction.op0_register() == Register::RSP && !matches!(known, Known::Frame(_)) {
            self.refuse("a stack pointer that is not known");
        }
        self.write(code, 0, None, &value, known);
    }

    /// A sum of registers of which only some of the lowest bits are defined: so many are defined of the result.
    fn partial_lea(&mut self, code: &Code) -> bool {
        let instruction = &code.instruction;
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        let used: Vec<Gpr> = [base, index].into_iter().filter_map(Gpr::of).collect();
        let defined = |register: &Gpr| match self.state.get(*register) {
            Known::Defined(bits) => bits,
            _ => 0,
        };
        let least = used.iter().map(defined).min().unwrap_or(0);
        let width = 8 * instruction.op0_register().size() as u32;
        let is_plain = code.displacement.is_none() && instruction.segment_prefix() == Register::None;
        if !is_plain || least == 0 || least == 64 {
            return false;
        }
        let mut sum = constant(64, instruction.memory_displacement64() as i64);
        for (register, scale) in [(base, 1), (index, instruction.memory_index_scale())] {
            let Some(register) = Gpr::of(register) else { continue };
            let value = self.load_register(register);
            let scaled = self.bits("mul", &value, &constant(64, i64::from(scale)));
            sum = self.bits("add", &sum, &scaled);
        }
        let value = self.truncate(&sum, width);
        let known = if least < width { Known::Defined(least) } else { DEFINED };
        self.write_register(instruction.op0_register(), &value, known);
        true
    }

    fn lea(&mut self, code: &Code) {
        if self.partial_lea(code) {
            return;
        }
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
        // What was pushed to make room is popped to give it back: the register then holds nothing of the program's.
        if self.state.is_room(at) {
            self.uses.direct.insert((at, 8));
            return (constant(64, 0), UNDEFINED);
        }
        // It need not have been written.
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
            self.give_up_unless(&zero);
        }
        let (to, count) = (self.read_register(Register::RDI), self.read_register(Register::RCX));
        let bytes = self.value(64, format!("mul i64 {}, {size}", count.text));
        let byte = self.zero_extend(&value, 32);
        let byte = if size > 1 { constant(32, 0) } else { byte };
        self.assume("the stores of a `rep stos` are made in the order of their addresses");
        self.declare("memset", &super::library_type("memset"));
        let (to_text, byte, length) = (to.text.clone(), byte.text, bytes.text.clone());
        self.value(64, format!("call i64 @memset(i64 {to_text}, i32 {byte}, i64 {length})"));
        let after = self.bits("add", &to, &bytes);
        self.write_register(Register::RDI, &after, DEFINED);
        self.write_register(Register::RCX, &constant(64, 0), DEFINED);
    }
}
