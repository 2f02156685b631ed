//! Accesses for which the compiler makes no call.
//!
//! *Problem.* A program is followed through the calls that the compiler's ThreadSanitizer pass puts before
//! accesses. The passes leave some accesses out: structs that are returned or passed by value, `long double`,
//! wide vectors, memory functions that are expanded after the pass, results of inline assembly. Which ones
//! depends on the compiler, its version and its options.
//!
//! *Idea.* The machine code contains all accesses. Every instruction that accesses memory is preceded by a
//! call of the runtime, with the address, the size, and whether it reads or writes. The runtime
//! (`runtime/audit.c`) knows which accesses the compiler has announced. An access that was not announced is
//! followed from here instead and becomes an event like any other.
//!
//! *How.* The assembly is assembled once with a symbol before every instruction that may access memory. What
//! each instruction does is then read from its machine code, so no list of mnemonics is needed. The address
//! is the operand as the compiler wrote it.
//!
//! *Guarantee.* An instruction has no call only if
//! - it does not access memory, or only pushes, pops, calls and returns;
//! - it reads the global offset table, or the C library's block at `%fs:N`;
//! - its operand is in the frame of its function, and the function takes no address in its frame, so no other
//!   code can have that address;
//! - it is inline assembly, which is [rewritten](crate::asm) by rules of its own.
//!
//! Some accesses cannot be followed exactly: gathers, masked and non-temporal accesses, string comparisons
//! with `rep`. They are reported when they touch memory that others could reach.
//!
//! *Call sites.* A function whose source is a file of a library also calls the runtime at its start and before it
//! returns (`runtime/site.c`), so that an access in it can be reported where the program calls the library. A call of a
//! precompiled function of the C++ library is announced, since that function may wait.
//!
//! *Invariant.* A call preserves registers, flags and the red zone. Calls at the start of a function and before it
//! returns do not preserve flags, which have no meaning there.

use crate::asm;
use crate::symbols::is_library;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use object::{Object, ObjectSection, ObjectSymbol};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// How an access is described to the runtime. `runtime/audit.c` has the same numbers. The lowest byte is the
/// size.
mod code {
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

/// Symbols before instructions. The number of the instruction follows.
const PROBE: &str = "palisade.probe.";

/// Why machine code could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The object file is not valid.
    #[error("the assembled code cannot be read: {0}")]
    Object(#[from] object::Error),
    /// An instruction is missing from the object file.
    #[error("the machine code of `{0}` cannot be read")]
    Instruction(String),
}

/// The assembly of a file, split into lines.
#[derive(Debug)]
pub struct Audit<'a> {
    lines: Vec<Line<'a>>,
    /// Functions whose source is a file of a library, by their indices, and whether their ends are known.
    library: FxHashMap<usize, bool>,
    /// The functions that are defined here.
    defined: FxHashSet<&'a str>,
}

/// A line.
#[derive(Debug)]
struct Line<'a> {
    text: &'a str,
    /// The instruction without labels and comments, if the compiler generated it.
    code: Option<&'a str>,
    /// The function that contains it.
    function: Option<usize>,
    /// Whether it is the first instruction of its function.
    begins: bool,
    /// The function that ends before it.
    ends: Option<usize>,
}

/// What is known about a function, including parts of it that are elsewhere (`.cold`).
#[derive(Clone, Copy, Default, Debug)]
struct Function {
    /// `%rbp` was set to the stack pointer.
    sets_frame_pointer: bool,
    /// `%rbp` is used for something else.
    changes_frame_pointer: bool,
    /// An address in the frame was computed from the stack pointer, or from `%rbp`.
    takes_address: bool,
    takes_address_by_frame_pointer: bool,
}

impl Function {
    fn has_frame_pointer(&self) -> bool {
        self.sets_frame_pointer && !self.changes_frame_pointer
    }

    /// Whether no other code can have an address in its frame.
    fn keeps_frame(&self) -> bool {
        let by_frame_pointer = self.has_frame_pointer() && self.takes_address_by_frame_pointer;
        !(self.takes_address || by_frame_pointer)
    }

