//! Constants that a program compares something with.
//!
//! A nondeterministic value (`__VERIFIER_nondet_int`) may be any of billions. Where a program behaves differently
//! for different values, it usually compares them with constants. So these are among the values that are tried
//! (`runtime/verifier.c`). They are read from the compiler's assembly, and put into a section of the program.

use crate::asm;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The section of the constants. The linker puts those of all files together.
const SECTION: &str = "palisade_constants";

/// The constants of one file are at most this many.
const MAX_CONSTANTS: usize = 64;

/// What to add to the assembly of a file: nothing, unless it asks for nondeterministic values.
pub fn section(text: &str) -> String {
    let mut section = String::new();
    if !text.contains("__VERIFIER_nondet_") {
        return section;
    }
    let constants: BTreeSet<i64> = text.lines().filter_map(compared).collect();
    if !constants.is_empty() {
        writeln!(section, "\t.section {SECTION},\"a\",@progbits\n\t.balign 8").expect("writing to a string");
    }
    for constant in constants.into_iter().take(MAX_CONSTANTS) {
        writeln!(section, "\t.quad {constant}").expect("writing to a string");
    }
    section
}

/// The constant with which an instruction compares something, or which it loads for that.
fn compared(line: &str) -> Option<i64> {
    let (word, rest) = asm::split(line.trim());
    if !(word.starts_with("cmp") && !word.starts_with("cmpxchg") || word.starts_with("movabs")) {
        return None;
    }
    asm::operands(rest).first()?.strip_prefix('$')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_comparisons() {
        let check = |line: &str, expected: Option<i64>| assert_eq!(compared(line), expected, "{line}");
        check("\tcmpl\t$12345, -4(%rbp)", Some(12345));
        check("\tcmpq $-7, %rax", Some(-7));
        check("\tmovabsq $81985529216486895, %rax", Some(81_985_529_216_486_895));
        check("\tcmpl %eax, %ebx", None);
        check("\tmovl $3, %eax", None);
        check("\tcmpxchgl $3, x", None);
        check("\tcmpq $name, %rax", None);
    }

    #[test]
    fn only_where_values_are_asked_for() {
        assert_eq!(section("\tcmpl $9, %eax\n"), "");
        let text = "\tcall __VERIFIER_nondet_int@PLT\n\tcmpl $9, %eax\n\tcmpl $-1, %eax\n\tcmpl $9, %ebx\n";
        assert!(section(text).ends_with("\t.quad -1\n\t.quad 9\n"), "{}", section(text));
    }
}
