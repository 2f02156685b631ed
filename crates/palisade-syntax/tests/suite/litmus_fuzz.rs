//! For any input, the litmus parser returns a program or errors that point into the text. A program can be
//! printed and parsed again as `.pal`.

use crate::languages;

use palisade_base::Source;
use palisade_syntax::{Language, parse};
use proptest::collection::vec;
use proptest::prelude::*;

fn check(text: &str) {
    languages::check_any_text(Language::Litmus, text);
}

/// Words of the language, and some others.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "X86", "X86_64", "t", "\"doc\"", "Key=value", "{", "}", ";", "|", "P0", "P1", ",", "x", "y", "int", "uint64_t", "int8_t",
    "=", "0", "1", "-1", "0x10", "4294967295", "9223372036854775808", "0:", "1:", "EAX", "EBX", "rax", "rbx", "al", "ah", "r8",
    "%", "%eax", "%rax", "%rdi", "$1", "$-1", "$x", "[", "]", "(", ")", "[x]", "(x)", "(%rax)", "[rax+4]", "4(%rdi)", "+", "-", "*",
    "mov", "movl", "movq", "movb", "movzbl", "movsx", "xchg", "lock", "cmpxchg", "xadd", "add", "subl", "and", "orq", "xor",
    "inc", "decl", "neg", "not", "shl", "sarl", "bts", "btc", "cmp", "testl", "je", "jne", "jb", "jo", "jmp", "sete", "cmovl",
    "mfence", "sfence", "lfence", "lea", "L0:", "L0", "L1:", "L1", "dword", "ptr", "exists", "~", "forall", "filter",
    "locations", "/\\", "\\/", "=>", "!=", "==", "true", "false", "not", "(*", "*)", "//", "\n", "é", "\u{0}",
];

/// Well-formed instructions.
#[rustfmt::skip]
const INSTRUCTIONS: &[&str] = &[
    "movl $1,(x)", "movl (x),%eax", "movl %eax,(y)", "movq %rdi,%rsi", "movl (%rdi),%ecx", "movl %ecx,(%rsi)", "movb $-1,%al",
    "movb %ah,%bl", "movw %ax,%cx", "movzbl %al,%eax", "movsbq %ah,%rdx", "lock incl (x)", "incl (x)", "lock decl (y)",
    "lock xaddl %eax,(x)", "xaddl %eax,%ebx", "lock cmpxchgl %ebx,(x)", "cmpxchgl %ebx,%ecx", "xchgl %eax,(y)", "addq $-5,%rax",
    "subl %eax,%ebx", "andl (x),%eax", "lock orl %eax,(x)", "xorl %eax,%eax", "negl (x)", "lock notl (y)", "shll $3,%eax",
    "shrq $63,%rax", "sarl $1,(x)", "lock btsl $31,(x)", "btl $0,%eax", "cmpl (x),%eax", "testl %eax,%eax", "je L0", "jl L1",
    "ja L0", "jo L1", "jns L0", "jmp L1", "sete %al", "setb (b)", "cmovgl %eax,%ebx", "cmovbl (x),%ecx", "mfence", "sfence",
    "leaq x(%rip),%rdi", "leaq 8(%rcx,%rdx,2),%rax", "movl t(,%rax,4),%edx", "addl %ecx,t+4",
];

proptest! {
    #[test]
    fn any_text(text in "\\PC*") {
        check(&text);
    }

    #[test]
    fn any_text_after_a_heading(text in "[ -~\n]{0,200}") {
        check(&format!("X86_64 t\n{text}"));
        check(&format!("X86 t\n{{}}\nP0 ;\n{text}"));
        check(&format!("X86 t\n{{}}\nP0 ;\nMOV [x],$1 ;\nexists {text}"));
    }

    #[test]
    fn random_words(words in vec(proptest::sample::select(PIECES), 0..60)) {
        let soup = words.join(" ");
        check(&soup);
        check(&format!("X86_64 t {{}} {soup}"));
        check(&format!("X86_64 t {{}} P0 ; {soup}"));
        check(&format!("X86 t {{ {soup} }} P0 ; mfence ; exists true"));
        check(&format!("X86 t {{ x=0; }} P0 ; MOV [x],$1 ; exists {soup}"));
    }

    #[test]
    fn well_formed_code(rows in vec((0..INSTRUCTIONS.len(), 0..INSTRUCTIONS.len()), 1..12), cut in any::<prop::sample::Index>()) {
        let init = "int8_t b; int x = 1; int t[4]; 0:rdi = x; 1:rdi = t; 0:rsi = t; 1:rsi = x;";
        let mut text = format!("X86_64 t\n{{ {init} }}\nP0 | P1 ;\n L1: nop | L1: nop ;\n");
        for (left, right) in &rows {
            text.push_str(&format!(" {} | {} ;\n", INSTRUCTIONS[*left], INSTRUCTIONS[*right]));
        }
        text.push_str(" L0: | L0: ;\nexists (x=1 /\\ 0:eax=0)\n");
        if let Err(errors) = parse(Language::Litmus, &Source::new("fuzz.litmus", text.as_str())) {
            prop_assert!(errors.iter().all(|error| !error.is_error() || error.id == "unsupported-flag"), "{:?}\n{}", errors, text);
        }
        check(&text);
        // A prefix.
        let half: String = text.chars().take(cut.index(text.len())).collect();
        check(&half);
        // With something missing in the middle.
        let at = cut.index(text.len().saturating_sub(3));
        check(&format!("{}{}", &text[..at], &text[at + 3..]));
    }
}
