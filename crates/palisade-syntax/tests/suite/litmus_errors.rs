//! The errors of invalid litmus tests, and where they point.

use crate::languages;

use palisade_base::Source;
use palisade_syntax::{Language, parse};

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    languages::check_errors(Language::Litmus, text, expected);
}

/// The same for the code of one thread on X86_64.
#[track_caller]
fn check_code(code: &str, expected: &[(&str, &str)]) {
    check(
        &format!("X86_64 t\n{{ uint64_t x; int y; 0:rdi=y; int t[2]; }}\nP0 ;\n{code} ;\nexists (x=1)"),
        expected,
    );
}

fn help(text: &str) -> String {
    languages::only_help(Language::Litmus, text)
}

const TOKEN: &str = "unexpected-token";
const END: &str = "unexpected-end";

/// Remarks of other tools come after the code. Inside the code, `<<` hides nothing.
#[test]
fn remarks_in_code() {
    for row in
        ["MOV [x],$1<<2", "MOV [x],$1 << >> | MOV [x],$2", "<< MOV [x],$1 >> MOV [x],$2", "MOV [x],<<1>>$1"]
    {
        let text = format!("X86 t\n{{}}\nP0 ;\n{row} ;\nexists (x=1)\n");
        assert!(parse(Language::Litmus, &Source::new("t.litmus", text)).is_err(), "{row}");
    }
}

/// An unfinished remark that hides the question is an error. After the question it is a warning.
#[test]
fn unfinished_remarks() {
    let test = |end: &str| format!("X86 t\n{{ x=0; }}\nP0 ;\nMOV [x],$1 ;\n{end}");
    check(&test("<<a exists (x=0)"), &[("unfinished-trailer", "<<")]);
    check(&test("<<a>> <<b>\nexists (x=0)"), &[("unfinished-trailer", "<<")]);
    for (end, warnings) in [
        ("exists (x=0) <<a", 1),
        ("exists (x=0) <<a>> <<b>", 1),
        ("exists (x=0) <<", 1),
        ("exists (x=0) <<a>> <<>>", 0),
        ("<<a>> exists (x=0)", 0),
    ] {
        let source = Source::new("t.litmus", test(end));
        let found = parse(Language::Litmus, &source).expect(end).warnings;
        assert!(found.iter().all(|warning| warning.id == "unfinished-trailer"), "{end}: {found:#?}");
        assert_eq!(found.len(), warnings, "{end}: {found:#?}");
    }
}

#[test]
fn all_errors_at_once() {
    check(
        "X86_64 t\n{ uint64_t x; unit64_t y; 7:rax=1; uint8_t z=300; }\nP0 | P1 ;\n\
         movq $1,(x) | movq (x),%rxa ;\nmvo $1,(x) | jne L9 ;\nmfence ;\nmovq $1,$2 | movl %rax,(x) ;\n\
         exists (5:rax=1 /\\ 0:rax=1 /\\ q=2)",
        &[
            ("unknown-type", "unit64_t"),
            ("unknown-thread", "7:rax"),
            ("constant-too-wide", "300"),
            ("unknown-register", "rxa"),
            ("unknown-instruction", "mvo"),
            ("unknown-label", "L9"),
            ("wrong-columns", "mfence ;"),
            ("bad-operand", "$2"),
            ("operand-size", "movl %rax,(x)"),
        ],
    );
    check(
        "X86 t {} P0 ; MOV EAX,[x] ; exists (5:EAX=1 /\\ y=2 /\\ 0:EAX=x /\\ 0:EAX=&z)",
        &[("unknown-thread", "5:EAX"), ("unknown-variable", "y"), ("unknown-variable", "z")],
    );
}

#[test]
fn headings() {
    check("", &[("empty-program", "")]);
    check("   \n (* only a comment *)\n", &[("empty-program", "")]);
    check("AArch64 t\n{}\nP0 ;\nexists true", &[("unsupported-architecture", "AArch64")]);
    check("X68 t\n{}\nP0 ;\nexists true", &[("unsupported-architecture", "X68")]);
    check("X86\n{}\nP0 ;\nmfence;\nexists true", &[("missing-name", "X86")]);
    check("X86 t", &[("missing-initial-state", "")]);
    check("X86 t\nP0 | P1 ;\n", &[("missing-initial-state", "P")]);
    check("X86 t \"no end", &[("unfinished-string", "\""), ("missing-initial-state", "")]);
    check("X86 t (* no end", &[("unfinished-comment", "(*"), ("missing-initial-state", "")]);
    check("X86 t {} P0; (* no end", &[("unfinished-comment", "(*")]);
    assert_eq!(help("X86_46 t"), "did you mean `X86_64`?");
    assert_eq!(help("PPC t"), "Palisade supports tests for X86 and X86_64");
}

