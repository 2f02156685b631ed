//! Single instructions in all their forms.

use super::{Depth, Folder, check};
use std::fmt::Write;

/// Instructions with a letter for the size `W`, and operands `A`, `C`, `D` (registers), `N` (one of the new ones), `M`
/// (memory) and `I` (a constant).
const SIZED: &str = "
    movW C, A | movW M, N | movW N, M | movW $I, A | movW $I, M | mov C, N | xchgW C, A | xchgW M, N
    xchgW N, M | testW C, M | testW M, C | testW $I, A | testW $I, M | incW M | decW A | negW M | notW N
    mulW C | imulW M | divW M | idivW N | shlW $3, A | shlW $1, M | shlW A | salW $5, N | shrW %cl, M
    sarW $7, M | rolW $2, N | rorW %cl, A | rclW $3, M | rcrW %cl, D | xaddW C, M | lock xaddW N, M
    cmpxchgW C, M | lock cmpxchgW N, M | lock incW M | lock; decW M | lock notW M | lock negW M
";

/// Those with a source and a target.
const ARITHMETIC: [&str; 8] = ["add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"];

/// Those that bytes do not have.
const WIDE: &str = "
    imulW C, A | imulW M, N | imulW $I, C, A | imulW $I, A | imulW $I, M, A | btW C, M | btW $3, N | btsW $7, M
    btrW N, A | btcW $1, M | lock btsW C, M | bsfW C, A | bsrW M, N | rep bsfW A, C | tzcntW C, A | lzcntW M, A
    popcntW N, A | leaW 5(%rcx,%rdx,4), A | leaW x(%rip), N | shldW $3, C, A | shrdW %cl, N, M | movzbW %cl, A
    movsbW M, N | nopW M | movbeW M, A
";

/// Those that are written as they are.
const OTHERS: &str = "
    movzwl %cx, %eax | movzwq 8(%rax), %r9 | movswl %ax, %ecx | movswq x(%rip), %rax | movslq %ecx, %rax
    movslq (%rdi,%rcx,4), %r11 | movzbl %ah, %eax | movb %ch, %al | movabsq $0x123456789abcdef0, %r10
    movabs $-1, %rax | movabsq $x, %rax | movq $x, %rax | movl $x+4, %eax | movq $0xffffffff, %rax
    movq $-2147483648, %rcx | movl $4294967295, %eax | addl $0xffffffff, %eax | cmpq $x, (%rax) | pushq $x
    pushq $5 | pushq $500 | push %rbp | pushq %r12 | pushq 8(%rax) | pop %r15 | popq x(%rip) | pushw %ax
    pushw $5 | pushw $500 | pushw (%rax) | push %r9w | popw %cx | movw $x, %ax | movb $x, (%rax) | cbtw | cwtl
    cltq | cwtd | cltd | cqto | bswap %eax | bswapq %r9 | ret | rep ret | repz retq | leave | leaveq | nop
    nopw 0(%rax,%rax,1) | pause | rep nop | rep; nop | mfence | lfence | sfence | ud2 | hlt | int3 | endbr64
    cpuid | rdtsc | syscall | cld | std | clc | stc | cmc | sahf | lahf | rep stosq | rep stosb | rep movsl
    rep movsq | repne scasb | repz cmpsb | stosw | lodsq | movsb | rep;stosq %rax, %es:(%rdi)
    rep;movsq (%rsi), %es:(%rdi) | stosl %eax, %es:(%rdi) | call *%rax | callq *8(%rbx) | jmp *%r11
    jmpq *x(%rip) | notrack jmp *%rax | jmp *x(,%rax,8) | call *x(%rip) | call *other@GOTPCREL(%rip)
    jmp *other@GOTPCREL(%rip) | call other | call other@PLT | callq y | jmp other | jmp other@PLT | je other
    jmp f | call f | call local | jmp local | jc local | movq other@GOTPCREL(%rip), %rax
    movl other(%rip), %eax | movq other+8(%rip), %rax | movb $1, x+3(%rip) | movl $7, 4+x(%rip)
    addq $-9, other(%rip) | cmpb $5, -1+x(%rip) | movw $300, x(%rip) | movl x, %eax | movl x(,%rcx,4), %eax
    movl %eax, x(%rdx) | leaq x-8(,%rcx,8), %rax | movq %fs:0, %rax | movq %fs:40, %rax
    xorq %fs:0x28, %rdx | movl %fs:t@tpoff, %eax | movl %fs:t@TPOFF+4, %eax | movl %fs:t@tpoff(,%rax,4), %ecx
    leaq t@tpoff(%rax), %rcx | movq t@gottpoff(%rip), %rax | addq other@GOTTPOFF(%rip), %rcx
    movq %fs:(%rax), %rcx | leaq t@tlsld(%rip), %rdi
    data16 leaq t@tlsgd(%rip), %rdi;  .value 0x6666;  rex64;  call __tls_get_addr@PLT
    movl t@dtpoff(%rax), %ecx | movl (%eax), %ecx | movl 8(%r9d,%ecx,2), %ecx | leal (%rdi,%rsi), %eax
    movl %gs:(%rdi), %eax | movl (,%rax,4), %eax | movl -4(,%r12,2), %eax | movl (%r12), %eax
    movl (%r13), %eax | movl (%rsp), %eax | movl 127(%rbp), %eax | movl -129(%rbp), %eax
    movl 128(%rsp,%rbp), %eax | xchg %ax, %ax | xchgl %eax, %eax | xchgq %r8, %rax | movntil %eax, (%rdi)
    movntiq %rax, (%rdi) | cmpxchg8b (%rdi) | lock cmpxchg16b (%rdi) | clflush (%rdi) | prefetcht0 (%rax)
    prefetchw 4(%rax) | movq %rax, %xmm0 | movq %xmm3, %r9 | movq (%rax), %xmm1 | movq %xmm1, (%rax)
    movq %xmm1, %xmm9 | movd %ecx, %xmm3 | movd %xmm3, (%rax) | movd (%rax), %xmm15 | movups (%rdi), %xmm0
    movaps %xmm0, 16(%rsp) | movdqa x(%rip), %xmm1 | movdqu %xmm8, %xmm9 | pxor %xmm0, %xmm0
    xorps %xmm1, %xmm1 | punpcklqdq %xmm2, %xmm1 | movhps %xmm0, 8(%rax) | movlps (%rax), %xmm1
    movsd x(%rip), %xmm0 | movss %xmm0, (%rax) | addsd %xmm1, %xmm0 | cvtsi2sdl %eax, %xmm0
    cvtsi2sdq (%rax), %xmm0 | cvttsd2si %xmm0, %rax | pshufd $0x4e, %xmm0, %xmm1 | movmskps %xmm0, %eax
    ucomisd x(%rip), %xmm0 | pinsrw $3, %eax, %xmm2
