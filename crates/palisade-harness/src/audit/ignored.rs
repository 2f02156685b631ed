//! Calls of `pthread_barrier_wait` whose result is ignored.
//!
//! The result says which thread came last. If nobody looks at it, the order in which threads arrive does not matter, and
//! the exhaustive search does not try all of them (`runtime/wait.c`).
//!
//! *Guarantee.* A result counts as ignored only if `%rax` is overwritten before it is read, on all paths that follow in
//! the function. Everything that is not known counts as a read.

use super::Audit;
use crate::asm;
use rustc_hash::FxHashSet;

const WAIT: &str = "pthread_barrier_wait";
/// The name of the function that is called instead.
const IGNORED: &str = "palisade_barrier_wait";

/// What an instruction does to a result in `%rax`.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Does<'a> {
    /// Nothing: the next instruction follows.
    Nothing,
    /// It overwrites the result.
    Overwrites,
    /// It may read the result.
    Reads,
    /// It continues at a label, and if it is conditional, at the next instruction too.
    Jumps { to: &'a str, is_conditional: bool },
}

impl Audit<'_> {
    /// The same instruction, with the other function if this is a call whose result is ignored.
    pub(super) fn with_ignored_result(&self, number: usize, code: &str) -> String {
        let (word, target) = asm::split(code);
        let is_wait = word.starts_with("call") && target.trim_end_matches("@PLT") == WAIT;
        if is_wait && self.is_ignored(number + 1) { code.replace(WAIT, IGNORED) } else { code.to_owned() }
    }

    /// Whether a result is ignored from this line on.
    fn is_ignored(&self, from: usize) -> bool {
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let Some(line) = self.lines.get(at).filter(|line| line.function.is_some() && line.ends.is_none())
            else {
                return false;
            };
            if line.text.trim() == "#APP" {
                return false;
            }
            match line.code.map_or(Does::Nothing, does) {
                Does::Nothing => open.push(at + 1),
                Does::Overwrites => {}
                Does::Reads => return false,
                Does::Jumps { to, is_conditional } => {
                    let is_label = |text: &str| {
                        text.trim_start().strip_prefix(to).is_some_and(|rest| rest.starts_with(':'))
                    };
                    let Some(label) = self.lines.iter().position(|line| is_label(line.text)) else {
                        return false;
                    };
                    open.push(label);
                    open.extend(is_conditional.then_some(at + 1));
                }
            }
        }
        true
    }
}

fn does(code: &str) -> Does<'_> {
    let names = |text: &str| ["%rax", "%eax", "%ax", "%al", "%ah"].iter().any(|name| text.contains(name));
    let (word, rest) = asm::split(code);
    let operands = asm::operands(rest);
    let (sources, target) = match operands.split_last() {
        Some((target, sources)) => (sources, target.as_str()),
        None => (&[][..], ""),
    };
    let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| word.starts_with(prefix));
    match word {
        "jmp" if !rest.contains('*') => return Does::Jumps { to: rest, is_conditional: false },
        _ if word.starts_with('j') && word != "jmp" => return Does::Jumps { to: rest, is_conditional: true },
        _ if word.starts_with("call") && !names(rest) => return Does::Overwrites,
        "nop" | "leave" | "leaveq" => return Does::Nothing,
        _ => {}
    }
    let is_whole = matches!(target, "%rax" | "%eax");
    let clears = is(&["xor"]) && is_whole && sources.iter().all(|source| source == target);
    // Instructions that read and write their operands only.
    let moves =
        is(&["mov", "lea"]) && !is(&["movs"]) || is(&["movsl", "movsb", "movsw"]) && operands.len() == 2;
    if clears || moves && is_whole && !sources.iter().any(|source| names(source)) {
        return Does::Overwrites;
    }
    let is_plain =
        moves || is(&["add", "sub", "cmp", "test", "and", "or", "xor", "inc", "dec", "push", "pop", "nop"]);
    if is_plain && !names(rest) { Does::Nothing } else { Does::Reads }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_barriers() {
        let check = |after: &str, ignored: bool| {
            let after = after.replace("; ", "\n");
            let text = format!("\t.type f, @function\nf:\n\tcall\t{WAIT}@PLT\n{after}\n\t.size f, .-f\n");
            let audit = Audit::of(&text);
            let found = audit.with_ignored_result(2, "call\tpthread_barrier_wait@PLT");
            assert_eq!(found.contains(IGNORED), ignored, "{after}");
        };
        check("movl $0, %eax; leave; ret", true);
        check("ret", false);
        check("nop; popq %rbp; ret", false);
        check("movl %eax, -4(%rbp); movl $0, %eax; ret", false);
        check("cmpl $-1, %eax; jne .L2; .L2:; xorl %eax, %eax; ret", false);
        check(
            "addl $1, -4(%rbp); .L2:; cmpl $1, -4(%rbp); jle .L3; movl $0, %eax; ret; .L3:; call g; ret",
            true,
        );
        check("jle .L3; movl $0, %eax; ret; .L3:; movl (%rax), %ebx; ret", false);
        check(".L2:; jmp .L2", true);
        check("jmp .L9", false);
        check("jmp *%rdx", false);
        check("call *%rax", false);
        check("leaq x(%rip), %rdi; call g", true);
        check("cltq; movl $0, %eax", false);
        check("movzbl %al, %eax; ret", false);
        check("xorl %eax, %eax; ret", true);
        check("xorl %edx, %eax; ret", false);
        check("movslq %edx, %rax; ret", true);
        check("rep stosq; movl $0, %eax", false);
        check("idivl %ecx; movl $0, %eax", false);
        check("movb $0, %al; ret", false);
        check("#APP; nop; #NO_APP; movl $0, %eax", false);
    }
}
