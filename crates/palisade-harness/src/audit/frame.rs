//! The frames of functions: whether other code can have an address in one, and where it is left.

use super::Audit;
use super::lines::is_target;
use crate::asm;

/// What is known about a function, including parts of it that are elsewhere (`.cold`).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Function {
    /// `%rbp` was set to the stack pointer.
    sets_frame_pointer: bool,
    /// `%rbp` is used for something else.
    changes_frame_pointer: bool,
    /// An address in the frame was computed from the stack pointer, or from `%rbp`.
    takes_address: bool,
    takes_address_by_frame_pointer: bool,
    /// How many bytes it pushes, and by how many it moves the stack pointer down.
    pushed: u32,
    reserved: u32,
}

impl Function {
    pub(super) fn has_frame_pointer(&self) -> bool {
        self.sets_frame_pointer && !self.changes_frame_pointer
    }

    /// Whether no other code can have an address in its frame.
    pub(super) fn keeps_frame(&self) -> bool {
        let by_frame_pointer = self.has_frame_pointer() && self.takes_address_by_frame_pointer;
        !(self.takes_address || by_frame_pointer)
    }

    /// How many bytes its frame has at least, below the return address; `None` if it begins in an unusual way. A function
    /// that calls no others may use the bytes below its stack pointer.
    pub(super) fn depth(&self) -> Option<u32> {
        const RED_ZONE: u32 = 128;
        let below = if self.reserved == 0 { RED_ZONE } else { self.reserved };
        self.has_frame_pointer().then(|| self.pushed.saturating_add(below))
    }

    pub(super) fn look_at(&mut self, code: &str) {
        let (word, rest) = asm::split(code);
        let operands = asm::operands(rest);
        match (word, operands.as_slice()) {
            ("push" | "pushq", _) => self.pushed = self.pushed.saturating_add(8),
            ("sub" | "subq", [bytes, register]) if register == "%rsp" => {
                let bytes = bytes.strip_prefix('$').and_then(|bytes| bytes.parse().ok());
                self.reserved = self.reserved.max(bytes.unwrap_or(0));
            }
            _ => {}
        }
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

impl Audit<'_> {
    /// If this returns from a function, the instruction before which the function still has its whole frame.
    pub(super) fn leaves_before(&self, number: usize) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
