//! Instructions, from text to bytes.
//!
//! *How.* A mnemonic stands for several forms of an instruction, which the library lists with the kinds of their operands.
//! All forms that the written operands fit are encoded, and the shortest is taken, as assemblers do. Forms that fit the
//! same text do the same: they differ in how long their constants are, or in which operand has which place. Where that
//! is not so, because the size of an operand in memory is not written, the text is refused.
//!
//! *Guarantee.* What control flow and answers rest on is decoded again from these bytes. Floating-point instructions of
//! the x87, for which AT&T syntax has operands in an order of its own, and instructions of newer extensions (`vaddps`)
//! are not read at all. They are refused where control can reach them.

use super::expression::{Expression, Lookup};
use super::lexer::Cursor;
use super::mnemonic::{self, Wanted};
use super::operand::{self, Memory, Operand, What};
use iced_x86::{Code, Encoder, Instruction, OpCodeOperandKind as OperandKind, OpKind, Register};
use palisade_base::Span;

/// What an instruction becomes.
#[derive(Clone, Debug)]
pub(super) enum Read {
    Bytes(Vec<u8>, Vec<Fix>),
    /// A jump to a place, by a condition or always.
    Jump(Option<u8>, Expression),
    /// An instruction that is not read.
    Unread,
}

/// A part of the bytes that depends on symbols.
#[derive(Clone, Debug)]
pub(super) struct Fix {
    pub(super) at: usize,
    pub(super) field: Field,
    pub(super) expression: Expression,
    pub(super) span: Span,
}

/// What goes into such a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// 4 bytes, relative to the end of the instruction, which is so many bytes after the field.
    Relative(i64),
    /// 4 bytes that are extended with the sign.
    Signed32,
    /// 4 bytes that are extended with zeros.
    Unsigned32,
    /// Of so many bytes.
    Data(usize),
}

impl Field {
    pub(super) fn size(self) -> usize {
        match self {
            Field::Relative(_) | Field::Signed32 | Field::Unsigned32 => 4,
            Field::Data(size) => size,
        }
    }
}

/// Why an instruction is wrong, and where.
type Wrong = (String, Span);

/// Mnemonics whose operands AT&T syntax does not write in the opposite order, that mean something else in the manual, or
/// that have operands of another kind.
const UNREAD: [&str; 19] = [
    "enter", "in", "out", "invlpga", "ret", "pushf", "popf", "iret", "loop", "loope", "loopne", "jcxz",
    "jecxz", "jrcxz", "xbegin", "call", "jmp", "extrq", "insertq",
];

