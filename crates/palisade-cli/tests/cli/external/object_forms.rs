//! Machine code in forms that are easily taken for something else: relocations, parts of registers, tables of jumps,
//! calls through pointers, accesses that the processor does not make at once.

use crate::common::Scratch;
use std::process::Command;

/// Compiles a file of the scratch folder to an object file.
#[track_caller]
fn compile(scratch: &Scratch, command: &str, from: &str, to: &str) {
    let mut words = command.split_whitespace();
    let mut command = Command::new(words.next().expect("a compiler"));
    command.args(words).args(["-w", "-c", "-o"]).arg(scratch.path(to)).arg(scratch.path(from));
    let output = command.output().expect("gcc and clang are needed (`./test` installs them)");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Checks a C program with `main` as several compilers compile it.
#[track_caller]
fn check(name: &str, program: &str, builds: &[&str], exit: i32, printed: &str) {
    let scratch =
        Scratch::new(name).file("a.c", format!("#include <assert.h>\n#include <pthread.h>\n{program}"));
    for build in builds {
        compile(&scratch, build, "a.c", "a.o");
        scratch.run(&["check", "-q", "a.o"]).exits(exit).prints(printed);
    }
}

const SAFE: &str = "safe  a.o: free of deadlocks, `main` can always finish\n";
const BUILDS: [&str; 4] = ["gcc -O2", "gcc -O0", "clang -O2", "clang -O0"];

#[test]
fn addresses_of_32_bits_are_addresses() {
    let builds = ["gcc -O2 -fno-pic", "clang -O2 -fno-pic"];
    let threads = "volatile int x;
void *a(void *u) { x = 1; return 0; }
void *b(void *u) { x = 2; return 0; }
int main(void) {
    pthread_t p, q;
    pthread_create(&p, 0, a, 0); pthread_create(&q, 0, b, 0);
    pthread_join(p, 0); pthread_join(q, 0);
    assert(x == 1 || x == 2);
    return 0;
}
";
    check("object-short-functions", threads, &builds, 0, SAFE);
    let data = "int data;
volatile int *volatile dp;
__attribute__((noinline)) void publish(int *p) { dp = p; }
int main(void) { publish(&data); assert(dp != &data); return 0; }
";
    check("object-short-data", data, &builds, 1, "unsafe  a.o: assertion failed in main at [..]\n");
}

/// Checks a function `f` in assembly. It is refused.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let head = " .globl f\n .type f, @function\nf:\n";
    let data = " .size f, .-f\n .comm x, 8, 8\n .comm y, 8, 8\n";
    let scratch = Scratch::new("object-forms").file("a.s", format!("{head}{text}\n{data}"));
    scratch
        .run(&["check", "a.s", "--thread", "f"])
        .exits(2)
        .complains(format!("error[c-unsupported]: not supported: {expected}\n..."));
}

