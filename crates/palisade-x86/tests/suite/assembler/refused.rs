//! Texts that assemblers read in another way than it seems, or do not agree about. They are refused.

use palisade_x86::{Contents, File, dump};

/// Statements that are refused, each on its own, in the code of a function.
const IN_CODE: &[&str] = &[
    // Strings that go on in the next line, or seem to.
    ".ident \"a\n mfence\n .ident \"",
    ".pushsection .note.a\n .ascii \"a\n .popsection\n mfence\n .pushsection .note.a\n .ascii \"\n .popsection",
    "nop\n# 1 \"a.S\" ; movl $0, x(%rip)",
    "nop\n# 1 \"a\n mfence\n# \"",
    "nop\n# 1 /*\n mfence\n# */",
    "nop /* one\n two */ mfence",
    "nop /* no end",
    "nop\n/ mfence",
    "nop \\\n mfence",
    "nop\rmfence",
    "movl $';, %eax",
    // Characters and names.
    "call fence\u{a0}",
    "call f\u{e9}",
    "mfence\u{b}",
    "call \"\\146ence\"",
    "call \".\"",
    "call \"g\\nmfence\"",
    "call \"\"",
    "\"mfence\"",
    "\".data\"",
    "call ..name",
    "call .1",
    "call $x",
    // Sizes.
    "mov $0xffffffffffffffff, x(%rip)",
    "mov $1, x(%rip)",
    "lock add $0x100000000, x(%rip)",
    "cmp $300, x(%rip)",
    "bt $3, x(%rip)",
    "inc x(%rip)",
    "movw $100000, %ax",
    "movl $0x100000000, %eax",
    "test %al, $200",
    "jmpq f",
    "jmp 1B\n 1:",
    // Prefixes.
    "lock {disp32} andl $0, x(%rip)",
    "{disp32} andl $0, x(%rip)",
    "rep %foo",
    "lock 1: incl x(%rip)",
    "lock lock incl x(%rip)",
    "lock this is nothing",
    "lock fistpl x(%rip)",
    "data16\n movl $5, %eax",
    ".byte 0x66\n movl $5, %eax",
    ".byte 0xb8\n lock addw $0, x(%rip)",
    ".byte 0xf0",
    ".byte 0x66\n .section .text.b,\"ax\"\n call f\n .text\n movl $5, %eax",
    ".long x-f",
    // Lengths.
    "movl $.L1-.L0, %eax\n.L0: fistpl x(%rip)\n.L1:",
    "a = 1\n movl $.L1-.L0, %eax\n.L0: cmpl $a, %ecx\n.L1:",
    "d = .L1-.L0\n movl d(%rax), %eax\n.L0: nop\n.L1:",
    "movl $.Lb-.La, %eax\n .pushsection .note.a\n.La: .quad 1,2,3\n.Lb: .popsection",
    "leaq .La(%rip), %rax\n .pushsection .note.a\n.La: .quad 1,2,3\n .popsection",
    "jmp .L0+6\n.L0: fistpl x(%rip)",
    "jmp .L0+1\n.L0: lock addw $0, x(%rip)",
    "je 0f+1\n0: nop",
    "call f+1",
    "jmp .+2",
    "leaq f+1(%rip), %rax",
    "leaq 5(%rip), %rax",
    ".set h, f+1\n jmp h",
    ".p2align 4,0xf0",
    ".p2align 4,0xcc",
    ".pushsection .data\n .quad f+3\n .popsection",
    ".pushsection .data\n .long .Le-f\n .popsection\n.Le:",
    ".pushsection .gcc_except_table,\"a\"\n.Lt: .uleb128 .Le-f\n.Lu: .popsection\n.Le: leaq .Lu(%rip), %rax",
    // Junk.
    ".cfi_anything",
    ".cfi_def_cfa_offset 16; .cfi_endproc (",
    ".code64 junk",
    ".ident \"a\"junk",
    ".popsection junk",
    ".type g,@function junk",
    ".type g,@@function",
    ".globl g g",
    ".globl .",
    "01: jmp 1b",
    "jmp 01f\n1:",
    ".p2align 4 junk",
    ".loc 1 2 (",
    ".file \"a\" junk",
    ".hidden g junk",
    ".att_syntax noprefix",
];

