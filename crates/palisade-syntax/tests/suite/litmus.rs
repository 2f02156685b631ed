//! The translation of litmus tests into `.pal`, and which of their outcomes are reachable.

use crate::blocks;
use crate::languages::{self, lines};

use palisade_memory::{Machine, Model};
use palisade_program::print::print;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, Parsed};
use std::collections::HashSet;

fn parsed(text: &str) -> Parsed {
    languages::parsed(Language::Litmus, text)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    languages::check_translation(Language::Litmus, text, expected);
}

/// The statements of a test with one thread and untyped variables, without the declarations.
fn statements(arch: &str, init: &str, code: &str) -> Vec<String> {
    let rows: String = code.lines().map(|row| format!("{row} ;\n")).collect();
    let printed = print(&parsed(&format!("{arch} test\n{{{init}}}\nP0 ;\n{rows}forall true")).program);
    let body = printed.split_once("process P0 {").expect("there is one process").1;
    let body = body.split_once("final").expect("there is a property").0;
    let mut found: Vec<String> = lines(body).into_iter().filter(|line| !line.starts_with("let ")).collect();
    assert_eq!(found.pop().as_deref(), Some("}"));
    found
}

/// AT&T notation on X86_64.
#[track_caller]
fn check_code(code: &str, expected: &[&str]) {
    assert_eq!(statements("X86_64", "", code), expected, "{code}");
}

/// Intel notation.
#[track_caller]
fn check_intel(code: &str, expected: &[&str]) {
    assert_eq!(statements("X86_64", "", code), expected, "{code}");
}

/// Whether the question of a test is answered with a bad state, by visiting every state.
fn is_reachable(text: &str, model: Model) -> bool {
    let parsed = parsed(text);
    let system = lower(&parsed.program, Instantiation { any: 1, every: None });
    let machine = Machine::new(&system, model);
    let mut seen: HashSet<_> = HashSet::new();
    let mut waiting: Vec<_> = machine.initial_states().collect();
    let mut found = false;
    while let Some(state) = waiting.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        assert!(state.fault.is_none(), "{:?}\n{text}", state.fault);
        found |= machine.violation(&state).is_some();
        waiting.extend(machine.successors(&state).into_iter().map(|successor| successor.state));
    }
    found
}

#[track_caller]
fn check_reachable(text: &str, sc: bool, tso: bool) {
    assert_eq!(is_reachable(text, Model::Sc), sc, "sc\n{text}");
    assert_eq!(is_reachable(text, Model::Tso), tso, "tso\n{text}");
}

#[test]
fn a_whole_test() {
    check(
        r#"X86_64 SB+mfence
"two threads"
Cycle=Fre PodWR Fre MFencedWR
(* A comment (* in a comment *) *)
{ uint64_t y; uint64_t x = 0; uint64_t 0:rax; }
 P0            | P1            ;
 movq $1,(x)   | movq $1,(y)   ;
 movq (y),%rax | mfence        ;
               | movq (x),%rax ;
locations [x; y; 0:rax;]
exists (0:rax=0 /\ 1:rax=0)
"#,
        "shared y, x;
         process P0 { let rax = 0; x = 1; rax = y; }
         process P1 { let rax = 0; y = 1; fence; rax = x; }
         final !(P0.rax == 0 && P1.rax == 0);"
            .replace("{ let", "{\nlet")
            .replace("; ", ";\n")
            .replace("; }", ";\n}")
            .as_str(),
    );
    check(
        "X86 MP
         { x=0; y=0; }
         P0         | P1         ;
         MOV [x],$1 | MOV EAX,[y] ;
         MOV [y],$1 | MOV EBX,[x] ;
         ~exists (1:EAX=1 /\\ 1:EBX=0)",
        "shared x, y;
         process P0 {
         x = 1;
         y = 1;
         }
         process P1 {
         let EAX = 0;
         let EBX = 0;
         EAX = y;
         EBX = x;
         }
         final !(P1.EAX == 1 && P1.EBX == 0);",
    );
}