#[test]
fn relocations_are_followed_or_refused_by_name() {
    let in_such = |how: &str| format!("a relocation of the form {how} in such an instruction");
    refused(" movl $x, y(%rip)\n ret", &in_such("R_X86_64_32"));
    refused(" xorl %eax, %eax\n addl $x, %eax\n ret", &in_such("R_X86_64_32"));
    refused(" cmpl $x, y(%rip)\n ret", &in_such("R_X86_64_32"));
    refused(" lock orl $x, y(%rip)\n ret", &in_such("R_X86_64_32"));
    refused(" movw $x, y(%rip)\n ret", &in_such("number 12"));
    refused(" movb $x, y(%rip)\n ret", &in_such("number 14"));
    refused(" lock orq $x, y(%rip)\n ret", "the instruction `lock orq $0, (%rip)`");
    refused(" andq $x, %rsp\n ret", "the instruction `and $0, %rsp`");
    refused(" imulq $x, %rdi, %rax\n ret", "the instruction `imul $0, %rdi, %rax`");
    refused(" movl x@GOTPCREL(%rip), %eax\n ret", "a part of an address in the global offset table");
    let local = "\n ret\n .section .tbss, \"awT\"\nt: .zero 8\n .text";
    refused(&format!(" leaq t@tpoff(%rdi), %rax{local}"), "the position of a thread-local variable[..]");
    refused(&format!(" movq $t@tpoff, %rax{local}"), &in_such("R_X86_64_TPOFF32"));
    refused(&format!(" leaq t(%rip), %rax{local}"), &in_such("R_X86_64_PC32"));
    // In data: what is read, and what leads to it.
    let data = |data: &str, read: &str| format!(" {read}\n ret\n .data\n .balign 8\nd: {data}\n .text");
    refused(
        &data(".long x, 0", "movl d(%rip), %eax"),
        "the variable [..], which holds a relocation of the form R_X86_64_32",
    );
    refused(&data(".long x - ., 0", "movl d(%rip), %eax"), "the variable [..]R_X86_64_PC32");
    refused(&data(".byte x - ., 0", "movb d(%rip), %al"), "the variable [..]number 15");
    refused(&data(".quad 1b", "nop\n1: movq d(%rip), %rax"), "a table of jumps that is used in another way");
}

#[test]
fn forms_of_other_widths_are_refused() {
    refused(" pushw $5\n popw x(%rip)\n ret", "the instruction `pushw $5`");
    refused(" ret $8", "the instruction `ret $8`");
    refused(" leaq x(%rip), %rax\n movl $5, (%eax)\n ret", "addresses of 32 bits");
    refused(" addr32 movl $5, 64\n ret", "addresses of 32 bits");
    refused(" movq %fs:0x10, %rax\n ret", "what the C library keeps for each thread");
    refused(" movq %fs:0, %rax\n movq %rax, x(%rip)\n ret", "a store of a register that holds nothing[..]");
    refused(" cmpq %fs:0, %rdi\n je 1f\n nop\n1: ret", "what the C library keeps for each thread");
    refused(" leaq x(%rip), %rax\n movq %fs:x(%rip), %rax\n ret", "an address relative to the thread's own");
}

#[test]
fn parts_of_registers() {
    let bits = " .globl main\n .type main, @function\nmain: cmpl $1, x(%rip)\n sete %cl\n andl $1, %ecx\n movl %ecx, y(%rip)
 setne %dl\n orl %edx, %ecx\n andl $1, %ecx\n movl %ecx, y+4(%rip)\n xorl %eax, %eax\n ret
 .size main, .-main\n .comm x, 4, 4\n .comm y, 8, 8\n";
    let scratch = Scratch::new("object-parts").file("a.s", bits);
    scratch.run(&["check", "-q", "a.s"]).exits(0);
}

#[test]
fn switches_on_what_other_threads_change() {
    let program = "volatile int x, r, s, z;
static void *t0(void *u) { x = 1; return 0; }
static __attribute__((noinline)) void first(int k) { switch (k) {
    case 0: r = 3; break; case 1: z = r + 1; break; case 2: s = 5; case 3: r = 8; break; case 4: x = 3; break;
    case 5: r = 11; break; } }
static __attribute__((noinline)) void second(int k) { switch (k) {
    case 0: z = 3; break; case 1: r = 3; break; case 2: z = 5; case 3: s = 8; break; case 4: x = 4; break;
    case 5: s = 11; break; } }
int main(void) {
    pthread_t p;
    pthread_create(&p, 0, t0, 0);
    int k = x;
    first(k); second(k);
    pthread_join(p, 0);
    assert(r == 3 && z == (k ? 1 : 3));
    return 0;
}
";
    check("object-switch", program, &BUILDS, 0, SAFE);
    let wrong = program.replace("r == 3 &&", "r != 3 &&");
    check("object-switch-wrong", &wrong, &BUILDS[..1], 1, "unsafe  a.o: assertion failed in main at [..]\n");
}