#[test]
fn half_files() {
    check("X86 t\n{", &[(END, ""), (END, "")]);
    check("X86 t\n{ x=", &[(END, ""), (END, ""), (END, "")]);
    check("X86 t\n{ x=0; }", &[(END, "")]);
    check("X86 t\n{ x=0; }\nP0", &[(END, "")]);
    check("X86 t\n{ x=0; }\nP0 |", &[(END, "")]);
    check("X86 t\n{ x=0; }\nP0 ;\nMOV [x]", &[("wrong-operands", "MOV [x]"), (END, "")]);
    check("X86 t\n{ x=0; }\nP0 ;\nMOV [x],$1 ;\nexists", &[(END, "")]);
    check("X86 t\n{ x=0; }\nP0 ;\nMOV [x],$1 ;\nexists (x=1", &[(END, "")]);
    check("X86 t\n{ x=0; }\nP0 ;\nMOV [x],$1 ;\nexists (x=", &[(END, "")]);
}

#[test]
fn initial_states() {
    let check = |init: &str, expected: &[(&str, &str)]| {
        check(&format!("X86 t\n{{{init}}}\nP0 ;\nMOV EAX,[x];\nexists true"), expected);
    };
    check("x=0; x=1;", &[("defined-twice", "x=1")]);
    check("int x; int64_t x;", &[("defined-twice", "int64_t")]);
    check("0:EAX=1; 0:EAX=2;", &[("defined-twice", "0:EAX=2")]);
    check("0:RAX=1;", &[("unknown-register", "RAX")]);
    check("0:EXA=1;", &[("unknown-register", "EXA")]);
    check("int x 1;", &[(TOKEN, "1")]);
    check("int 1;", &[(TOKEN, "1")]);
    check("= 1; y=;", &[(TOKEN, "="), (TOKEN, ";")]);
    check("int8_t x=200; int8_t y=256;", &[("constant-too-wide", "256")]);
    check("x=0x1g;", &[("bad-number", "0x1g")]);
    check("x=99999999999999999999;", &[("bad-number", "99999999999999999999")]);
    check("int t[2]={1};", &[("bad-array", "int t[2]={1}")]);
    check("int t[0];", &[("bad-array", "int t[0]")]);
    check("int t[9999999];", &[("bad-number", "9999999")]);
    check("flaot y;", &[("unknown-type", "flaot")]);
    check("x=?;", &[("unexpected-character", "?"), (TOKEN, ";")]);
}

#[test]
fn operands() {
    check_code("movq $1", &[("wrong-operands", "movq $1")]);
    check_code("mfence %rax", &[("wrong-operands", "mfence %rax")]);
    check_code("incq %rax,%rbx", &[("wrong-operands", "incq %rax,%rbx")]);
    check_code("movq (x),(x)", &[("bad-operand", "(x)")]);
    check_code("movq $1,", &[(TOKEN, ";")]);
    check_code("movq $1,(x", &[(TOKEN, ";")]);
    check_code("movq $1 (x)", &[(TOKEN, "(")]);
    check_code("movq $1,[5]", &[("bad-operand", "[5]")]);
    check_code("movq (%rax,%rbx,3),%rcx", &[("bad-operand", "3")]);
    check_code("xaddq %rax,$1\nmovq $1,(x)", &[(TOKEN, "movq")]);
    check_code("leaq %rbx,%rax", &[("bad-operand", "%rbx")]);
    check_code("shlq %cl,%rax", &[("bad-operand", "%cl")]);
    check_code("shlb %cl,%al", &[("bad-operand", "%cl")]);
    check_code("btsq $64,(x)", &[("bad-operand", "$64")]);
    check_code("movl %rax,%ebx", &[("operand-size", "movl %rax,%ebx")]);
    check_code("movzbl (x),%rax", &[("operand-size", "movzbl (x),%rax")]);
    check_code("movb $256,%al", &[("constant-too-wide", "$256")]);
    check_code("setne %rax", &[("operand-size", "setne %rax")]);
    check_code("movq %rzx,(x)", &[("unknown-register", "rzx")]);
    check_code("movq $1,(x) ; movq (x),$1", &[("mixed-notation", "movq (x),$1"), ("bad-operand", "$1")]);
}

#[test]
fn instructions() {
    check_code("clflush (x)", &[("unsupported-instruction", "clflush")]);
    check_code("movntiq %rax,(x)", &[("unsupported-instruction", "movntiq")]);
    check_code("pushq %rax", &[("unsupported-instruction", "pushq")]);
    check_code("jp L", &[("unsupported-instruction", "jp")]);
    check_code("mfnce", &[("unknown-instruction", "mfnce")]);
    check_code("lock movq $1,(x)", &[("bad-lock", "lock")]);
    check_code("lock addq $1,%rax", &[("bad-lock", "lock")]);
    check_code("lock mfence", &[("bad-lock", "lock")]);
    check_code("lock", &[(TOKEN, "exists")]);
    check_code("shlq $1,(x)\n; jb L ; L:", &[("unsupported-flag", "shlq $1,(x)")]);
    assert_eq!(help("X86 t {} P0; mfnece; exists true"), "did you mean `mfence`?");
}

