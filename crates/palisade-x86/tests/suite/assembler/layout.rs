//! Directives and places.

use super::{Depth, Folder, check, same};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_x86::{Contents, File, dump, lift};

/// Directives, sections, and jumps that are short or long.
fn text() -> String {
    let far = " nopw 0(%rax,%rax,1)\n".repeat(20);
    format!(
        " .text
 .globl f
 .type f, @function
f: jmp 1f
{far} jne 1f
 jmp 2f
1: je 1b
2: jmp f
 .p2align 4,,10
3: loop_here: jmp 3b ; jmp loop_here
 {far}{far} jmp 3b
 .p2align 3
 leaq 3b(%rip), %rax # a comment
 leaq g(%rip), %rax /* another
 one */ ; ret
 .size f, .-f
 .section .text.unlikely,\"ax\",@progbits
 .type f.cold, @function
f.cold: call f
 call g
 jmp .Lcold
 .text
.Lcold: ret
 .weak w
 .type w, @function
w: call w ; jmp w ; ret
 .size w, .-w
g: ret
 .type g, @function
 .size g, .-g
 .globl alias
 .set alias, g
 same = w
 constant = 5
 .equ seven, constant + 2
 .section .rodata
 .align 8
.Ltable: .long .Lcold-.Ltable, g-.Ltable, f-.Ltable
 .long .-.Ltable
 .quad f, .Ltable+8, outside, outside-4, w
 .byte 1, -1, 255, seven, 'a'
 .value 65535, -2
 .long 0xffffffff, -5, seven+3*4
 .quad -1, 18446744073709551615, ~0
 .string \"text\\n\\t\\\"\\\\\\0012\\x41\", \"second\"
 .ascii \"no end\"
 .fill 3, 4, 0
 .fill 3
 .skip 5, 7
 .zero 2
 .uleb128 300
 .sleb128 -5, 64
 .section .gcc_except_table,\"a\",@progbits
 .uleb128 .Lcold-f, 2b-f
 .section .rodata.str1.1,\"aMS\",@progbits,1
.LC0: .string \"merged\"
 .data
 .globl d
 .type d, @object
 .size d, 24
d: .quad .LC0, .LC0+3, e
e: .long 5
 .balign 32
 .quad e-4
 .bss
b: .zero 12
 .local l
 .comm l, 4, 4
 .comm n, 12, 8
 .comm o, 5, 32
 .section .init_array,\"aw\"
 .quad f
 .pushsection .data
 .long 77
 .popsection
 .quad g
 .section .text.a,\"axG\",@progbits,a,comdat
a: ret
 .section .text.a,\"axG\",@progbits,b,comdat
 ret
 .previous
 nop ; ret
"
    )
}

#[test]
fn layout() {
    check(&Folder::new(), "layout", &text(), Depth::Program);
}

/// Damaged text is refused or read, and nothing else happens.
#[test]
fn damaged_text() {
    let whole = text();
    let folder = Folder::new();
    let pieces: Vec<&str> = whole.split_inclusive([' ', ',', '\n', '(', ')']).collect();
    for seed in seeds(150) {
        let mut random = Random::new(seed);
        let mut damaged: Vec<&str> = pieces.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(damaged.len());
            match random.below(5) {
                0 => _ = damaged.remove(at),
                1 => damaged[at] = pieces[random.below(pieces.len())],
                2 => damaged.insert(at, pieces[random.below(pieces.len())]),
                3 => damaged.insert(
                    at,
                    ["\"", "'", "#", "/*", ";", "-", "99999999999999999999", "0x", "@PLT", "%"]
                        [random.below(10)],
                ),
                _ => damaged.truncate(at + 1),
            }
        }
        let text = damaged.concat();
        let _ = lift(&[File { name: "damaged.s", contents: Contents::Assembly(&text) }]);
        // What is read although it is damaged is what `as` reads, too, unless it refuses the text.
        if let Ok(found) = dump(&File { name: "text.s", contents: Contents::Assembly(&text) })
            && let Some(object) = folder.assembled_if_possible(&text)
        {
            let expected = File { name: "text.s", contents: Contents::Object(&object) };
            // Object files have symbols of groups of sections, and jumps to numbers as they are.
            let Ok(expected) = dump(&expected) else { continue };
            let plain = |dumped: &str| {
                let lines = dumped.lines().filter(|line| !line.contains(": .group+"));
                lines.collect::<Vec<_>>().join("\n")
            };
            if !found.contains("not read") {
                same(&format!("seed {seed}:\n{text}"), &plain(&expected), &plain(&found));
            }
        }
    }
    // Symbols that stand for each other, and sums that grow.
    let mut text = String::from(" .type f, @function\nf: ret\n s0 = s1 + s1\n .long s0, a\n a = b\n b = a\n");
    for number in 1..60 {
        text.push_str(&format!(" s{number} = s{} + s{} + f\n", number + 1, number + 1));
    }
    text.push_str(&format!(" .quad {}5{}\n", "(".repeat(1000), ")".repeat(1000)));
    text.push_str(&format!(" .quad {}\n", vec!["0xffffffffffffffff"; 40].join("*")));
    let refused = lift(&[File { name: "odd.s", contents: Contents::Assembly(&text) }]);
    assert!(refused.is_err());
}