    fn look_at(&mut self, code: &str) {
        let (word, rest) = asm::split(code);
        let operands = asm::operands(rest);
        let is = |operand: &String, register: &str| {
            let (long, short) = (format!("%r{register}"), format!("%e{register}"));
            let (word, byte) = (format!("%{register}"), format!("%{register}l"));
            [long, short, word, byte].contains(operand)
        };
        let target = operands.last();
        let moves_stack = target.is_some_and(|target| is(target, "sp"));
        let moves_frame = target.is_some_and(|target| is(target, "bp"));
        let sources = &operands[..operands.len().saturating_sub(1)];
        let has = |register: &str| sources.iter().any(|operand| is(operand, register));
        let within = |register: &str| {
            word.starts_with("lea") && sources.iter().any(|operand| operand.contains(register))
        };
        match word {
            "push" | "pushq" | "pop" | "popq" if moves_frame => return,
            "movq" | "mov" if moves_frame && has("sp") => {
                self.sets_frame_pointer = true;
                return;
            }
            _ => {}
        }
        self.changes_frame_pointer |= moves_frame;
        if !moves_stack {
            self.takes_address |= has("sp") || within("%rsp") || within("%esp");
            self.takes_address_by_frame_pointer |= has("bp") || within("%rbp") || within("%ebp");
        }
    }
}

