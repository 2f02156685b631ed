//! Single instructions against the real processor.
//!
//! Each instruction becomes a function that loads registers from memory, executes it, and stores registers and flags.
//! The function runs as it is, and lifted and compiled by clang, on the same random values.

use crate::common::{SUPPORT, clang, lift_to, run};
use palisade_conformance::random::Random;
use std::fmt::Write;
use std::process::Command;

/// The flags that an instruction defines, by the letters of the conditions that are stored.
const ALL: &str = "c z s o p";

/// The instructions, and the flags that they define. `W` is the suffix, `A`, `C`, `D` and `M` are the accumulator, two
/// other registers, and memory, of that width.
const INSTRUCTIONS: &[(&str, &str)] = &[
    ("movW C, A", ""),
    ("movW M, A", ""),
    ("movW A, M", ""),
    ("movW $-7, A", ""),
    ("addW C, A", ALL),
    ("addW M, A", ALL),
    ("addW C, M", ALL),
    ("addW $-100, A", ALL),
    ("subW C, A", ALL),
    ("subW C, M", ALL),
    ("cmpW C, A", ALL),
    ("cmpW $5, M", ALL),
    ("adcW C, A", ALL),
    ("adcW C, M", ALL),
    ("sbbW C, A", ALL),
    ("sbbW A, A", ALL),
    ("sbbW $1, M", ALL),
    ("andW C, A", ALL),
    ("andW $15, A", ALL),
    ("orW C, M", ALL),
    ("orW $-1, A", ALL),
    ("xorW C, A", ALL),
    ("xorW A, A", ALL),
    ("testW C, A", ALL),
    ("testW $4, A", ALL),
    ("incW A", ALL),
    ("incW M", ALL),
    ("decW A", ALL),
    ("negW A", ALL),
    ("negW M", ALL),
    ("notW A", ""),
    ("shlW $3, A", "c z s p"),
    ("shrW $3, A", "c z s p"),
    ("sarW $5, A", "c z s p"),
    ("sarW $1, M", "c z s p"),
    ("shlW %cl, D", ""),
    ("shrW %cl, D", ""),
    ("sarW %cl, M", ""),
    ("rolW $5, A", ""),
    ("rorW $7, A", ""),
    ("rolW %cl, D", ""),
    ("rorW %cl, M", ""),
    ("xchgW C, A", ""),
    ("xchgW A, M", ""),
    ("xaddW C, A", ALL),
    ("xaddW C, M", ALL),
    ("lock cmpxchgW C, M", ALL),
    ("cmpxchgW C, M", ALL),
    ("lock xaddW C, M", ALL),
    ("lock addW C, M", ALL),
    ("lock subW $1, M", ALL),
    ("lock incW M", ALL),
    ("lock decW M", ALL),
    ("lock andW C, M", ALL),
    ("lock orW $16, M", ALL),
    ("lock xorW A, M", ALL),
    ("lock notW M", ""),
];

/// Those that have no version for bytes.
const WIDE: &[(&str, &str)] = &[
    ("imulW C, A", "c o"),
    ("imulW $-9, C, A", "c o"),
    ("imulW C", "c o"),
    ("mulW C", "c o"),
    ("btW C, A", "c"),
    ("btsW $7, A", "c"),
    ("btrW C, A", "c"),
    ("btcW $3, M", "c"),
    ("btW $9, M", "c"),
    ("lock btsW $3, M", "c"),
    ("lock btrW $9, M", "c"),
    ("lock btcW $1, M", "c"),
    ("cmoveW C, A", ""),
    ("cmovbW M, A", ""),
    ("cmovleW C, D", ""),
    ("cmovsW C, D", ""),
    ("leaW 5(%rcx,%rdx,4), A", ""),
    ("popcntW C, A", "c o"),
    ("popcntW M, D", ""),
    ("tzcntW C, A", "c"),
    ("lzcntW C, A", "c"),
    ("lzcntW M, D", "c"),
    ("orW $1, C\n bsfW C, A", "z"),
    ("orW $64, C\n bsrW C, A", "z"),
    ("orW $0x4000, M\n bsfW M, D", "z"),
    ("orW $2, M\n bsrW M, D", ""),
];