#[test]
fn calls_through_pointers_that_other_threads_change() {
    let program = "static int f(int x) { return x + 1; }
static int g(int x) { return x + 2; }
static int (*volatile fp)(int);
static int (*const tab[2])(int) = { f, g };
static volatile int x, o;
static void *t0(void *u) { fp = g; x = 1; return 0; }
int main(void) {
    pthread_t p;
    fp = f;
    pthread_create(&p, 0, t0, 0);
    o = fp(1) + tab[x & 1](1);
    pthread_join(p, 0);
    assert(4 <= o && o <= 6);
    return 0;
}
";
    check("object-pointers", program, &BUILDS, 0, SAFE);
    let wrong = program.replace("o <= 6", "o <= 5");
    check(
        "object-pointers-wrong",
        &wrong,
        &BUILDS[..1],
        1,
        "unsafe  a.o: assertion failed in main at [..]\n",
    );
}

#[test]
fn the_end_of_an_array_is_not_the_next_variable() {
    let program = "volatile int arr[4]; volatile int other[4];
static void *t0(void *u) { for (volatile int *p = arr + 4; p != arr; ) { p--; *p = 1; } return 0; }
int main(void) {
    pthread_t p;
    pthread_create(&p, 0, t0, 0);
    for (volatile int *p = arr; p != arr + 4; p++) *p = 1;
    pthread_join(p, 0);
    assert(arr[3] == 1 && !other[0]);
    return 0;
}
";
    check("object-end", program, &["gcc -O0", "clang -O1"], 0, SAFE);
}

#[test]
fn accesses_that_may_cross_a_cache_line_are_refused() {
    let program = "struct __attribute__((packed)) line { char pad[60]; volatile long word; char rest[60]; };
static _Alignas(64) struct line l;
static void *t0(void *u) { STORE; return 0; }
int main(void) {
    pthread_t p;
    pthread_create(&p, 0, t0, 0);
    long seen = __atomic_fetch_add(&l.word, 0, __ATOMIC_SEQ_CST);
    pthread_join(p, 0);
    assert(seen == 0 || seen == -1);
    return 0;
}
";
    let scratch = Scratch::new("object-line")
        .file("a.c", format!("#include <assert.h>\n#include <pthread.h>\n{program}"));
    compile(&scratch, "gcc -O2 -DSTORE=l.word=-1", "a.c", "a.o");
    scratch.run(&["check", "-q", "a.o"]).exits(2).complains(
        "error[c-unsupported]: not supported: an access to 8 bytes of `l` that may cross the end of a cache line[..]\n...",
    );
    // Locked instructions are made at once anywhere.
    compile(&scratch, "gcc -O2 -DSTORE=__atomic_fetch_or(&l.word,-1,5)", "a.c", "a.o");
    scratch.run(&["check", "-q", "a.o"]).exits(0);
}

#[test]
fn outcomes_say_that_accesses_are_split() {
    let program = "#include <stdint.h>
union { uint32_t w; struct { uint8_t lo, hi; uint16_t tail; }; } volatile u;
volatile uint32_t r1, r2;
void b(void) { u.lo = 5; r1 = u.w; }
void d(void) { u.w = 0x01020304; r2 = u.hi; }
";
    let scratch = Scratch::new("object-split").file("a.c", program);
    compile(&scratch, "gcc -O2", "a.c", "a.o");
    scratch.run(&["outcomes", "-q", "a.o", "--thread", "b", "--thread", "d"]).exits(0).prints(
        "complete  a.o: 12 outcomes under TSO, where an access to several variables at once is made as one access to each\n...",
    );
}

#[test]
fn weak_and_common_symbols_of_several_files() {
    let scratch = Scratch::new("object-weak")
        .file("a.c", "#include <assert.h>\nint n;\n__attribute__((weak)) int f(void) { return 1; }\nint main(void) { n++; assert(f() + n == 3); return 0; }\n")
        .file("b.c", "int n;\nint f(void) { return n + 1; }\n");
    compile(&scratch, "gcc -O0 -fcommon", "a.c", "a.o");
    compile(&scratch, "gcc -O0 -fcommon", "b.c", "b.o");
    scratch.run(&["check", "-q", "a.o", "--", "b.o"]).exits(0);
    scratch.run(&["check", "-q", "a.o"]).exits(1);
}