impl<'a> Audit<'a> {
    /// Reads a compiler's assembly (AT&T syntax, x86-64).
    pub fn of(text: &'a str) -> Audit<'a> {
        let mut lines = Vec::new();
        let mut functions = 0;
        let mut inside = false;
        // The functions that begin at their labels, the name of the current function, and whether its first
        // instruction is still to come.
        let mut declared: FxHashSet<&str> = FxHashSet::default();
        let mut current: Option<(&str, usize)> = None;
        let mut is_new = false;
        // Numbers of source files that belong to libraries, whether the current line is in one of them, and which
        // functions are.
        let mut files: FxHashSet<&str> = FxHashSet::default();
        let mut in_library = false;
        let mut library: FxHashMap<usize, bool> = FxHashMap::default();
        for text in text.lines() {
            let function = current.map(|(_, index)| index);
            let mut line = Line { text, code: None, function, begins: false, ends: None };
            match text.trim() {
                "#APP" => inside = true,
                "#NO_APP" => inside = false,
                _ if inside => {}
                trimmed => {
                    let mut rest = without_comment(trimmed);
                    while let Some((label, after)) = asm::label(rest) {
                        if current.is_none() && declared.contains(label) {
                            current = Some((label, functions));
                            line.function = Some(functions);
                            functions += 1;
                            is_new = true;
                            in_library = false;
                        }
                        rest = after;
                    }
                    let (word, after) = asm::split(rest);
                    let name = after.split(',').next().unwrap_or("").trim();
                    match word {
                        "" => {}
                        ".type" if after.ends_with("@function") => _ = declared.insert(name),
                        ".size" if current.is_some_and(|(current, _)| current == name) => {
                            line.ends = line.function;
                            if let Some(has_end) = line.function.and_then(|index| library.get_mut(&index)) {
                                *has_end = true;
                            }
                            current = None;
                        }
                        ".file" => {
                            if let Some(number) = number_of_library_file(after) {
                                files.insert(number);
                            }
                        }
                        ".loc" => in_library = files.contains(asm::split(after).0),
                        _ if word.starts_with('.') => {}
                        _ => {
                            line.code = Some(rest);
                            if is_new && !word.starts_with("endbr") {
                                line.begins = true;
                                is_new = false;
                                if let Some(function) = line.function.filter(|_| in_library) {
                                    library.insert(function, false);
                                }
                            }
                        }
                    }
                }
            }
            lines.push(line);
        }
        Audit { lines, library, defined: declared }
    }

    /// Whether this calls a function of the C++ library that is compiled elsewhere.
    fn calls_outside(&self, code: &str) -> bool {
        let (word, target) = asm::split(code);
        let target = target.trim_end_matches("@PLT");
        matches!(word, "call" | "callq")
            && ["_ZNSt", "_ZNKSt", "_ZSt"].iter().any(|prefix| target.starts_with(prefix))
            && !self.defined.contains(target)
    }

    /// The function of a line, if its source is a file of a library.
    fn library_function(&self, line: &Line<'_>) -> Option<usize> {
        line.function.filter(|function| self.library.get(function) == Some(&true))
    }

    /// The assembly with a symbol before every instruction that may access memory.
    pub fn probes(&self) -> String {
        let mut text = String::new();
        for (number, line) in self.lines.iter().enumerate() {
            if line.code.is_some_and(may_access) {
                // A label is at the address of its instruction, so the order of the two does not matter.
                writeln!(text, "{PROBE}{number}:").expect("writing to a string");
            }
            text.push_str(line.text);
            text.push('\n');
        }
        text
    }

    /// The assembly with calls. `object` is the object file made from [`Self::probes`].
    pub fn rewrite(&self, object: &[u8]) -> Result<String, AuditError> {
        let instructions = instructions(object)?;
        let mut functions: Vec<Function> = Vec::new();
        for line in &self.lines {
            if let (Some(code), Some(function)) = (line.code, line.function) {
                if functions.len() <= function {
                    functions.resize(function + 1, Function::default());
                }
                functions[function].look_at(code);
            }
        }
        let keeps_frame = |line: &Line<'_>| {
            line.function.and_then(|function| functions.get(function)).is_some_and(Function::keeps_frame)
        };
        let mut factory = InstructionInfoFactory::new();
        let mut all: Vec<Does> = Vec::with_capacity(self.lines.len());
        for (number, line) in self.lines.iter().enumerate() {
            let Some(code) = line.code.filter(|code| may_access(code)) else {
                all.push(Does::default());
                continue;
            };
            let unreadable = || AuditError::Instruction(code.to_owned());
            let instruction = instructions.get(&number).ok_or_else(unreadable)?;
            let function =
                line.function.filter(|_| keeps_frame(line)).and_then(|function| functions.get(function));
            all.push(judge(instruction, &mut factory, code, function));
        }
        let leaving: FxHashSet<usize> = (0..self.lines.len())
            .filter(|&number| !keeps_frame(&self.lines[number]))
            .filter_map(|number| self.leaves_before(number))
            .collect();
        let mut text = String::new();
        // Calls that announce the load of a struct that is copied.
        let mut copies: FxHashSet<usize> = FxHashSet::default();
        for (number, line) in self.lines.iter().enumerate() {
            let Some(code) = line.code else {
                if let Some(function) = self.library_function(line).filter(|_| line.ends.is_some()) {
                    writeln!(text, "{END}{function}:").expect("writing to a string");
                }
                text.push_str(line.text);
                text.push('\n');
                continue;
            };
            let labels = line.text.find(code).map_or("", |at| line.text[..at].trim_end());
            if !labels.is_empty() {
                writeln!(text, "{labels}").expect("writing to a string");
            }
            if let Some(function) = self.library_function(line) {
                if line.begins {
                    enter(&mut text, function);
                }
                if code.split_whitespace().next_back().is_some_and(|word| word == "ret" || word == "retq") {
                    writeln!(text, "\tcall *palisade_leaves@GOTPCREL(%rip)").expect("writing to a string");
                }
            }
            if line.begins && !keeps_frame(line) {
                call(&mut text, "(%rsp)", &frame_number(line), code::FRAME);
            }
            if leaving.contains(&number) {
                call(&mut text, "(%rsp)", &frame_number(line), code::LEAVE);
            }
            for access in &all[number].accesses {
                call(&mut text, &access.operand, access.count, access.code);
            }
            if self.calls_outside(code) {
                writeln!(text, "\tcall *palisade_outside@GOTPCREL(%rip)").expect("writing to a string");
            }
            let code = if self.reads_what_it_writes(number, &all) {
                code.replace("__tsan_write", "__tsan_read_write")
            } else if let Some(load) = self.copies_from(number, &all) {
                copies.insert(load);
                code.replace("__tsan_", "palisade_hold_")
            } else if copies.contains(&number) {
                code.replace("__tsan_", "palisade_copy_")
            } else {
                code.to_owned()
            };
            writeln!(text, "\t{code}").expect("writing to a string");
            if let Some(stub) = all[number].fence {
                asm::call(&mut text, stub, None);
            }
        }
        Ok(text)
    }