/// Those that are written as they are.
const OTHERS: &[(&str, &str)] = &[
    ("shldl $5, %ecx, %eax", "c z s p"),
    ("shldq $63, %rcx, %rax", "c z s p"),
    ("shrdl $31, %ecx, %eax", "c z s p"),
    ("shrdq $1, %rcx, 32(%rdi)", "c z s p"),
    ("shldl $32, %ecx, %eax", ""),
    ("shldl %cl, %edx, %eax", ""),
    ("shldq %cl, %rdx, %rax", ""),
    ("shrdl %cl, %eax, %edx", ""),
    ("shrdq %cl, %rax, 32(%rdi)", ""),
    ("mulb %cl", "c o"),
    ("imulb %cl", "c o"),
    ("mulb 32(%rdi)", "c o"),
    ("imulb %ch", "c o"),
    ("rep bsfq %rcx, %rax", "c"),
    ("movzbl %cl, %eax", ""),
    ("movzbw 32(%rdi), %ax", ""),
    ("movzwl %cx, %eax", ""),
    ("movzbl %ch, %eax", ""),
    ("movb %ah, %cl", ""),
    ("movb %cl, %ah", ""),
    ("addb %ch, %ah", ALL),
    ("movsbl %cl, %eax", ""),
    ("movsbq 32(%rdi), %rax", ""),
    ("movswq %cx, %rax", ""),
    ("movslq %ecx, %rax", ""),
    ("cbtw", ""),
    ("cwtl", ""),
    ("cltq", ""),
    ("cwtd", ""),
    ("cltd", ""),
    ("cqto", ""),
    ("bswap %eax", ""),
    ("bswap %rcx", ""),
    ("xorl %edx, %edx\n orl $1, %ecx\n divl %ecx", ""),
    ("xorl %edx, %edx\n orq $1, %rcx\n divq %rcx", ""),
    ("cltd\n andl $1023, %ecx\n orl $2, %ecx\n idivl %ecx", ""),
    ("cqto\n andl $1023, %ecx\n orl $2, %ecx\n idivq %rcx", ""),
    ("movzbl %al, %eax\n orb $1, %cl\n divb %cl", ""),
    ("cbtw\n andb $63, %cl\n orb $2, %cl\n idivb %cl", ""),
    ("xorl %edx, %edx\n orw $1, %cx\n divw %cx", ""),
    ("pushq %rax\n popq %rdx", ""),
    ("movq %rax, -8(%rsp)\n movl -8(%rsp), %ecx\n movzbl -5(%rsp), %edx", ""),
    ("movabsq $0x123456789abcdef0, %rax", ""),
    ("movups (%rdi), %xmm0\n movups %xmm0, 16(%rdi)\n movq 24(%rdi), %rcx\n movq 16(%rdi), %rdx", ""),
    (
        "movq %rax, %xmm1\n movq %rcx, %xmm2\n punpcklqdq %xmm2, %xmm1\n movups %xmm1, -24(%rsp)\n movq -16(%rsp), %rdx",
        "",
    ),
    ("pxor %xmm0, %xmm0\n movups %xmm0, 16(%rdi)\n movd %ecx, %xmm3\n movd %xmm3, %edx", ""),
    ("sete %cl\n andl $1, %ecx", ""),
    ("xorl %edx, %edx\n setc %al\n orl %eax, %ecx\n andl $1, %ecx", ""),
    ("setc %al\n notl %eax\n addl %ecx, %eax\n movzbl %al, %eax", ""),
    ("testl $0x80, %eax\n setne %dl\n andl $1, %edx", ""),
    ("cmpq %rcx, %rax\n jl 1f\n addq $3, %rdx\n1:", ""),
    ("testl %ecx, %ecx\n jns 1f\n negl %eax\n1:", ""),
    ("lock orq $0, (%rsp)\n mfence\n lfence\n sfence\n pause", ""),
];

/// The names of registers, by width.
fn registers(width: usize) -> [&'static str; 3] {
    match width {
        1 => ["%al", "%cl", "%dl"],
        2 => ["%ax", "%cx", "%dx"],
        4 => ["%eax", "%ecx", "%edx"],
        _ => ["%rax", "%rcx", "%rdx"],
    }
}

/// The text of a function that executes an instruction.
fn function(name: &str, text: &str, flags: &str) -> String {
    let mut out = format!(" .globl {name}\n .type {name}, @function\n{name}:\n");
    // The carry flag is a random bit, and the others are defined.
    out.push_str(" movq (%rdi), %rax\n movq 8(%rdi), %rcx\n movq 16(%rdi), %rdx\n movq 24(%rdi), %r9\n");
    out.push_str(" addl $0x80000000, %r9d\n");
    writeln!(out, " {text}").expect("writing to a string");
    let flags: Vec<&str> = flags.split_whitespace().collect();
    for (index, flag) in flags.iter().enumerate() {
        // Some are used in another block.
        if index == 2 && flags.len() == 5 {
            writeln!(out, " jmp 9f\n9:").expect("writing to a string");
        }
        writeln!(out, " set{flag} {}(%rdi)", 40 + index).expect("writing to a string");
    }
    if flags.len() == 5 {
        for (index, condition) in ["l", "le", "be", "a", "g", "ge", "ns", "np"].iter().enumerate() {
            writeln!(out, " set{condition} {}(%rdi)", 48 + index).expect("writing to a string");
        }
    }
    out.push_str(" movq %rax, (%rdi)\n movq %rcx, 8(%rdi)\n movq %rdx, 16(%rdi)\n ret\n");
    writeln!(out, " .size {name}, .-{name}").expect("writing to a string");
    out
}