/// Assembly with functions, each by its name and its text.
fn functions(all: &[(&str, &str)]) -> String {
    let one = |(name, text): &(&str, &str)| {
        format!(" .globl {name}\n .type {name}, @function\n{name}:\n{text}\n .size {name}, .-{name}\n")
    };
    all.iter().map(one).collect::<String>() + " .comm x, 8, 8\n .comm p, 8, 8\n"
}

/// Compilers push any register to make room on the stack. Only if it is used later is it an argument.
#[test]
fn pushes_that_make_room_are_not_arguments() {
    let check = |worker: &str, helper: &str, exit: i32| {
        let start =
            " pushq %rbx\n subq $16, %rsp\n leaq worker(%rip), %rdx\n movq %rsp, %rdi\n xorl %esi, %esi
 movl $7, %ecx\n call pthread_create\n movq (%rsp), %rdi\n leaq 8(%rsp), %rsi\n call pthread_join
 cmpq $7, 8(%rsp)\n je 1f\n ud2\n1: xorl %eax, %eax\n addq $16, %rsp\n popq %rbx\n ret";
        let text = functions(&[("main", start), ("worker", worker), ("helper", helper)]);
        let scratch = Scratch::new("object-room").file("a.s", text);
        scratch.run(&["check", "-q", "a.s"]).exits(exit);
    };
    // Of four registers, one is an argument.
    check(" pushq %rcx\n movq %rdi, x(%rip)\n call helper\n popq %rdx\n ret", " movq x(%rip), %rax\n ret", 0);
    check(" pushq %r9\n movq %rdi, x(%rip)\n call helper\n popq %rcx\n ret", " movl $8, %eax\n ret", 1);
    // What is pushed is used.
    check(" pushq %rdi\n call helper\n popq %rax\n ret", " movq $1, x(%rip)\n ret", 0);
    check(" pushq %rdi\n call helper\n movq (%rsp), %rax\n popq %rcx\n ret", " movq $1, x(%rip)\n ret", 0);
    check(" pushq %rdi\n call helper\n popq %rcx\n ret", " movq 8(%rsp), %rax\n ret", 0);
    check(" pushq %rdi\n call helper\n popq %rax\n incq %rax\n ret", " movq $1, x(%rip)\n ret", 1);
}

/// A function without a result is not called where the result is used, and stands in the way of none that has one.
#[test]
fn results_of_calls_through_pointers() {
    let check = |given: &str, after: &str, exit: i32| {
        let start = format!(
            " subq $8, %rsp\n leaq nothing(%rip), %rax\n movq %rax, x(%rip)\n leaq {given}(%rip), %rax
 movq %rax, p(%rip)\n call *p(%rip)\n{after}\n xorl %eax, %eax\n addq $8, %rsp\n ret"
        );
        let text = functions(&[
            ("main", &start),
            ("nothing", " movq $0, x(%rip)\n ret"),
            ("number", " movl $5, %eax\n ret"),
            ("through", " jmp *x(%rip)"),
        ]);
        let scratch = Scratch::new("object-results").file("a.s", text);
        scratch.run(&["check", "-q", "a.s"]).exits(exit);
    };
    let used = |value: u32| format!(" cmpl ${value}, %eax\n je 1f\n ud2\n1:");
    check("number", &used(5), 0);
    check("number", &used(6), 1);
    check("nothing", &used(5), 3);
    check("nothing", "", 0);
    check("through", "", 0);
}