#[test]
fn moves() {
    check_code("movl $1,(x)\nmovl (x),%eax\nmovl %eax,(y)", &["x = 1;", "eax = x;", "y = eax;"]);
    check_code("movq $-1,x\nmovq x(%rip),%rax", &["x = -1;", "rax = x;"]);
    check_code("movb $255,(x)\nmovb (x),%al", &["x = -1;", "al = x;"]);
    check_intel("mov dword ptr [x], 1\nmov eax, [x]", &["x = 1;", "eax = x;"]);
    check_intel("MOV [x],$1\nMOV EAX,[x]\nMOV EBX,EAX", &["x = 1;", "EAX = x;", "EBX = EAX;"]);
    check_intel("mov qword ptr [x], -2\nmov r8, x", &["x = -2;", "r8 = x;"]);
    check_code("movzbl (x),%eax", &["eax = x;"]);
    check_code("movslq (x),%rax\nmovl $-1,(x)", &["rax = x;", "x = -1;"]);
    check_code("movzwl (x),%eax\nmovw $-1,(x)", &["eax = x & 65535;", "x = -1;"]);
    check_code("xchgl %eax,(x)", &["eax = xchg(x, eax);"]);
    check_code("xchgl (x),%eax\nlock xchgl (x),%eax", &["eax = xchg(x, eax);"; 2]);
    check_code("uxchl (x),%eax", &["tmp = x;", "x = eax;", "eax = tmp;"]);
    check_code("xchg %rax,%rbx", &["tmp = rbx;", "rbx = rax;", "rax = tmp;"]);
}

#[test]
fn parts_of_registers() {
    // Only 32 bits are used.
    check_code("movl $-1,%eax\nmovl %eax,(x)", &["eax = -1;", "x = eax;"]);
    // A 32-bit write clears the upper half.
    check_code("movl $-1,%eax\nmovq %rax,(x)", &["rax = -1 & 4294967295;", "x = rax;"]);
    check_code("movl $1,%eax\nmovq %rax,(x)", &["rax = 1;", "x = rax;"]);
    // An 8- or 16-bit write keeps the rest.
    check_code("movl $512,%eax\nmovb $1,%al", &["eax = 512;", "eax = eax & -256 | 1;"]);
    check_code("movb $1,%al\nmovb $2,%ah", &["ax = 1;", "ax = ax & -65281 | 2 << 8;"]);
    check_code("movl (x),%eax\nsete %al", &["eax = x;", "eax = ZF;"]);
}

#[test]
fn fences_and_instructions_without_effect() {
    check_code("mfence\nsfence\nlfence\npause\nnop\nnopl (x)", &["fence;", "sfence;"]);
    check_code("L0: nop\nL1: L2: mfence\nL3:", &["L0:", "L1:", "L2: fence;", "L3: skip;"]);
}

#[test]
fn changes_of_memory() {
    check_code("addl $1,(x)", &["x = x + 1;"]);
    check_code("incl (x)\ndecl (x)", &["x = x + 1;", "x = x - 1;"]);
    check_code("lock addl $2,(x)\nlock; subl $1,(x)", &["fetch_add(x, 2);", "fetch_sub(x, 1);"]);
    check_code("lock incl (x)\nlock decl (x)", &["fetch_add(x, 1);", "fetch_sub(x, 1);"]);
    check_code(
        "lock andl $1,(x)\nlock orl $2,(x)\nlock xorl $3,(x)",
        &["fetch_and(x, 1);", "fetch_or(x, 2);", "fetch_xor(x, 3);"],
    );
    check_code("lock notl (x)", &["fetch_xor(x, -1);"]);
    check_code("lock negl (x)", &["atomic {", "x = 0 - x;", "}"]);
    check_code("lock xaddl %eax,(x)", &["eax = fetch_add(x, eax);"]);
    check_code(
        "lock btsl $0,(x)\njb L\nL:",
        &["tmp = fetch_or(x, 1);", "CF = tmp >> 0 & 1;", "if CF {", "goto L;", "}", "L: skip;"],
    );
    // Where a value can leave the range, the wrap-around is explicit.
    check_code(
        "movl $2147483647,(x)\nlock incl (x)",
        &[
            "x = 2147483647;",
            "atomic {",
            "tmp = x;",
            "x = (tmp + 1 & 4294967295 ^ 2147483648) - 2147483648;",
            "}",
        ],
    );
    check_code(
        "movl $-2147483648,%eax\nnegl %eax",
        &["eax = -2147483648;", "eax = (0 - eax & 4294967295 ^ 2147483648) - 2147483648;"],
    );
}

#[test]
fn arithmetic_on_registers() {
    check_code("xorl %eax,%eax\nsubl %ebx,%ebx", &["eax = 0;", "ebx = 0;"]);
    check_code(
        "movl $5,%eax\nshll $2,%eax\nshrl %eax\nsarl $1,%eax",
        &["eax = 5;", "eax = eax << 2;", "eax = eax >> 1;", "eax = eax >> 1;"],
    );
    check_intel(
        "mov eax, 1\nadd eax, eax\nor eax, [x]\nnot eax",
        &["eax = 1;", "eax = eax + eax;", "eax = eax | x;", "eax = ~eax;"],
    );
    check_code("lea 4(%rax),%rbx", &["rbx = 4 + rax;"]);
}