    /// If this returns from a function, the instruction before which the function still has its whole frame.
    fn leaves_before(&self, number: usize) -> Option<usize> {
        let returns = |code: &str| {
            code.split_whitespace().next_back().is_some_and(|word| matches!(word, "ret" | "retq"))
        };
        self.lines[number].code.filter(|code| returns(code))?;
        let mut before = number;
        for (index, line) in self.lines[..number].iter().enumerate().rev() {
            let is_boundary = line.text.trim() == "#APP" || is_target(line.text) || line.begins;
            if let Some(code) = line.code {
                let (word, _) = asm::split(code);
                if word.starts_with('j') || word.starts_with("call") || word.starts_with("ret") {
                    break;
                }
                if pops(code) {
                    before = index;
                }
            }
            if is_boundary {
                break;
            }
        }
        Some(before)
    }

    /// If this is a call that announces the store of a struct that is copied, the call that announces the load. gcc
    /// makes these calls one after the other, and copies after both.
    fn copies_from(&self, number: usize, all: &[Does]) -> Option<usize> {
        let (_, size) = self.lines[number].code.and_then(announced).filter(|(does, _)| *does == "write")?;
        for (index, (line, does)) in self.lines.iter().zip(all).enumerate().skip(number + 1) {
            if line.text.trim() == "#APP" || is_target(line.text) {
                return None;
            }
            let Some(code) = line.code else { continue };
            let (word, _) = asm::split(code);
            if word.starts_with("call") {
                return announced(code).filter(|found| *found == ("read", size)).map(|_| index);
            }
            // If something is written, this is the store, and it is not a copy.
            let writes = does.accesses.iter().any(|access| access.code & code::WRITE != 0);
            if writes || word.starts_with('j') || word.starts_with("ret") {
                return None;
            }
        }
        None
    }

    /// Whether this is a call that announces a store to memory that is read first. gcc makes such calls for
    /// bit-fields. The load has to be an event before the store.
    fn reads_what_it_writes(&self, number: usize, all: &[Does]) -> bool {
        let announces = |code: &str| {
            let (word, target) = asm::split(code);
            let size = target.strip_prefix("__tsan_write").map(|rest| rest.trim_end_matches("@PLT"));
            word.starts_with("call") && matches!(size, Some("1" | "2" | "4" | "8" | "16"))
        };
        if !self.lines[number].code.is_some_and(announces) {
            return false;
        }
        let mut read: Vec<&str> = Vec::new();
        for (line, does) in self.lines[number + 1..].iter().zip(&all[number + 1..]) {
            let leaves = line.code.is_some_and(|code| {
                ["call", "j", "ret"].iter().any(|word| asm::split(code).0.starts_with(word))
            });
            if leaves || line.text.trim() == "#APP" || is_target(line.text) {
                return false;
            }
            for access in &does.accesses {
                if access.code & code::READ != 0 {
                    read.push(&access.operand);
                }
                if access.code & code::WRITE != 0 {
                    return read.contains(&access.operand.as_str());
                }
            }
        }
        false
    }
}

/// A number by which the start and the end of a function are matched (`runtime/leave.c`). It has 16 bits.
fn frame_number(line: &Line<'_>) -> String {
    format!("${}", line.function.map_or(0, |function| function % 0xffff + 1))
}