/// Of a sum of registers, as many bits are defined as of the registers.
#[test]
fn sums_of_parts_of_registers() {
    let check = |after: &str, exit: i32| {
        let text =
            functions(&[("f", &format!(" movb x(%rip), %al\n leal 1(%rax,%rax,2), %edx\n{after}\n ret"))]);
        let scratch = Scratch::new("object-sums").file("a.s", text);
        scratch.run(&["check", "-q", "a.s", "--thread", "f"]).exits(exit);
    };
    check(" cmpb $1, %dl\n je 1f\n ud2\n1:", 0);
    check(" movzbl %dl, %ecx\n cmpl $1, %ecx\n jne 1f\n ud2\n1:", 1);
    check(" movl %edx, p(%rip)", 2);
    // The upper half does not matter either.
    let text = functions(&[
        (
            "f",
            " call number\n leal 1(%rax), %edx\n movl %edx, p(%rip)\n movslq %edx, %rdx\n movq %rdx, x(%rip)\n ret",
        ),
        ("number", " movb x(%rip), %al\n movzbl %al, %eax\n ret"),
    ]);
    let after = |text: &str| text.replace(" call number\n", " leaq x(%rip), %rdi\n call pthread_spin_lock\n");
    let scratch = Scratch::new("object-halves")
        .file("a.s", after(&text))
        .file("b.s", after(&text).replace("leal", "leaq"));
    scratch.run(&["check", "-q", "a.s", "--thread", "f"]).exits(0);
    let wide = after(&text).replace("leal 1(%rax), %edx\n movl %edx", "leaq 1(%rax), %rdx\n movq %rdx");
    scratch.file("b.s", wide).run(&["check", "-q", "b.s", "--thread", "f"]).exits(2);
}

/// A tentative definition is as aligned as its symbol says.
#[test]
fn common_symbols_are_aligned() {
    let text = |align: u32| {
        format!(
            " .globl f\n .type f, @function\nf: movq $1, x+56(%rip)\n ret\n .size f, .-f\n .comm x, 128, {align}\n"
        )
    };
    let scratch = Scratch::new("object-common").file("a.s", text(8)).file("b.s", text(2));
    for (file, exit) in [("a", 0), ("b", 2)] {
        let assembly = format!("{file}.s");
        compile(&scratch, "gcc", &assembly, "a.o");
        for file in [assembly.as_str(), "a.o"] {
            scratch.run(&["check", "-q", file, "--thread", "f", "--thread", "f"]).exits(exit);
        }
    }
}