";

const CONDITIONS: &str =
    "o no b c nae ae nb nc e z ne nz be na a nbe s ns p pe np po l nge ge nl le ng g nle";

/// The entries of a table.
fn entries(table: &str) -> impl Iterator<Item = &str> {
    table.lines().flat_map(|line| line.split(" | ")).map(str::trim).filter(|entry| !entry.is_empty())
}

/// An instruction with registers of a width.
fn with_width(text: &str, width: usize, constant: &str) -> String {
    let index = width.trailing_zeros() as usize;
    let registers = [
        ["%al", "%cl", "%dl", "%r9b"],
        ["%ax", "%cx", "%dx", "%r9w"],
        ["%eax", "%ecx", "%edx", "%r9d"],
        ["%rax", "%rcx", "%rdx", "%r9"],
    ][index];
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            'W' => out.push(['b', 'w', 'l', 'q'][index]),
            'A' => out.push_str(registers[0]),
            'C' => out.push_str(registers[1]),
            'D' => out.push_str(registers[2]),
            'N' => out.push_str(registers[3]),
            'M' => out.push_str("-24(%rdi,%r8,2)"),
            'I' => out.push_str(constant),
            letter => out.push(letter),
        }
    }
    out
}

#[test]
fn single_instructions() {
    let mut all: Vec<String> = entries(OTHERS).map(str::to_owned).collect();
    for width in [1usize, 2, 4, 8] {
        let constants = [
            ["5", "-7", "200"],
            ["5", "-300", "0xffff"],
            ["0x7f", "-129", "100000"],
            ["1", "-1", "0x7fffffff"],
        ][width.trailing_zeros() as usize];
        for text in entries(SIZED).chain(entries(WIDE).filter(|_| width > 1)) {
            // Extending to a byte, or bytes with an order of their own, are no instructions.
            if !(width == 2 && text.contains("nop")) {
                all.extend(constants.iter().map(|constant| with_width(text, width, constant)));
            }
        }
        for name in ARITHMETIC {
            for operands in ["C, A", "M, N", "N, M", "$I, A", "$I, N", "$I, M"] {
                let text = format!("W {operands}");
                all.extend(
                    constants.iter().map(|constant| format!("{name}{}", with_width(&text, width, constant))),
                );
            }
        }
        for condition in CONDITIONS.split_whitespace() {
            match width {
                1 => all.push(format!("set{condition} %r10b\n set{condition} x(%rip)\n j{condition} local")),
                _ => {
                    all.push(with_width(&format!("cmov{condition}W M, N\n cmov{condition} C, A"), width, ""))
                }
            }
        }
    }
    all.dedup();
    let mut text = String::from(" .text\nlocal: nop\n .globl f\n");
    for instruction in &all {
        writeln!(text, " {instruction}").expect("writing to a string");
    }
    text.push_str(" .type f, @function\nf: ret\n .size f, .-f\n .local x\n .comm x, 64, 8\n .comm y, 8, 8\n");
    text.push_str(" .section .tdata,\"awT\",@progbits\nt: .long 1, 2, 3\n");
    check(&Folder::new(), "single instructions", &text, Depth::File);
}