/// Whether this moves the stack pointer up, as at the end of a function.
fn pops(code: &str) -> bool {
    let (word, rest) = asm::split(code);
    let moves_stack = || asm::operands(rest).last().is_some_and(|target| target == "%rsp");
    match word {
        "pop" | "popq" | "leave" | "leaveq" => true,
        "add" | "addq" | "lea" | "leaq" | "mov" | "movq" => moves_stack(),
        _ => false,
    }
}

/// The access that a call announces: whether it is volatile, whether it writes, and its size.
fn announced(code: &str) -> Option<(&str, &str)> {
    let (word, target) = asm::split(code);
    let target =
        target.trim_end_matches("@PLT").strip_prefix("__tsan_").filter(|_| word.starts_with("call"))?;
    let target = target.strip_prefix("volatile_").unwrap_or(target);
    let (does, size) = target.split_at_checked(if target.starts_with("write") { 5 } else { 4 })?;
    let is_known = matches!(size, "1" | "2" | "4" | "8" | "16" | "_range");
    (is_known && matches!(does, "read" | "write")).then_some((does, size))
}

/// Labels in functions of libraries: after the call at the start, and at the end. The index of the function follows.
const FROM: &str = ".Lpalisade_from";
const END: &str = ".Lpalisade_end";

/// A call at the start of a function, with the size of what follows.
fn enter(text: &mut String, function: usize) {
    let mut put = |line: &str| writeln!(text, "{line}").expect("writing to a string");
    put(&format!("\tpushq ${END}{function}-{FROM}{function}"));
    put("\tcall *palisade_enters@GOTPCREL(%rip)");
    put(&format!("{FROM}{function}:"));
    put("\tleaq 8(%rsp), %rsp");
}

/// The number of a source file if it belongs to a library: `NUMBER "FILE"` or `NUMBER "FOLDER" "FILE"`.
fn number_of_library_file(after: &str) -> Option<&str> {
    let (number, rest) = asm::split(after);
    let mut names = rest.split('"').skip(1).step_by(2);
    let first = names.next()?;
    let is_one = match names.next().filter(|_| rest.matches('"').count() >= 4) {
        Some(file) if !file.starts_with('/') => is_library(&format!("{first}/{file}")),
        Some(file) => is_library(file),
        None => is_library(first),
    };
    (is_one && number.bytes().all(|c| c.is_ascii_digit())).then_some(number)
}