/// The same in `.data`.
const IN_DATA: &[&str] = &[
    ".ascii \"\\18\"",
    ".ascii \"\\8\"",
    ".ascii \"\\777\"",
    ".ascii \"\\x414\"",
    ".ascii \"\\v\"",
    ".ascii \"a\"junk",
    "tab: .uleb128 .-tab, .-tab",
    ".uleb128 -1",
    "fistpl x(%rip)",
    "nop",
    "long 5",
    "this is no instruction",
    ".size x, -1",
    ".type g,@object\n .size g,f2-f1\n .text\nf1: nop\nf2: .data\ng: .long 1",
    ".set q, x+4",
    ".comm n, 4",
    ".lcomm n, 4",
    // Symbols that only this file sees, and that others see.
    ".globl n\n .local n\n .comm n, 4, 4",
    ".comm n, 4, 4\n .local n",
    ".weak n\n .local n\nn: .long 0",
    ".weak n\n .globl n\nn: .long 0",
    ".globl .Ln\n.Ln: .long 0",
    ".local n\n .quad n",
    // Sections.
    ".section .tdata,\"aw\"",
    ".section .tbss,\"aw\",@nobits",
    ".section .data,\"a\"",
    ".section .rodata,\"aw\"",
    ".section .text.a,\"aw\"",
    ".section .ldata",
    ".section .ldata,\"aw\"",
    ".section .data1",
    ".section .rodata1,\"a\"",
    ".section .gnu.linkonce.d.x,\"aw\"",
    ".section .got",
    ".section mine",
    ".section mine,\"aw\"\n .section mine,\"a\"",
    ".section .note.a\n .section .note.a,\"a\"",
    ".section mine,\"awo\",@progbits,.text",
    ".section mine,\"aw?\"",
    ".section .data,\"awR\"",
    ".section mine,\"aw\",@progbits junk(",
    ".section mine,\"aw\",@something",
    ".section .rodata.s,\"aMS\",@progbits,1\n .section .rodata.s,\"aMS\",@progbits,2",
    ".data 1",
];

/// Whether a text with a function `f` and a variable `x` is read.
fn is_read(start: &str, code: &str, data: &str) -> bool {
    let text = format!(
        "{start} .text\n .globl f\n .type f, @function\nf: nop\n {code}\n ret\n .size f, .-f
 .data\n .globl x\n .type x, @object\n .size x, 8\nx: .quad 0\n {data}\n"
    );
    let read = dump(&File { name: "text.s", contents: Contents::Assembly(&text) });
    if let Err(errors) = &read {
        let has_place =
            errors.iter().all(|error| text.get(error.span().range()).is_some_and(|at| !at.is_empty()));
        assert!(has_place, "an error without its place: {text}");
    }
    read.is_ok()
}

#[test]
fn what_assemblers_disagree_about() {
    // What the others are put into is read.
    assert!(is_read("", "mfence", ".long 5"));
    assert!(is_read("", "#APP\n# 13 \"t.c\" 1\n mfence\n# 0 \"\" 2\n#NO_APP", ".ascii \"\\0018\\\"\""));
    for text in IN_CODE {
        assert!(!is_read("", text, ""), "read in code: {text}");
    }
    for text in IN_DATA {
        assert!(!is_read("", "", text), "read in data: {text}");
    }
    assert!(!is_read("#NO_APP\n", "", ""));
}

/// Neither many symbols nor long sums take long.
#[test]
fn many_symbols_and_terms() {
    let equal: String = (0..1100).map(|number| format!("e{number}={number}\n")).collect();
    assert!(is_read(&equal, "movl $e1099, %eax", ""));
    assert!(!is_read("", &format!("jmp f{}", "+f".repeat(60_000)), ""));
    assert!(!is_read("", &format!("jmp f{}", "+f-f".repeat(60_000)), ""));
}
