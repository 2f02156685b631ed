//! What an instruction does to memory, read from its machine code.

use super::frame::Function;
use super::{AuditError, PROBE};
use crate::asm;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use object::{Object, ObjectSection, ObjectSymbol};
use rustc_hash::FxHashMap;

/// How an access is described to the runtime. `runtime/audit.c` has the same numbers. The lowest byte is the
/// size.
pub(super) mod code {
    pub const READ: u32 = 0x100;
    pub const WRITE: u32 = 0x200;
    /// One indivisible access.
    pub const LOCKED: u32 = 0x400;
    /// What exactly is accessed is not known.
    pub const UNCLEAR: u32 = 0x800;
    /// The source of the move is where `%rsi` points.
    pub const MOVE: u32 = 0x1000;
    /// Not an access: a function begins, and nothing below its stack pointer belongs to a frame. In place of the
    /// number of accesses there is the number of the function.
    pub const FRAME: u32 = 0x2000;
    /// The address is relative to the thread's own storage.
    pub const THREAD_LOCAL: u32 = 0x4000;
    /// Not an access: a function is about to leave its frame.
    pub const LEAVE: u32 = 0x8000;
}

/// What an instruction does to memory.
#[derive(Default)]
pub(super) struct Does {
    pub(super) accesses: Vec<Access>,
    /// What to call after the instruction.
    pub(super) fence: Option<&'static str>,
}

pub(super) struct Access {
    pub(super) operand: String,
    /// How many accesses there are in a row.
    pub(super) count: &'static str,
    pub(super) code: u32,
}

/// The instructions after the symbols, by the symbols' numbers.
pub(super) fn instructions(object: &[u8]) -> Result<FxHashMap<usize, Instruction>, AuditError> {
    let file = object::File::parse(object)?;
    let mut found = FxHashMap::default();
    for symbol in file.symbols() {
        let number = symbol.name().ok().and_then(|name| name.strip_prefix(PROBE)?.parse().ok());
        let (Some(number), Some(section)) = (number, symbol.section_index()) else { continue };
        let section = file.section_by_index(section)?;
        let at = usize::try_from(symbol.address().wrapping_sub(section.address())).unwrap_or(usize::MAX);
        let Some(bytes) = section.data()?.get(at..) else { continue };
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        if !instruction.is_invalid() {
            found.insert(number, instruction);
        }
    }
    Ok(found)
}

/// Whether the machine code has to be examined.
pub(super) fn may_access(code: &str) -> bool {
    let mut word = code;
    let mut rest = "";
    // Prefixes may be separated by semicolons.
    for part in code.split(|c: char| c.is_whitespace() || c == ';') {
        if !part.is_empty() && !asm::PREFIXES.contains(&part) {
            let at = part.as_ptr() as usize - code.as_ptr() as usize;
            (word, rest) = (part, &code[at + part.len()..]);
            break;
        }
    }
    if word.starts_with('j') || word.starts_with("call") || word.starts_with("loop") {
        return rest.trim_start().starts_with('*') && asm::is_memory(&rest.trim()[1..]);
    }
    if word.starts_with("lea") && !word.starts_with("leave") || word.starts_with("nop") {
        return false;
    }
    let operands = asm::operands(rest);
    operands.iter().any(|operand| asm::is_memory(operand))
        || operands.is_empty() && !matches!(word, "ret" | "retq" | "leave" | "leaveq" | "endbr64")
}

/// What an instruction does. `frame` is its function if no other code can have an address in the frame.
pub(super) fn judge(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
    code: &str,
    frame: Option<&Function>,
) -> Does {
    let mut does = Does::default();
    match instruction.mnemonic() {
        Mnemonic::Mfence => does.fence = Some("palisade_asm_fence"),
        Mnemonic::Sfence => does.fence = Some("palisade_asm_store_fence"),
        _ => {}
    }
    let info = factory.info(instruction);
    let kinds: Vec<OpKind> = (0..instruction.op_count()).map(|index| instruction.op_kind(index)).collect();
    if kinds
        .iter()
        .any(|kind| matches!(kind, OpKind::MemoryESRDI | OpKind::MemorySegRSI | OpKind::MemorySegRDI))
    {
        string(instruction, &kinds, &mut does);
        return does;
    }
    let Some(index) = kinds.iter().position(|kind| *kind == OpKind::Memory) else {
        use OpKind::{MemorySegDI, MemorySegEDI, MemorySegESI, MemorySegSI};
        if kinds.iter().any(|kind| matches!(kind, MemorySegDI | MemorySegEDI | MemorySegESI | MemorySegSI)) {
            does.accesses.push(unclear());
        }
        return does;
    };
    let mut flags = match info.op_access(u32::try_from(index).expect("at most five operands")) {
        OpAccess::None | OpAccess::NoMemAccess => return does,
        OpAccess::Read => code::READ,
        OpAccess::CondRead => code::READ | code::UNCLEAR,
        OpAccess::Write => code::WRITE,
        OpAccess::CondWrite => code::WRITE | code::UNCLEAR,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => code::READ | code::WRITE,
    };
    let operand = match operand(code) {
        Some(operand) if !instruction.is_vsib() && !code.starts_with("movabs") => operand,
        _ => {
            does.accesses.push(unclear());
            return does;
        }
    };
    let relocated = ["@got", "@tlsdesc", "@tlscall"];
    if relocated.iter().any(|kind| operand.to_ascii_lowercase().contains(kind)) {
        return does;
    }
    let base = instruction.memory_base();
    let is_locked = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    if is_locked && base == Register::RSP {
        does.fence = Some("palisade_asm_fence");
        return does;
    }
    let is_frame =
        |function: &Function| base == Register::RSP || base == Register::RBP && function.has_frame_pointer();
    if frame.is_some_and(is_frame) {
        return does;
    }
    let mut operand = operand.to_owned();
    match instruction.segment_prefix() {
        Register::FS => {
            let inner = operand.split_once(':').map_or("", |(_, inner)| inner).to_owned();
            if inner.bytes().all(|c| c.is_ascii_digit()) {
                // The C library's own data.
                return does;
            }
            operand = inner;
            flags |= code::THREAD_LOCAL;
        }
        Register::GS => {
            does.accesses.push(unclear());
            return does;
        }
        _ => {}
    }
    let memory = instruction.memory_size();
    let size = if instruction.is_broadcast() { memory.element_size() } else { memory.size() };
    let is_far =
        matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
            && kinds.contains(&OpKind::Register);
    if size == 0
        || size > 255
        || is_far
        || instruction.op_mask() != Register::None
        || is_non_temporal(instruction.mnemonic())
    {
        flags |= code::UNCLEAR;
    }
    if is_locked {
        flags |= code::LOCKED;
    }
    let size = u32::try_from(size).unwrap_or(0).clamp(1, 255);
    does.accesses.push(Access { operand, count: "$1", code: flags | size });
    does
}