/// Whether a label can be a jump target. gcc has other labels for debugging, with a letter after the first
/// two characters.
fn is_target(line: &str) -> bool {
    asm::label(line.trim()).is_some_and(|(label, _)| {
        !label.strip_prefix(".L").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

/// What an instruction does to memory.
#[derive(Default)]
struct Does {
    accesses: Vec<Access>,
    /// What to call after the instruction.
    fence: Option<&'static str>,
}

struct Access {
    operand: String,
    /// How many accesses there are in a row.
    count: &'static str,
    code: u32,
}

/// The instructions after the symbols, by the symbols' numbers.
fn instructions(object: &[u8]) -> Result<FxHashMap<usize, Instruction>, AuditError> {
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
fn may_access(code: &str) -> bool {
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
fn judge(
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

/// The part of a line before a comment.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

/// A call of the runtime before an access. The stub saves registers and flags; none of these instructions
/// changes a flag.
fn call(text: &mut String, operand: &str, count: &str, code: u32) {
    /// How far the stack pointer has moved when the address is computed.
    const MOVED: u32 = 136;
    let mut put = |line: &str| writeln!(text, "\t{line}").expect("writing to a string");
    let relative = if operand.contains("(%rsp") { format!("{MOVED}+{operand}") } else { operand.to_owned() };
    let relative = relative.replace("+(%rsp", "(%rsp");
    put("leaq -128(%rsp), %rsp");
    put("pushq %rdi");
    put(&format!("leaq {relative}, %rdi"));
    put(&format!("pushq {count}"));
    put(&format!("pushq ${code}"));
    put("call *palisade_audit@GOTPCREL(%rip)");
    put("movq 16(%rsp), %rdi");
    put("leaq 152(%rsp), %rsp");
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

    #[test]
    fn frames() {
        let check = |text: &str, keeps: bool, has_pointer: bool| {
            let mut function = Function::default();
            text.split(';').for_each(|code| function.look_at(code));
            assert_eq!(
                (function.keeps_frame(), function.has_frame_pointer()),
                (keeps, has_pointer),
                "{text}"
            );
        };
        check("pushq %rbp;movq %rsp, %rbp;subq $16, %rsp;movl $1, -4(%rbp);leave;ret", true, true);
        check("pushq %rbp;movq %rsp, %rbp;leaq -8(%rbp), %rax;popq %rbp", false, true);
        check("movq %rdi, %rbp;leaq 8(%rbp), %rdi;call f;movl $1, (%rbp)", true, false);
        check("subq $24, %rsp;leaq 8(%rsp), %rdi;call f;addq $24, %rsp", false, false);
        check("subq $24, %rsp;movq %rsp, %rdi;call f;addq $24, %rsp", false, false);
        check("pushq %rbp;movq %rsp, %rbp;leaq -16(%rbp), %rsp;popq %rbx;popq %rbp", true, true);
        check("movq %rsp, %rbp;movq %rbp, %rdi", false, true);
    }

    #[test]
    fn ends_of_functions() {
        let check = |text: &str, expected: &[usize]| {
            let text = format!("\t.type f, @function\nf:\n{}", text.replace("; ", "\n"));
            let audit = Audit::of(&text);
            let found: Vec<usize> =
                (0..audit.lines.len()).filter_map(|line| audit.leaves_before(line)).collect();
            // The first two lines are not instructions.
            assert_eq!(found.iter().map(|line| line - 2).collect::<Vec<_>>(), expected, "{text}");
        };
        check("pushq %rbp; call g; movl $1, %eax; leave; ret", &[3]);
        check("subq $8, %rsp; call g; .L2:; addq $8, %rsp; popq %rbx; .cfi_def_cfa_offset 8; retq", &[3]);
        check("call g; popq %rbx; movl %ebx, %eax; popq %rbp; ret", &[1]);
        check("nop; leaq -8(%rsp), %rax; ret", &[2]);
        check("call g; leave; jne .L2; leave; ret; .L2:; popq %rbp; ret", &[3, 6]);
        check("call g; jmp h", &[]);
    }

    #[test]
    fn stores_that_read_first() {
        let check = |rest: &str, accesses: &[(usize, u32)], expected: bool| {
            let text = format!("call\t__tsan_write4@PLT\n{rest}");
            let audit = Audit::of(&text);
            let mut all: Vec<Does> = audit.lines.iter().map(|_| Does::default()).collect();
            for &(line, code) in accesses {
                all[line].accesses.push(Access { operand: "x(%rip)".into(), count: "$1", code });
            }
            assert_eq!(audit.reads_what_it_writes(0, &all), expected, "{text}");
        };
        check("movl x(%rip), %eax\n.LVL1:\nmovl %eax, x(%rip)\n", &[(1, code::READ), (3, code::WRITE)], true);
        check("orl $1, x(%rip)\n", &[(1, code::READ | code::WRITE)], true);
        check("movl %eax, x(%rip)\nmovl x(%rip), %eax\n", &[(1, code::WRITE), (2, code::READ)], false);
        check(
            "movl x(%rip), %eax\ncall f\nmovl %eax, x(%rip)\n",
            &[(1, code::READ), (3, code::WRITE)],
            false,
        );
        check("movl x(%rip), %eax\n.L2:\nmovl %eax, x(%rip)\n", &[(1, code::READ), (3, code::WRITE)], false);
    }

    #[test]
    fn copies_of_structs() {
        let check = |text: &str, accesses: &[(usize, u32)], expected: Option<usize>| {
            let audit = Audit::of(text);
            let mut all: Vec<Does> = audit.lines.iter().map(|_| Does::default()).collect();
            for &(line, code) in accesses {
                all[line].accesses.push(Access { operand: "x(%rip)".into(), count: "$1", code });
            }
            assert_eq!(audit.copies_from(0, &all), expected, "{text}");
        };
        let copy =
            "call __tsan_write_range@PLT\nmovq -8(%rbp), %rax\nmovl $24, %esi\ncall __tsan_read_range@PLT\n";
        check(copy, &[], Some(3));
        check(copy, &[(1, code::READ)], Some(3));
        check("call __tsan_write8\ncall __tsan_volatile_read8\n", &[], Some(1));
        check("call __tsan_volatile_write8\ncall __tsan_read8\n", &[], Some(1));
        check("call __tsan_write8\ncall __tsan_read4\n", &[], None);
        check("call __tsan_write8\ncall f\ncall __tsan_read8\n", &[], None);
        check("call __tsan_write8\nmovq $1, x(%rip)\ncall __tsan_read8\n", &[(1, code::WRITE)], None);
        check("call __tsan_write8\n.L2:\ncall __tsan_read8\n", &[], None);
        check("call __tsan_read8\ncall __tsan_read8\n", &[], None);
    }

    #[test]
    fn functions_of_libraries() {
        let text = "\
\t.file 1 \"t.cpp\"
\t.file 2 \"/usr/include/c++/13\" \"atomic\" md5 0x1
\t.type f, @function
f:
\t.loc 1 3 1
\tret
\t.size f, .-f
\t.type g, @function
g:
\t.loc 2 3 1
\tendbr64
\tmovq %rdi, %rax
\t.loc 1 4 1
\trep ret
\t.size g, .-g
";
        let audit = Audit::of(text);
        let found: Vec<(&str, bool)> = audit
            .lines
            .iter()
            .filter_map(|line| Some((line.code?, audit.library_function(line).is_some())))
            .collect();
        assert_eq!(found, [("ret", false), ("endbr64", true), ("movq %rdi, %rax", true), ("rep ret", true)]);
    }

    #[test]
    fn calls_of_the_precompiled_library() {
        let audit = Audit::of("\t.type _ZNSt4here4funcEv, @function\n_ZNSt4here4funcEv:\n\tret\n");
        for (code, expected) in [
            ("call\t_ZNSt6thread4joinEv@PLT", true),
            ("callq\t_ZNKSt6locale4nameEv", true),
            ("call\t_ZNSt4here4funcEv", false),
            ("call\t_ZN4user4joinEv@PLT", false),
            ("call\tpthread_join@PLT", false),
            ("jmp\t_ZNSt6thread4joinEv@PLT", false),
        ] {
            assert_eq!(audit.calls_outside(code), expected, "{code}");
        }
    }

    #[test]
    fn source_files_of_libraries() {
        for (directive, expected) in [
            ("3 \"/usr/include/c++/13/atomic\"", Some("3")),
            ("3 \"/usr/include/c++/13\" \"atomic\" md5 0x12", Some("3")),
            ("3 \"/home/me\" \"/usr/include/c++/13/atomic\"", Some("3")),
            ("3 \"/home/me\" \"atomic\"", None),
            ("0 \"/home/me\" \"t.cpp\" md5 0x12", None),
            ("\"t.cpp\"", None),
        ] {
            assert_eq!(number_of_library_file(directive), expected, "{directive}");
        }
    }

    #[test]
    fn functions() {
        let text = "\t.type f, @function\nf:\n\tendbr64\n\tpushq %rbx\n\t.type f.cold, @function\nf.cold:\n\tmovl $1, (%rdi)\n\t.size f, .-f\n\t.size f.cold, .-f.cold\n\tnop\n";
        let audit = Audit::of(text);
        let found: Vec<(Option<&str>, Option<usize>, bool)> = audit
            .lines
            .iter()
            .filter(|line| line.code.is_some())
            .map(|line| (line.code, line.function, line.begins))
            .collect();
        assert_eq!(
            found,
            [
                (Some("endbr64"), Some(0), false),
                (Some("pushq %rbx"), Some(0), true),
                (Some("movl $1, (%rdi)"), Some(0), false),
                (Some("nop"), None, false),
            ]
        );
    }
}