#[test]
fn comparisons_become_conditions() {
    check_code("L: cmpl $1,(x)\njne L", &["L: if x != 1 {", "goto L;", "}"]);
    check_intel("L: cmp [x], 1\njl L", &["L: if x < 1 {", "goto L;", "}"]);
    check_code("L: testl %eax,%eax\njz L", &["L: if eax == 0 {", "goto L;", "}"]);
    check_code(
        "L: movl $-1,%eax\ncmpl %eax,%ebx\njb L",
        &["L: eax = -1;", "if ebx < eax & 4294967295 {", "goto L;", "}"],
    );
    check_code("cmpl $1,(x)\nsete %al", &["al = x == 1;"]);
    check_code("decl %eax\njne L\nL:", &["eax = eax - 1;", "if eax != 0 {", "goto L;", "}", "L: skip;"]);
    // Flags that are used later are kept in registers.
    check_code(
        "cmpl $1,(x)\nmovl $2,(y)\nje L\nL:",
        &["ZF = x == 1;", "y = 2;", "if ZF {", "goto L;", "}", "L: skip;"],
    );
    check_code("testl %eax,%eax\ncmovel (x),%ebx", &["ZF = eax == 0;", "if ZF {", "ebx = x;", "}"]);
    // Flags that are never used are not.
    check_code("cmpl $1,(x)\naddl $1,%eax", &["eax = eax + 1;"]);
    check_code("jmp L\nL: mfence", &["goto L;", "L: fence;"]);
}

#[test]
fn compare_and_exchange() {
    // The accumulator is not used afterwards.
    check_code("lock cmpxchgl %ebx,(x)", &["cas(x, eax, ebx);"]);
    check_code("lock cmpxchgl (x),%ebx", &["cas(x, eax, ebx);"]);
    check_intel(
        "L: mov eax, 0\nlock cmpxchg [x], ebx\njne L",
        &["L: eax = 0;", "if !cas(x, eax, ebx) {", "goto L;", "}"],
    );
    check_code(
        "lock cmpxchgl %ebx,(x)\nmovl %eax,(y)",
        &["atomic {", "if x == eax {", "x = ebx;", "} else {", "eax = x;", "}", "}", "y = eax;"],
    );
    check_code(
        "cmpxchgl %ebx,(x)",
        &["tmp = x;", "if tmp == eax {", "x = ebx;", "} else {", "eax = tmp;", "}"],
    );
}

#[test]
fn addresses() {
    check(
        "X86_64 addresses
         { int x = 1; int y; int t[2] = {3, 4}; int *p = &t[1]; q = x; 0:rdi = x; 0:rsi = t; }
         P0               ;
         movl $0,(x)      ;
         movl (%rdi),%eax ;
         movl $5,4(%rsi)  ;
         movq (p),%rbx    ;
         movl $6,(%rbx)   ;
         movl t+4,%ecx    ;
         movl (t),%edx    ;
         leaq t(%rip),%r8 ;
         movl (x),%r9d    ;
         movl (%r8,%r9,4),%r10d ;
         movl 4(%r8,%r9,8),%r10d ;
         movl (x),%r11d ;
         movl %r11d,(x) ;
         movl t(,%r11,4),%r10d ;
         movl t(%r11),%r10d ;
         forall (0:rdi=x /\\ t={3, 6} /\\ [t] = 3 /\\ t[1] = 6 /\\ p = &t[1] /\\ q != t)",
        "shared x = 1;
         shared y;
         shared t[2] = [3, 4];
         shared p = &t[1];
         shared q = &x;
         process P0 {
         let eax = 0;
         let rdi = &x;
         let rsi = &t[0];
         let rbx = 0;
         let ecx = 0;
         let edx = 0;
         let r8 = 0;
         let r9 = 0;
         let r10d = 0;
         let r11 = 0;
         x = 0;
         eax = *rdi;
         *(rsi + 1) = 5;
         rbx = p;
         *rbx = 6;
         ecx = t[1];
         edx = t[0];
         r8 = &t[0];
         r9 = x;
         r10d = *(r8 + r9);
         r10d = *(r8 + (1 + (r9 << 1)));
         r11 = x;
         x = r11;
         r10d = t[r11];
         assert(r11 % 4 == 0);
         r10d = t[r11 / 4];
         }
         final P0.rdi == &x && (t[0] == 3 && t[1] == 6) && t[0] == 3 && t[1] == 6 && p == &t[1] && q != &t[0];",
    );
}