/// An access whose address is not known either.
fn unclear() -> Access {
    Access { operand: "0".into(), count: "$1", code: code::READ | code::WRITE | code::UNCLEAR | 1 }
}

/// Accesses that bypass caches, and are not ordered with the others.
fn is_non_temporal(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Movntdq, Movntdqa, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss, Vmovntdq, Vmovntdqa, Vmovntpd,
        Vmovntps,
    };
    let integers = matches!(mnemonic, Movnti | Movntq | Movntdq | Movntdqa | Vmovntdq | Vmovntdqa);
    integers || matches!(mnemonic, Movntpd | Movntps | Movntsd | Movntss | Vmovntpd | Vmovntps)
}

/// A string instruction: its operands are where `%rsi` and `%rdi` point.
fn string(instruction: &Instruction, kinds: &[OpKind], does: &mut Does) {
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let count = if repeats { "%rcx" } else { "$1" };
    let size = u32::try_from(instruction.memory_size().size()).unwrap_or(0);
    let mut put = |operand: &str, count, code| {
        does.accesses.push(Access { operand: operand.to_owned(), count, code: code | size });
    };
    use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Scasb, Scasd, Scasq, Scasw};
    match instruction.mnemonic() {
        Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq => {
            // Where it ends depends on the memory contents.
            let unclear = if repeats { code::UNCLEAR } else { 0 };
            put("(%rdi)", "$1", code::READ | unclear);
            if kinds.contains(&OpKind::MemorySegRSI) {
                put("(%rsi)", "$1", code::READ | unclear);
            }
        }
        Mnemonic::Maskmovdqu | Mnemonic::Maskmovq | Mnemonic::Vmaskmovdqu => {
            put("(%rdi)", "$1", code::WRITE | code::UNCLEAR);
        }
        _ => match (kinds.contains(&OpKind::MemoryESRDI), kinds.contains(&OpKind::MemorySegRSI)) {
            (true, true) => put("(%rdi)", count, code::READ | code::WRITE | code::MOVE),
            (true, false) => put("(%rdi)", count, code::WRITE),
            (false, true) => put("(%rsi)", count, code::READ),
            (false, false) => put("(%rdi)", "$1", code::READ | code::WRITE | code::UNCLEAR),
        },
    }
}

/// The memory operand as it is written.
fn operand(code: &str) -> Option<&str> {
    let (_, mut rest) = asm::split(code);
    // A leftover prefix has no operand.
    while let (word, after) = asm::split(rest)
        && !after.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric())
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && !word.ends_with(',')
    {
        rest = after;
    }
    let mut depth = 0;
    let mut from = 0;
    let mut parts = Vec::new();
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&rest[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&rest[from..]);
    parts.into_iter().find_map(|part| {
        let part = part.split('{').next().unwrap_or("").trim();
        let part = part.strip_prefix('*').unwrap_or(part);
        (!part.is_empty() && asm::is_memory(part)).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates() {
        let check = |code: &str, expected: bool| assert_eq!(may_access(code), expected, "{code}");
        check("movl\t$1, x(%rip)", true);
        check("movl\t%eax, %ebx", false);
        check("leaq\tx(%rip), %rdi", false);
        check("call\tf@PLT", false);
        check("call\t*8(%rax)", true);
        check("call\t*%rax", false);
        check("notrack jmp\t*%rax", false);
        check("jmp\t*.L4(,%rax,8)", true);
        check("rep stosq", true);
        check("rep;movsq\t(%rsi), %es:(%rdi)", true);
        check("ret", false);
        check("movl\tx, %eax", true);
        check("movq\t%fs:40, %rax", true);
    }

    #[test]
    fn operands() {
        let check = |code: &str, expected: Option<&str>| assert_eq!(operand(code), expected, "{code}");
        check("movl\t$1, x+4(%rip)", Some("x+4(%rip)"));
        check("movl\t$1, 8(%rsp,%rax,4)", Some("8(%rsp,%rax,4)"));
        check("call\t*8(%rax)", Some("8(%rax)"));
        check("vmovdqu32\t%zmm0, (%rdi){%k1}", Some("(%rdi)"));
        check("lock addl\t$1, (%rdi)", Some("(%rdi)"));
        check("movl\tx, %eax", Some("x"));
        check("movl\t%eax, %ebx", None);
    }
}