/// Reads an instruction: its mnemonic without prefixes, and the rest.
pub(super) fn read(
    mnemonic: &str,
    cursor: &mut Cursor<'_>,
    prefixes: &[u8],
    lookup: &mut dyn Lookup,
) -> Result<Read, Wrong> {
    let whole = cursor.span();
    let written: String = cursor.rest().chars().filter(|c| !c.is_whitespace()).collect();
    if written.is_empty()
        && let Some(bytes) = mnemonic::without_operands(mnemonic)
    {
        return Ok(Read::Bytes(bytes.to_vec(), Vec::new()));
    }
    if let Some((bytes, operands)) = mnemonic::string(mnemonic) {
        let short = |text: &str| text.replace("%es:(%rdi)", "(%rdi)");
        let usual = written.is_empty() || short(&written) == short(operands);
        return Ok(if usual { Read::Bytes(bytes, Vec::new()) } else { Read::Unread });
    }
    // The size of what a prefix changes is not followed.
    let sized = prefixes.iter().any(|byte| matches!(byte, 0x66 | 0x48));
    if sized && !matches!(mnemonic, "lea" | "leaq" | "call" | "callq" | "nop" | "nopw") {
        return Ok(Read::Unread);
    }
    let is_jump = mnemonic.strip_prefix('j').and_then(mnemonic::condition);
    let is_branch = is_jump.is_some() || matches!(mnemonic, "jmp" | "jmpq" | "call" | "callq");
    let readings = match mnemonic {
        "movabs" | "movabsq" => vec![Wanted { name: "mov".to_owned(), size: Some(8), from: None }],
        _ => mnemonic::readings(mnemonic),
    };
    let unread = readings.iter().any(|wanted| UNREAD.contains(&wanted.name.as_str()));
    if !is_branch && (readings.is_empty() || mnemonic.starts_with('f') || unread) {
        return Ok(Read::Unread);
    }
    let operands = match operand::read(cursor, lookup) {
        Ok(operands) => operands,
        // Registers of extensions, and what else only they have.
        Err((why, _)) if why.contains("the register") => return Ok(Read::Unread),
        Err(wrong) => return Err(wrong),
    };
    if is_branch {
        return branch(mnemonic, is_jump, &operands, whole);
    }
    if operands.iter().any(|operand| operand.starred) {
        return Err((format!("`{mnemonic}` does not take an operand with `*`"), whole));
    }
    let is_wide = mnemonic.starts_with("movabs");
    let unsized_memory = operands.iter().any(|operand| matches!(operand.what, What::Memory(_)))
        && operands.iter().any(|operand| matches!(operand.what, What::Immediate(_)))
        && !operands.iter().any(|operand| matches!(operand.what, What::Register(_)));
    for wanted in &readings {
        let mut found: Vec<Encoded> = Vec::new();
        for operands in orders(&wanted.name, operands.clone()) {
            for &code in mnemonic::forms(&wanted.name) {
                if (!is_wide || code == Code::Mov_r64_imm64) && fits(code, wanted) {
                    found.extend(encode(code, &operands));
                }
            }
        }
        let Some(first) = found.first() else { continue };
        // Which sizes a constant fits does not decide: assemblers take 4 bytes.
        if (unsized_memory && wanted.size.is_none()) || found.iter().any(|other| other.memory != first.memory)
        {
            let why = format!("the size of the operand of `{mnemonic}` is not written, as in `{mnemonic}l`");
            return Err((why, whole));
        }
        let shortest = found
            .into_iter()
            .min_by_key(|encoded| (encoded.bytes.len(), encoded.constant))
            .expect("one was found");
        return Ok(Read::Bytes(shortest.bytes, shortest.fixes));
    }
    Err((format!("`{mnemonic}` with such operands"), whole))
}

/// Jumps and calls.
fn branch(
    mnemonic: &str,
    condition: Option<usize>,
    operands: &[Operand],
    whole: Span,
) -> Result<Read, Wrong> {
    let [operand] = operands else {
        return Err((format!("`{mnemonic}` takes one operand"), whole));
    };
    let is_call = mnemonic.starts_with("call");
    if operand.starred {
        let code = if is_call { Code::Call_rm64 } else { Code::Jmp_rm64 };
        return match encode(code, operands) {
            Some(encoded) if condition.is_none() => Ok(Read::Bytes(encoded.bytes, encoded.fixes)),
            _ => Err((format!("`{mnemonic}` with such an operand"), operand.span)),
        };
    }
    let target = match &operand.what {
        What::Memory(memory) => memory.only_expression(),
        _ => None,
    };
    let Some(target) = target else {
        let why = format!("`{mnemonic}` through a register or memory is written with `*`");
        return Err((why, operand.span));
    };
    if mnemonic == "jmpq" {
        return Err(("`jmpq` to a label, which is written `jmp`".to_owned(), whole));
    }
    if target.value().is_some() {
        return Ok(Read::Unread);
    }
    if is_call {
        let fix = Fix { at: 1, field: Field::Relative(4), expression: target.clone(), span: operand.span };
        return Ok(Read::Bytes(vec![0xe8, 0, 0, 0, 0], vec![fix]));
    }
    Ok(Read::Jump(condition.map(|number| number as u8), target.clone()))
}