#[test]
fn questions() {
    let property = |question: &str| {
        let text = format!(
            "X86 q\n{{ x=1; int8_t b=-1; 0:EAX=2; }}\nP0 | P1;\nMOV EAX,[x] | MOVSX EBX, BYTE PTR [b];\n{question}"
        );
        let printed = print(&parsed(&text).program);
        printed.split_once("final ").map(|(_, property)| property.trim().trim_end_matches(';').to_owned())
    };
    let check = |question: &str, expected: &str| {
        assert_eq!(property(question).as_deref(), Some(expected), "{question}")
    };
    check("exists (x=2)", "!(x == 2)");
    check("~exists x=2", "!(x == 2)");
    check("~ exists (x=2)", "!(x == 2)");
    check("not exists (x=2)", "!(x == 2)");
    check("final (x=2)", "!(x == 2)");
    check("(x=2)", "!(x == 2)");
    check("forall (x=2)", "x == 2");
    check("forall (true)", "true");
    check("forall x=1 /\\ 0:EAX=2 \\/ ~x=3", "x == 1 && P0.EAX == 2 || !(x == 3)");
    check("forall (x=1 \\/ x=2) /\\ [x] == 1", "(x == 1 || x == 2) && x == 1");
    check("forall not (x=1 => x != 2)", "!(!(x == 1) || x != 2)");
    check("forall x=1 /\\ x=2 => x=3", "x == 1 && (!(x == 2) || x == 3)");
    check("forall 0:EAX=1:EBX", "P0.EAX == P1.EBX");
    check("forall P0:EAX <> 0x10", "P0.EAX != 16");
    check("forall [x]=[b]", "x == b");
    // Numbers have the width of the variable, signed or unsigned.
    check("forall b=255", "b == -1");
    check("forall b=-1", "b == -1");
    check("forall x=4294967295", "x == -1");
    check("filter x=1 exists x=2", "!(x == 1 && x == 2)");
    check("filter x=1\nforall x=2", "!(x == 1) || x == 2");
    check("locations [x; 0:EAX; b;] exists x=2", "!(x == 2)");
    // Remarks of other tools.
    check("exists (x=2) <<Orig=PodWR Fre>>", "!(x == 2)");
    check("exists x=2\n<<\n\"quotes\", (* no comment, \u{e9} ` $1 < 2 > 1 exists x=3\n>>\n", "!(x == 2)");
    check("exists x=2 << without end", "!(x == 2)");
    check("<<a>> <<b>> exists x=2 <<c>> // d\n<<e>>", "!(x == 2)");
    assert_eq!(property("<<x>>"), None);
    check("exists x=2 with tso: ~exists", "!(x == 2)");
    assert_eq!(property(""), None);
    assert_eq!(property("locations [x;]"), None);
}

#[test]
fn names_are_changed_where_pal_needs_it() {
    check(
        "X86 names
         { }
         P0              ;
         loop: MOV [end],$1 ;
         MOV [while],$2  ;
         MOV [P0],$3     ;
         MOV [.x],$4     ;
         JMP loop        ;
         exists (true)",
        "shared end_2, while_2, P0_2, _x;
         process P0 {
         loop_2:
         end_2 = 1;
         while_2 = 2;
         P0_2 = 3;
         _x = 4;
         goto loop_2;
         }
         final !true;",
    );
}

#[test]
fn headings() {
    let check = |text: &str| _ = parsed(text);
    check("X86 a {} P0; mfence; exists true");
    check("X86_64 a+b-c/d.e (* c *)\n\"d\"\nKey=value {\nX\n{\n}\nP0 ;\n mfence ;\nexists (true)\n");
    check("\n\n(* c *) X86 a \"one\ntwo\"\n\n{ ; }\n ;P0; // c\n # c\nmfence ;\nexists\ntrue;");
    check("X86 a\r\n{\r\n}\r\nP0;\r\nmfence;\r\nexists true\r\n");
}

