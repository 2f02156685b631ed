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

mod announced;
mod frame;
mod fresh;
mod ignored;
mod instruction;
mod lines;

use crate::asm;
use frame::Function;
pub use fresh::Fresh;
use iced_x86::InstructionInfoFactory;
use instruction::{Does, code, instructions, judge, may_access};
use lines::Line;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

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

impl<'a> Audit<'a> {
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
    pub fn rewrite(&self, object: &[u8], fresh: Fresh) -> Result<String, AuditError> {
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
                let function = line.function.and_then(|function| functions.get(function));
                if let Some(depth) = function.filter(|_| fresh == Fresh::Checked).and_then(Function::depth) {
                    fresh::fill(&mut text, depth);
                }
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
                self.with_ignored_result(number, code)
            };
            writeln!(text, "\t{code}").expect("writing to a string");
            if let Some(stub) = all[number].fence {
                asm::call(&mut text, stub, None);
            }
        }
        text.push_str(fresh.section());
        Ok(text)
    }
}

/// A number by which the start and the end of a function are matched (`runtime/leave.c`). It has 16 bits.
fn frame_number(line: &Line<'_>) -> String {
    format!("${}", line.function.map_or(0, |function| function % 0xffff + 1))
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
}