/// The operands in the order of the manual, in all ways in which they may be meant.
fn orders(name: &str, mut operands: Vec<Operand>) -> Vec<Vec<Operand>> {
    operands.reverse();
    let is_immediate = |operand: &Operand| matches!(operand.what, What::Immediate(_));
    let mut orders = vec![operands.clone()];
    match (name, &operands[..]) {
        // The order makes no difference, and only one has an encoding.
        ("test" | "xchg", [first, second]) if !is_immediate(second) && !is_immediate(first) => {
            orders.push(vec![second.clone(), first.clone()])
        }
        // The target is the source.
        ("imul", [target, constant @ Operand { what: What::Immediate(_), .. }]) => {
            orders.push(vec![target.clone(), target.clone(), constant.clone()]);
        }
        ("shl" | "shr" | "sar" | "rol" | "ror" | "rcl" | "rcr", [target]) => {
            let one = What::Immediate(Expression::number(1));
            orders = vec![vec![target.clone(), Operand { what: one, ..target.clone() }]];
        }
        _ => {}
    }
    orders
}

/// Whether a form has the sizes that the mnemonic says.
fn fits(code: Code, wanted: &Wanted) -> bool {
    if wanted.name == "push" || wanted.name == "pop" {
        // These have 8 bytes, unless something else is written.
        let short = matches!(code, Code::Push_rm16 | Code::Pushw_imm8 | Code::Push_imm16 | Code::Pop_rm16);
        let by_register = matches!(code, Code::Push_r16 | Code::Pop_r16);
        let usual = matches!(
            code,
            Code::Push_r64
                | Code::Push_rm64
                | Code::Pushq_imm8
                | Code::Pushq_imm32
                | Code::Pop_r64
                | Code::Pop_rm64
        );
        return match wanted.size {
            None => usual || by_register,
            Some(8) => usual,
            Some(2) => short || by_register,
            Some(_) => false,
        };
    }
    let kinds = code.op_code().op_kinds();
    let sizes: Vec<usize> = kinds.iter().filter_map(|kind| general(*kind)).collect();
    match (wanted.size, wanted.from) {
        (Some(to), Some(from)) => sizes == [to, from],
        (Some(size), None) => !sizes.is_empty() && sizes.iter().all(|of| *of == size),
        (None, _) => true,
    }
}

/// The size of a kind of operand that is a general register, or memory of that size.
fn general(kind: OperandKind) -> Option<usize> {
    Some(match kind {
        OperandKind::r8_or_mem | OperandKind::r8_reg | OperandKind::r8_opcode | OperandKind::al => 1,
        OperandKind::r16_or_mem
        | OperandKind::r16_reg
        | OperandKind::r16_rm
        | OperandKind::r16_opcode
        | OperandKind::ax => 2,
        OperandKind::r32_or_mem
        | OperandKind::r32_reg
        | OperandKind::r32_rm
        | OperandKind::r32_opcode
        | OperandKind::eax => 4,
        OperandKind::r64_or_mem
        | OperandKind::r64_reg
        | OperandKind::r64_rm
        | OperandKind::r64_opcode
        | OperandKind::rax => 8,
        _ => return None,
    })
}

/// Whether a register is of a kind.
fn is_of(register: Register, kind: OperandKind) -> bool {
    match kind {
        OperandKind::al => register == Register::AL,
        OperandKind::cl => register == Register::CL,
        OperandKind::ax => register == Register::AX,
        OperandKind::eax => register == Register::EAX,
        OperandKind::rax => register == Register::RAX,
        OperandKind::xmm_or_mem | OperandKind::xmm_reg | OperandKind::xmm_rm => register.is_xmm(),
        OperandKind::mm_or_mem | OperandKind::mm_reg | OperandKind::mm_rm => register.is_mm(),
        kind => register.is_gpr() && general(kind) == Some(register.size()),
    }
}

