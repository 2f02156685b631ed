//! Calls of the compiler that announce more than one access: copies of structs, and stores to bit-fields.

use super::Audit;
use super::instruction::{Does, code};
use super::lines::is_target;
use crate::asm;

impl Audit<'_> {
    /// If this is a call that announces the store of a struct that is copied, the call that announces the load. gcc
    /// makes these calls one after the other, and copies after both.
    pub(super) fn copies_from(&self, number: usize, all: &[Does]) -> Option<usize> {
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
    pub(super) fn reads_what_it_writes(&self, number: usize, all: &[Does]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::instruction::Access;

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
}