/// Code that runs before `main`, and functions that are chosen then, are not followed.
#[test]
fn what_runs_before_main_is_refused() {
    let constructor = "volatile int x;
__attribute__((constructor)) static void init(void) { x = 1; }
int main(void) { assert(x == 0); return 0; }
";
    let destructor = "volatile int x;
__attribute__((destructor)) static void end(void) { assert(x == 1); }
int main(void) { return 0; }
";
    let chosen = "static int one(void) { return 1; }
static int (*choose(void))(void) { return one; }
int selected(void) __attribute__((ifunc(\"choose\")));
int main(void) { assert(selected() == 0); return 0; }
";
    let list = |name: &str| {
        format!("the section `{name}` has functions that run before `main` begins or after it has ended")
    };
    let ifunc = "which function `selected` is, is decided when the program starts (`ifunc`)".to_owned();
    for (program, why) in
        [(constructor, list(".init_array")), (destructor, list(".fini_array")), (chosen, ifunc)]
    {
        let scratch =
            Scratch::new("object-before-main").file("a.c", format!("#include <assert.h>\n{program}"));
        for build in ["gcc -O1", "clang -O1"] {
            compile(&scratch, build, "a.c", "a.o");
            scratch.run(&["check", "a.o"]).exits(2).complains(format!("error[object-file]: a.o: {why}\n..."));
        }
    }
}

/// Hand-written assembly may not say how long functions are, and compilers give them local names, too.
#[test]
fn functions_end_and_are_named_as_the_linker_sees_them() {
    let part = |name: &str, mine: &str, other: &str, result: &str| {
        format!(
            " .globl {name}\n .type {name}, @function\n{name}: movl $1, {mine}(%rip)\n mfence\n movl {other}(%rip), %eax\n \
             movl %eax, {result}(%rip)\n ret\n"
        )
    };
    let look = " .globl look\n .type look, @function\nlook: movl r0(%rip), %eax\n addl r1(%rip), %eax\n jne 1f\n ud2\n1: ret\n";
    let data = " .comm x, 4, 4\n .comm y, 4, 4\n .comm r0, 4, 4\n .comm r1, 4, 4\n";
    let text = format!(
        "{}{}{look} .set f.localalias, f\n{data}",
        part("f", "x", "y", "r0"),
        part("g", "y", "x", "r1")
    );
    let question = ["--thread", "f", "--thread", "g", "--final", "look"];
    let scratch = Scratch::new("object-without-sizes").file("broken.s", text.replace("mfence", "nop"));
    let scratch = scratch.file("a.s", text);
    compile(&scratch, "gcc", "a.s", "a.o");
    compile(&scratch, "gcc", "broken.s", "broken.o");
    for (file, exit) in [("a.s", 0), ("a.o", 0), ("broken.s", 1), ("broken.o", 1)] {
        let _ = scratch.run(&[&["check", "-q", "--no-races", file][..], &question].concat()).exits(exit);
    }
}

#[test]
fn fills_in_any_order_are_assumed_to_be_in_order() {
    let text = " .globl f\n .type f, @function\nf: leaq x(%rip), %rdi\n xorl %eax, %eax\n movl $2, %ecx\n rep stosl\n ret
 .size f, .-f\n .comm x, 8, 8\n";
    let scratch = Scratch::new("object-fill").file("a.s", text);
    scratch.run(&["check", "a.s", "--thread", "f"]).exits(0).prints(
        "safe  a.s: [..]\n...\nassuming: the stores of a `rep stos` are made in the order of their addresses\n...",
    );
}

/// A ticket lock in Rust, compiled by rustc.
#[test]
fn objects_of_rustc() {
    let lock = "use std::sync::atomic::{AtomicUsize, Ordering::*};
static NEXT: AtomicUsize = AtomicUsize::new(0);
static OWNER: AtomicUsize = AtomicUsize::new(0);
static mut COUNT: u32 = 0;
fn lock() { let me = NEXT.fetch_add(1, Relaxed); while OWNER.load(Acquire) != me {} }
fn unlock() { OWNER.store(OWNER.load(Relaxed) + 1, Release) }
#[no_mangle] pub extern \"C\" fn worker() { lock(); unsafe { COUNT += 1 }; unlock(); }
#[no_mangle] pub extern \"C\" fn look() { unsafe { assert!(COUNT == 2) } }
";
    let broken = lock.replace("while OWNER.load(Acquire) != me {}", "let _ = me;");
    let scratch = Scratch::new("object-rustc").file("lock.rs", lock).file("broken.rs", broken);
    for (file, level, exit) in [
        ("lock", "0", 0),
        ("lock", "1", 0),
        ("lock", "2", 0),
        ("lock", "3", 0),
        ("broken", "0", 1),
        ("broken", "2", 1),
    ] {
        let mut command = Command::new("rustc");
        command.args([
            "--crate-type=lib",
            "--emit=obj",
            "-Awarnings",
            "-C",
            &format!("opt-level={level}"),
            "-o",
        ]);
        command.arg(scratch.path("a.o")).arg(scratch.path(&format!("{file}.rs")));
        assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
        let check = ["check", "-q", "a.o", "--thread", "worker", "--thread", "worker", "--final", "look"];
        let printed = match exit {
            0 => "safe  a.o: free of deadlocks, all threads can always end\n",
            _ => "unsafe  a.o: the program panicked in look at line [..]\n",
        };
        scratch.run(&check).exits(exit).prints(printed);
    }
}