/// Whether a kind of operand may be in memory.
fn may_be_memory(kind: OperandKind) -> bool {
    matches!(
        kind,
        OperandKind::mem
            | OperandKind::r8_or_mem
            | OperandKind::r16_or_mem
            | OperandKind::r32_or_mem
            | OperandKind::r64_or_mem
            | OperandKind::mm_or_mem
            | OperandKind::xmm_or_mem
    )
}

/// A form of an instruction, as bytes.
struct Encoded {
    bytes: Vec<u8>,
    fixes: Vec<Fix>,
    /// How many bytes it accesses.
    memory: usize,
    /// How many bytes its constant has.
    constant: usize,
}

/// Encodes a form with operands in the order of the manual. `None` if they do not fit.
fn encode(code: Code, operands: &[Operand]) -> Option<Encoded> {
    let kinds = code.op_code().op_kinds();
    if kinds.len() != operands.len() {
        return None;
    }
    // This clears the upper half of the register. Its shortest form does nothing.
    let is_accumulator = |operand: &Operand| matches!(operand.what, What::Register(Register::EAX));
    if code == Code::Xchg_r32_EAX && operands.iter().all(is_accumulator) {
        return None;
    }
    let mut instruction = Instruction::new();
    instruction.set_code(code);
    let mut accessed = None;
    let mut symbolic = None;
    for (index, (operand, &kind)) in (0u32..).zip(operands.iter().zip(kinds)) {
        match &operand.what {
            What::Register(register) if is_of(*register, kind) => {
                instruction.set_op_kind(index, OpKind::Register);
                instruction.set_op_register(index, *register);
            }
            What::Memory(memory) if may_be_memory(kind) => {
                instruction.set_op_kind(index, OpKind::Memory);
                put_memory(&mut instruction, memory)?;
                accessed = Some((memory, operand.span));
            }
            What::Immediate(expression) => match expression.value() {
                Some(value) => put_constant(&mut instruction, index, kind, value)?,
                None => {
                    let field = put_symbolic(&mut instruction, index, kind)?;
                    symbolic = Some((field, expression, operand.span));
                }
            },
            _ => return None,
        }
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(&instruction, 0).ok()?;
    let offsets = encoder.get_constant_offsets();
    let constant = offsets.immediate_size();
    let mut encoded = Encoded { bytes: encoder.take_buffer(), fixes: Vec::new(), memory: 0, constant };
    if let Some((memory, span)) = accessed {
        encoded.memory = instruction.memory_size().size();
        put_displacement(
            &mut encoded,
            memory,
            offsets.displacement_offset(),
            offsets.displacement_size(),
            span,
        )?;
    }
    if let Some((field, expression, span)) = symbolic {
        if offsets.immediate_size() != field.size() {
            return None;
        }
        let at = offsets.immediate_offset();
        encoded.fixes.push(Fix { at, field, expression: expression.clone(), span });
    }
    Some(encoded)
}

fn put_memory(instruction: &mut Instruction, memory: &Memory) -> Option<()> {
    let Memory { segment, displacement, base, index, scale } = memory;
    let short = [base, index].into_iter().flatten().any(|register| register.is_gpr32());
    let whole = if short { 4 } else { 8 };
    instruction.set_memory_base(base.unwrap_or(Register::None));
    instruction.set_memory_index(index.unwrap_or(Register::None));
    instruction.set_memory_index_scale(*scale);
    instruction.set_segment_prefix(segment.unwrap_or(Register::None));
    let constant = displacement.as_ref().map_or(Some(0), Expression::value);
    let (value, size) = match constant {
        _ if *base == Some(Register::RIP) => (0, 8),
        Some(0) if base.is_some() => (0, 0),
        // It may be written without its sign.
        Some(value) => {
            let value = if value > i128::from(i64::MAX) { value - (1 << 64) } else { value };
            (i32::try_from(value).ok()?, if base.is_some() { 1 } else { whole })
        }
        None => (0, whole),
    };
    instruction.set_memory_displ_size(size);
    instruction.set_memory_displacement64(if short {
        u64::from(value as u32)
    } else {
        i64::from(value) as u64
    });
    Some(())
}

/// Notes what depends on symbols in a displacement.
fn put_displacement(
    encoded: &mut Encoded,
    memory: &Memory,
    at: usize,
    size: usize,
    span: Span,
) -> Option<()> {
    let relative = memory.base == Some(Register::RIP);
    let expression = memory.displacement.clone().unwrap_or_default();
    match expression.value() {
        // So many bytes after the instruction, which is nothing that has a name.
        Some(_) if relative => return None,
        Some(_) => {}
        None if size == 4 => {
            encoded.bytes.get_mut(at..at + 4)?.fill(0);
            let to_end = i64::try_from(encoded.bytes.len() - at).ok()?;
            let field = if relative { Field::Relative(to_end) } else { Field::Signed32 };
            encoded.fixes.push(Fix { at, field, expression, span });
        }
        None => return None,
    }
    Some(())
}

/// A constant operand, if it fits. It may be written with or without its sign.
fn put_constant(instruction: &mut Instruction, index: u32, kind: OperandKind, value: i128) -> Option<()> {
    // The value as a number with a sign, of so many bits.
    let signed = |bits: u32| {
        let (least, most) = (-(1i128 << (bits - 1)), 1i128 << bits);
        (least..most).contains(&value).then(|| (value << (128 - bits)) >> (128 - bits))
    };
    let byte = |value: i128| i8::try_from(value).ok();
    match kind {
        OperandKind::imm8 => {
            instruction.set_op_kind(index, OpKind::Immediate8);
            instruction.set_immediate8(signed(8)? as u8);
        }
        OperandKind::imm8_const_1 if value == 1 => {
            instruction.set_op_kind(index, OpKind::Immediate8);
            instruction.set_immediate8(1);
        }
        OperandKind::imm8sex16 => {
            instruction.set_op_kind(index, OpKind::Immediate8to16);
            instruction.set_immediate8to16(i16::from(byte(signed(16)?)?));
        }
        OperandKind::imm8sex32 => {
            instruction.set_op_kind(index, OpKind::Immediate8to32);
            instruction.set_immediate8to32(i32::from(byte(signed(32)?)?));
        }
        OperandKind::imm8sex64 => {
            instruction.set_op_kind(index, OpKind::Immediate8to64);
            instruction.set_immediate8to64(i64::from(byte(signed(64)?)?));
        }
        OperandKind::imm16 => {
            instruction.set_op_kind(index, OpKind::Immediate16);
            instruction.set_immediate16(signed(16)? as u16);
        }
        OperandKind::imm32 => {
            instruction.set_op_kind(index, OpKind::Immediate32);
            instruction.set_immediate32(signed(32)? as u32);
        }
        OperandKind::imm32sex64 => {
            instruction.set_op_kind(index, OpKind::Immediate32to64);
            instruction.set_immediate32to64(i64::from(i32::try_from(signed(64)?).ok()?));
        }
        OperandKind::imm64 => {
            instruction.set_op_kind(index, OpKind::Immediate64);
            instruction.set_immediate64(signed(64)? as u64);
        }
        _ => return None,
    }
    Some(())
}

/// A constant operand that depends on symbols.
fn put_symbolic(instruction: &mut Instruction, index: u32, kind: OperandKind) -> Option<Field> {
    let (kind, field) = match kind {
        OperandKind::imm32 => (OpKind::Immediate32, Field::Unsigned32),
        OperandKind::imm32sex64 => (OpKind::Immediate32to64, Field::Signed32),
        OperandKind::imm64 => (OpKind::Immediate64, Field::Data(8)),
        OperandKind::imm16 => (OpKind::Immediate16, Field::Data(2)),
        OperandKind::imm8 => (OpKind::Immediate8, Field::Data(1)),
        _ => return None,
    };
    instruction.set_op_kind(index, kind);
    Some(field)
}