#[test]
fn labels() {
    check_code("jmp L", &[("unknown-label", "L")]);
    check_code("jmp", &[("bad-operand", "jmp")]);
    check_code("jmp *%rax", &[(TOKEN, "*")]);
    check_code("jmp %rax", &[("bad-operand", "jmp %rax")]);
    check_code("L: mfence ; L: mfence", &[("defined-twice", "L")]);
    check("X86 t {} P0 | P1 ; L: MFENCE | JMP L ; exists true", &[("unknown-label", "L")]);
    assert_eq!(help("X86 t {} P0 ; loop0: MFENCE ; JMP lop0 ; exists true"), "did you mean `loop0`?");
}

#[test]
fn columns() {
    check("X86 t {} P0 | P1 ; MFENCE ; exists true", &[("wrong-columns", "MFENCE ;")]);
    check("X86 t {} P0 ; MFENCE | MFENCE ; exists true", &[("wrong-columns", "MFENCE | MFENCE ;")]);
    check("X86 t {} P0 ; MFENCE | ; exists true", &[("wrong-columns", "MFENCE | ;")]);
    check("X86 t {} P0 | P0 ; MFENCE | MFENCE ; exists true", &[("defined-twice", "P0")]);
    check("X86 t {} Q0 ; MFENCE ; exists true", &[(TOKEN, "Q0")]);
    check("X86 t {} P0 MFENCE ; exists true", &[(TOKEN, "MFENCE")]);
    check("X86 t {} P0 ; MFENCE exists true", &[(TOKEN, "exists")]);
    check("X86 t {} P0 ; MOV [x],$1 exists true", &[(TOKEN, "exists")]);
    check("X86 t {} exists true", &[(TOKEN, "exists")]);
}

#[test]
fn memory() {
    check_code("movl $1,(x)", &[("mixed-size", "movl $1,(x)")]);
    check_code("movq $1,(y)", &[("mixed-size", "(y)")]);
    check_code("lock addl $1,(x)", &[("mixed-size", "lock addl $1,(x)")]);
    check_code("movq (%rdi),%rax", &[("mixed-size", "(%rdi)")]);
    check_code("movl (%rsi),%eax", &[("not-an-address", "(%rsi)")]);
    check_code("movl 8(%rdi),%eax", &[("outside-variable", "8(%rdi)")]);
    check_code("movl t+8,%eax", &[("outside-variable", "t+8")]);
    check_code("movl t+2,%eax", &[("outside-variable", "t+2")]);
    check_code("addq $8,%rdi", &[("address-arithmetic", "addq $8,%rdi")]);
    check_code("movq $x,%rax ; notq %rax", &[("address-arithmetic", "notq %rax")]);
}

#[test]
fn questions() {
    let check = |question: &str, expected: &[(&str, &str)]| {
        check(&format!("X86 t\n{{x=0; int t[2];}}\nP0 ;\nMOV EAX,[x];\n{question}"), expected);
    };
    check("exist (x=1)", &[("unknown-instruction", "exist")]);
    check("exists (x=1 & 0:EAX=1)", &[(TOKEN, "&")]);
    check("exists (x=1) (x=2)", &[(TOKEN, "(")]);
    check("exists x", &[(END, "")]);
    check("exists (x=1))", &[(TOKEN, ")")]);
    check("exists (1=x)", &[(TOKEN, "1")]);
    check("~forall x=1", &[(TOKEN, "forall")]);
    check("exists 0:EBC=1", &[("unknown-register", "EBC")]);
    check("exists xx=1", &[("unknown-variable", "xx")]);
    check("exists t[2]=1", &[("outside-variable", "t[2]")]);
    check("exists x[0]=1", &[("outside-variable", "x[0]")]);
    check("exists t={1}", &[("bad-array", "t={1}")]);
    check("exists x=4294967296", &[("constant-too-wide", "4294967296")]);
    check("exists fault(P0,x)", &[("unsupported-condition", "fault")]);
    check("observed x=1;", &[(TOKEN, "observed")]);
    check("locations [x;y;] exists x=1", &[("unknown-variable", "y")]);
    check("locations x exists x=1", &[(TOKEN, "x")]);
    check("filter (x=1 exists x=1", &[(TOKEN, "exists")]);
    check(&format!("exists {}x=1{}", "(".repeat(1000), ")".repeat(1000)), &[("too-deep", "(")]);
    check(&format!("exists {}x=1", "~".repeat(1000)), &[("too-deep", "~")]);
    check(&format!("exists {}x=1", "x=1 => ".repeat(1000)), &[("too-deep", "x")]);
}

#[test]
fn long_conditions_are_fine() {
    let parts = "x=1 /\\ ".repeat(20_000);
    let text = format!("X86 t {{x=0;}} P0 ; MOV EAX,[x]; exists {parts} x=2");
    assert!(parse(Language::Litmus, &Source::new("long.litmus", text)).is_ok());
}

#[test]
fn binary_files() {
    check("\u{0}\u{1}\u{2}", &[("unsupported-architecture", "\u{0}\u{1}\u{2}")]);
    check(
        "X86 t {\u{0}} P0; \u{fffd}\u{fffd} ; exists true",
        &[("unexpected-character", "\u{0}"), ("unexpected-character", "\u{fffd}\u{fffd}")],
    );
}