#[test]
fn suspicious_tests_get_warnings() {
    let check = |init: &str, code: &str, question: &str, expected: &[&str]| {
        let text = format!("X86 w\n{{{init}}}\nP0;\n{code};\n{question}");
        let found: Vec<&str> = parsed(&text).warnings.iter().map(|warning| warning.id).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("x=0;", "MOV [x],$1", "exists x=1", &[]);
    check("", "MOV [y],$1", "exists y=1", &[]);
    check("x=0;", "MOV [y],$1", "exists y=1", &["undeclared-variable"]);
    check("x=0;", "MOV EAX,[x]", "exists 0:EBX=1", &["never-set"]);
    check("x=0; 0:EBX=1;", "MOV EAX,[x]", "exists 0:EBX=1", &[]);
    check("x=0;", "MOV EAX,[x]", "", &["no-condition"]);
}

#[test]
fn store_buffering() {
    let test = |middle: &str| {
        format!(
            "X86_64 SB {{}} P0 | P1 ; movl $1,(x) | movl $1,(y) ; {middle} | {middle} ; \
             movl (y),%eax | movl (x),%eax ; exists (0:eax=0 /\\ 1:eax=0)"
        )
    };
    check_reachable(&test("nop"), false, true);
    check_reachable(&test("lfence"), false, true);
    check_reachable(&test("sfence"), false, true);
    check_reachable(&test("mfence"), false, false);
    check_reachable(&test("lock addl $0,(z)"), false, false);
    check_reachable(&test("addl $0,(z)"), false, true);
    check_reachable(&test("xchgl %ebx,(z)"), false, false);
    check_reachable(&test("uxchl %ebx,(z)"), false, true);
    check_reachable(&test("lock cmpxchgl %ebx,(z)"), false, false);
    check_reachable(&test("lock xaddl %ebx,(z)"), false, false);
    check_reachable(&test("lock btsl $3,(z)"), false, false);
}

#[test]
fn locked_changes_are_one_step() {
    let test = |lock: &str, change: &str, sum: u32| {
        format!("X86_64 sum {{}} P0 | P1 ; {lock} {change} | {lock} {change} ; exists (x={sum})")
    };
    check_reachable(&test("", "incl (x)", 1), true, true);
    check_reachable(&test("lock", "incl (x)", 1), false, false);
    check_reachable(&test("lock", "incl (x)", 2), true, true);
    check_reachable(&test("", "notb (x)", 255), true, true);
    check_reachable(&test("lock", "notb (x)", 255), false, false);
    check_reachable(&test("lock", "addb $128,(x)", 0), true, true);
    check_reachable(&test("lock", "addb $128,(x)", 128), false, false);
    // A spin lock: both threads take it, one after the other.
    let spin = |lock: &str| {
        format!(
            "X86_64 spin {{ 0:ebx=1; 1:ebx=1; }} P0 | P1 ; L: movl $0,%eax | L: movl $0,%eax ; \
             {lock} cmpxchgl %ebx,(m) | {lock} cmpxchgl %ebx,(m) ; jne L | jne L ; \
             incl (x) | incl (x) ; movl $0,(m) | movl $0,(m) ; exists (x=1)"
        )
    };
    check_reachable(&spin("lock"), false, false);
    check_reachable(&spin(""), true, true);
}

#[test]
fn loops_end_as_on_the_machine() {
    let test = |code: &str, outcome: &str| {
        let text = format!("X86_64 loop {{}} P0 ; {code} ; forall ({outcome})");
        check_reachable(&text, false, false);
    };
    test("movb $250,%al ; L: incb %al ; jne L", "0:al=0");
    test("movl $5,%ecx ; L: addl %ecx,%eax ; decl %ecx ; jg L", "0:eax=15 /\\ 0:ecx=0");
    test("movl $5,%ecx ; L: addq $2,(x) ; subl $1,%ecx ; jns L", "x=12 /\\ 0:ecx=-1");
    test("movq $1,%rax ; L: shlq $8,%rax ; jne L", "0:rax=0");
    test("movq $1,%rax ; L: addq %rax,%rax ; jns L", "0:rax=0x8000000000000000");
    test("L: lock addb $100,(x) ; jno L", "x=200");
    test("L: lock incb (x) ; cmpb $-1,(x) ; jne L", "x=255");
}

#[test]
fn the_reference_shows_the_translation_of_tests() {
    let examples = blocks::examples(include_str!("../../../../docs/litmus.md"), "litmus");
    assert!(examples.len() >= 4);
    for (test, program) in examples {
        assert_eq!(print(&parsed(&test).program), program, "{test}");
        assert!(parsed(&test).warnings.iter().all(|warning| warning.id == "undeclared-variable"), "{test}");
    }
}