/// All instructions, each with a name.
fn cases() -> Vec<(String, String)> {
    let mut found: Vec<(String, &str)> = Vec::new();
    for width in [1, 2, 4, 8] {
        let wide = WIDE.iter().filter(|_| width > 1);
        for (text, flags) in INSTRUCTIONS.iter().chain(wide) {
            let [a, c, d] = registers(width);
            let suffix = ["b", "w", "l", "q"][width.trailing_zeros() as usize];
            let mut written = String::new();
            for letter in text.chars() {
                match letter {
                    'W' => written.push_str(suffix),
                    'A' => written.push_str(a),
                    'C' => written.push_str(c),
                    'D' => written.push_str(d),
                    'M' => written.push_str("32(%rdi)"),
                    letter => written.push(letter),
                }
            }
            found.push((written, flags));
        }
    }
    found.extend(OTHERS.iter().map(|(text, flags)| ((*text).to_owned(), *flags)));
    let name = |(index, (text, flags)): (usize, (String, &str))| {
        (text.clone(), function(&format!("case{index}"), &text, flags))
    };
    found.into_iter().enumerate().map(name).collect()
}

#[test]
fn instructions_do_what_the_processor_does() {
    let cases = cases();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let mut assembly = String::from(" .text\n");
    let mut driver = format!("{SUPPORT}{DRIVER}");
    for (index, (_, function)) in cases.iter().enumerate() {
        assembly.push_str(function);
        writeln!(driver, "long case{index}(long *), lifted_case{index}(long *);")
            .expect("writing to a string");
    }
    driver.push_str("int main(void) {\n");
    let mut random = Random::new(1);
    for (index, (text, _)) in cases.iter().enumerate() {
        let text = text.replace('\n', "; ").replace('%', "%%");
        // Some processors do something else.
        let newer = ["tzcnt", "lzcnt", "popcnt", "rep bsf"].iter().any(|name| text.contains(name));
        let known = if newer { "if (__builtin_cpu_supports(\"bmi\")) " } else { "" };
        writeln!(
            driver,
            "    {known}compare(case{index}, lifted_case{index}, \"{text}\", {}u);",
            random.below(1 << 30)
        )
        .expect("writing to a string");
    }
    driver.push_str("    return failed;\n}\n");
    std::fs::write(at("cases.s"), assembly).expect("the text can be written");
    std::fs::write(at("driver.c"), driver).expect("the text can be written");
    run(Command::new("as").arg("--64").arg("-o").arg(at("cases.o")).arg(at("cases.s")));
    lift_to(&at("cases.o"), &at("lifted.ll"), "lifted_");
    run(clang().args(["-O1", "-c", "-o"]).arg(at("lifted.o")).arg(at("lifted.ll")));
    run(Command::new("gcc")
        .args(["-O1", "-no-pie", "-o"])
        .arg(at("test"))
        .arg(at("driver.c"))
        .arg(at("cases.o"))
        .arg(at("lifted.o")));
    let ended = Command::new(at("test")).output().expect("the test can be started");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && printed.is_empty(), "{}\n{printed}", ended.status);
}

/// Compares two functions on random values.
const DRIVER: &str = r#"#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <string.h>
static int failed;
static unsigned long state;
static unsigned long next(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    unsigned long value = state * 0x2545f4914f6cdd1dul;
    switch (value >> 60) {
        case 0: return 0;
        case 1: return -1ul;
        case 2: return 1ul << (value & 63);
        case 3: return value & 127;
        case 4: return (1ul << (value & 63)) - 1;
        case 5: return 0x8080808080808080ul;
        default: return value;
    }
}
static const char *now;
static void crashed(int number) { printf("signal %d: %s\n", number, now); _exit(1); }
typedef long (*function)(long *);
static void compare(function real, function lifted, const char *name, unsigned seed) {
    state = seed * 2ul + 1;
    setvbuf(stdout, 0, _IONBF, 0);
    signal(SIGSEGV, crashed); signal(SIGILL, crashed); signal(SIGFPE, crashed);
    now = name;
    for (int round = 0; round < 400; round++) {
        long before[8], a[8], b[8];
        for (int i = 0; i < 5; i++) before[i] = next();
        before[5] = before[6] = before[7] = 0;
        if (round % 4 == 0) before[4] = before[0];
        if (round % 8 == 1) before[1] = before[0];
        memcpy(a, before, sizeof a); memcpy(b, before, sizeof b);
        real(a); lifted(b);
        if (memcmp(a, b, sizeof a)) {
            printf("%s\n", name); failed = 1;
            for (int i = 0; i < 8; i++)
                printf("    %d: %016lx became %016lx, lifted %016lx\n", i, before[i], a[i], b[i]);
            return;
        }
    }
}
"#;
