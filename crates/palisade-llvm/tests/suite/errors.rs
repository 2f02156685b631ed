//! What is not understood is rejected by name, with its place. No text makes the reader panic.

use crate::common::{describe, function_with, try_read};
use palisade_base::{Diagnostic, Source};

/// The errors for a text, with line and column.
fn errors(text: &str) -> String {
    match try_read(text) {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(errors) => describe(&Source::new("test.ll", text), &errors),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(errors(text).trim_end(), expected, "{text}");
}

/// An error in line 5, the first line of a function.
#[track_caller]
fn check_line(line: &str, expected: &str) {
    check(&function_with(&format!("{line}\nret void")), &format!("5:{expected}"));
}

#[test]
fn unknown_constructs_are_named() {
    check_line("%r = frobnicate i32 %x", "6 unsupported-ir: the instruction `frobnicate` is not understood");
    check_line(
        "cleanupret from %x unwind to caller",
        "1 unsupported-ir: the instruction `cleanupret` is not understood",
    );
    check_line(
        "%r = load i32, ptr %p sometimes",
        "23 unsupported-ir: `sometimes` at the end of an instruction is not understood",
    );
    check_line(
        "%r = load atomic i32, ptr %p sometimes, align 4",
        "30 unsupported-ir: the ordering `sometimes` is not understood",
    );
    check_line(
        "fence syncscope(\"agent\") seq_cst",
        "17 unsupported-ir: the scope `agent` is not understood",
    );
    check_line(
        "%r = atomicrmw frob ptr %p, i32 1 seq_cst",
        "16 unsupported-ir: the operation `frob` of `atomicrmw` is not understood",
    );
    check_line("%r = icmp almost i32 %x, %y", "11 unsupported-ir: the comparison `almost` is not understood");
    check_line("%r = add exact i32 %x, %y", "10 unsupported-ir: `add` with this flag is not understood");
    check_line("%r = alloca inalloca i32", "13 unsupported-ir: `alloca` with `inalloca` is not understood");
    check_line(
        "call void %p(ptr inalloca(i32) %p)",
        "18 unsupported-ir: the attribute `inalloca` is not understood",
    );
    check_line("call void asm frob \"\", \"\"()", "15 unsupported-ir: `asm` with `frob` is not understood");
    check_line(
        "store i32 1, ptr %p, align 4, !mmra !{}",
        "31 unsupported-ir: the attachment `!mmra` is not understood",
    );
    check_line(
        "store i32 1, ptr dso_local_equivalent @g",
        "18 unsupported-ir: the constant `dso_local_equivalent` is not understood",
    );
    check_line("%r = load frob i32, ptr %p", "11 unsupported-ir: the type `frob` is not understood");
    check("@x = frob global i32 0", "1:6 unsupported-ir: `frob` in the definition of `@x` is not understood");
    check(
        "@x = global i32 0, frob",
        "1:20 unsupported-ir: `frob` in the definition of a variable is not understood",
    );
    check(
        "@x = ifunc i32 (), ptr @y",
        "1:6 unsupported-ir: `ifunc` in the definition of `@x` is not understood",
    );
    check("@x = global x86_amx undef", "1:13 unsupported-ir: the type `x86_amx` is not understood");
    check(
        "@x = global target(\"spirv.Image\") undef",
        "1:13 unsupported-ir: the type `target` is not understood",
    );
    check(
        "define frob void @f() {\n ret void\n}",
        "1:8 unsupported-ir: `frob` in the heading of a function is not understood",
    );
    check(
        "declare void @f() gc \"x\"",
        "1:19 unsupported-ir: `gc` in the heading of a function is not understood",
    );
    check("declare void @f()\nfrob", "2:1 unsupported-ir: `frob` outside a function is not understood");
    check("target frob = \"\"", "1:8 unsupported-ir: `target` with `frob` is not understood");
    check(
        "target datalayout = \"e-z5\"",
        "1:21 unsupported-ir: the data layout has a part that is not understood: `z5`",
    );
    check("@\"\\FF\" = global i8 0", "1:1 unsupported-ir: a name that is not UTF-8 is not understood");
}

#[test]
fn errors_come_with_help_and_the_line_of_the_source_program() {
    let text = "define void @f() !dbg !1 {\n  frobnicate i32 1, !dbg !2\n  ret void\n}\n\
                !1 = distinct !DISubprogram(name: \"f\", file: !3)\n!2 = !DILocation(line: 7, scope: !1)\n\
                !3 = !DIFile(filename: \"lock.c\", directory: \"/\")\n";
    let errors = try_read(text).expect_err("the instruction is unknown");
    let [Diagnostic { labels, help: Some(help), .. }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(labels[0].text, "compiled from lock.c:7");
    assert!(help.contains("clang 14 to 19"), "{help}");
}

/// One run reports everything that is not understood.
#[test]
fn all_errors_are_reported() {
    let text = function_with(
        "%a = frob i32 1\nswitch i32 %zap 5, label %b [\n i32 1, label %b\n i32 2, label %b\n]\nb:\n%d = grob i32 %a\nret void",
    ) + "@x = frob global i32 0\n@y = global i32 @\n";
    let expected = "5:6 unsupported-ir: the instruction `frob` is not understood\n\
                    6:17 ir-syntax: expected `,`, found `5`\n\
                    11:6 unsupported-ir: the instruction `grob` is not understood\n\
                    14:6 unsupported-ir: `frob` in the definition of `@x` is not understood\n\
                    15:17 ir-syntax: expected a value, found `@`\n";
    assert_eq!(errors(&text), expected);
    let many = "frob\n".repeat(70);
    let found = try_read(&many).expect_err("none is right");
    assert_eq!(found.len(), 1, "words that start no item are one error");
    let many = "@x = frob\n".repeat(70);
    let found = try_read(&many).expect_err("none is right");
    assert_eq!(found.len(), 51);
    assert_eq!(found[50].message, "20 more errors from here on");
}

#[test]
fn names_are_defined_once() {
    check("@x = global ptr @y", "1:17 undefined-name: `@y` is used but never defined");
    check("@x = global %y zeroinitializer", "1:13 undefined-name: the type `%y` is used but never defined");
    check("@x = global i32 0, !dbg !7", "1:25 undefined-name: the metadata `!7` is used but never defined");
    check("declare void @f() #5", "1:19 undefined-name: the attributes `#5` are used but never defined");
    check("@x = global i32 0\n@x = global i32 1", "2:1 duplicate-name: `@x` is defined twice");
    check("%x = type { i8 }\n%x = type { i8 }", "2:1 duplicate-name: the type `%x` is defined twice");
    check("!0 = !{}\n!0 = !{}", "2:1 duplicate-name: `!0` is defined twice");
    check(
        "@x = global ptr blockaddress(@f, %no)\ndefine void @f() {\nret void\n}",
        "1:17 undefined-name: there is no block `%no` in this function",
    );
    check_line("%r = add i32 %x, %no", "18 undefined-name: the value `%no` is used but never defined");
    check_line("%x = add i32 %x, 1", "1 duplicate-name: `%x` is defined twice");
    check_line("br label %no", "10 undefined-name: the block `%no` is used but never defined");
}

#[test]
fn blocks_end_with_their_terminator() {
    check("define void @f() {\n}", "2:1 ir-syntax: expected an instruction, found `}`");
    check(
        "define void @f() {\n  fence seq_cst\n}",
        "3:1 ir-syntax: expected an instruction that ends the block, found `}`",
    );
    check(
        "define void @f() {\na:\n  fence seq_cst\nb:\n  ret void\n}",
        "4:1 ir-syntax: expected an instruction that ends the block, found `b:`",
    );
    check(
        "define void @f() {\n  ret void\n",
        "3:1 ir-syntax: expected `}` at the end of the function, found the end of the text",
    );
}

#[test]
fn operands_have_the_right_types() {
    let mismatch = |line: &str| {
        let found = errors(&function_with(&format!("{line}\nret void")));
        assert!(found.contains(" type-mismatch: "), "{line}\n{found}");
    };
    mismatch("%r = add i32 %c, 1");
    mismatch("%r = add ptr %p, %p");
    mismatch("%r = fadd i32 %x, %y");
    mismatch("%r = add float 1.0, 2.0");
    mismatch("store i32 1, i32 %x");
    mismatch("%r = load void, ptr %p");
    mismatch("%r = load i32, i64 5");
    mismatch("br i32 %x, label %entry, label %entry");
    mismatch("ret i32 1");
    mismatch("%r = trunc i32 %x to i64");
    mismatch("%r = zext i32 %x to i32");
    mismatch("%r = bitcast i32 %x to i64");
    mismatch("%r = bitcast ptr %p to i64");
    mismatch("%r = extractvalue { i32, i32 } undef, 2");
    mismatch("%r = insertvalue { i32, i32 } undef, i8 1, 0");
    mismatch("%r = getelementptr { i32, i32 }, ptr %p, i64 0, i32 %x");
    mismatch("%r = getelementptr { i32, i32 }, ptr %p, i64 0, i32 2");
    mismatch("%r = getelementptr i32, i32 %x, i64 0");
    mismatch("%r = select i32 %x, i32 1, i32 2");
    mismatch("%r = cmpxchg ptr %p, i32 1, i64 2 seq_cst seq_cst");
    mismatch("%r = atomicrmw add ptr %p, ptr null seq_cst");
    mismatch("%r = call i32 (i32) %p(ptr %p)");
    mismatch("%r = call i32 (i32, ...) @h()");
    mismatch("switch ptr %p, label %entry []");
    mismatch("store i32 null, ptr %p");
    mismatch("store ptr 5, ptr %p");
    mismatch("%r = add i32 %later, 1\n%later = add i64 1, 1");
    check(
        "@x = global [2 x i8] c\"abc\"",
        "1:22 type-mismatch: these 3 bytes are not a value of type `[2 x i8]`",
    );
    check(
        "@x = global [2 x i8] [i8 1]",
        "1:22 type-mismatch: these elements are not a value of type `[2 x i8]`",
    );
    check(
        "@x = global { i8 } { i9 1 }",
        "1:20 type-mismatch: these elements are not a value of type `{ i8 }`",
    );
    check("%a = type { %a }\n@x = global %a zeroinitializer", "2:1 type-mismatch: `%a` has no size");
    check(
        "@x = global i32 0\n@y = global i8* @x",
        "2:17 type-mismatch: `@x` holds a `i32` but is used as `i8*`",
    );
    check(
        "define i32 @f(i8* %p) {\n%r = load i32, i8* %p\nret i32 %r\n}",
        "2:22 type-mismatch: a pointer of type `i8*` does not point to a `i32`",
    );
}

#[test]
fn orderings_that_do_not_exist_are_rejected() {
    for line in [
        "%r = load atomic i32, ptr %p release, align 4",
        "%r = load atomic i32, ptr %p acq_rel, align 4",
        "store atomic i32 1, ptr %p acquire, align 4",
        "fence monotonic",
        "%r = cmpxchg ptr %p, i32 1, i32 2 seq_cst release",
        "%r = atomicrmw add ptr %p, i32 1 unordered",
    ] {
        let found = errors(&function_with(&format!("{line}\nret void")));
        assert!(found.contains(" cannot have "), "{line}\n{found}");
    }
}

#[test]
fn numbers_fit() {
    check("@x = global i8 256", "1:16 ir-number: `256` does not fit into i8");
    check("@x = global i8 -129", "1:16 ir-number: `-129` does not fit into i8");
    check("@x = global i0 0", "1:15 ir-number: integer types have 1 to 8388608 bits");
    check("@x = global i99999999999 0", "1:25 ir-number: integer types have 1 to 8388608 bits");
    check("@x = global [-1 x i8] undef", "1:14 ir-number: `-1` is not a number of elements");
    check(
        "@x = global i32 0, align 99999999999999999999",
        "1:26 ir-number: `99999999999999999999` is not an alignment",
    );
    let long = format!("@x = global i128 {}", "9".repeat(1_000_000));
    assert!(errors(&long).starts_with("1:18 ir-number: `999999"), "the message is short");
    assert!(errors(&long).len() < 200);
    let wide = format!("@x = global i256 {}", "9".repeat(60));
    assert!(errors(&wide).contains("more than 128 bits"));
    assert!(errors("@99999999999 = global i8 0").contains("`99999999999`"));
}

#[test]
fn bitcode_and_garbage() {
    check("BC\u{fffd}\u{fffd}5\u{14}", "1:1 ir-bitcode: this is LLVM bitcode, not text");
    check("\u{7f}ELF\u{2}\u{1}", "1:1 unsupported-ir: `\\u{7f}` outside a function is not understood");
    check("int main(void) { return 0; }", "1:1 unsupported-ir: `int` outside a function is not understood");
    check("@x = global [2 x i8] c\"ab", "1:22 ir-syntax: expected a value, found a string without an end");
}

/// Brackets nested a million deep, of all kinds.
#[test]
fn deep_nesting_ends() {
    const MANY: usize = 1_000_000;
    for open in ["[1 x ", "{ ", "<{ ", "<1 x ", "i8 (", "(", "["] {
        assert!(try_read(&format!("@x = global {}", open.repeat(MANY))).is_err());
        assert!(try_read(&format!("%x = type {}", open.repeat(MANY))).is_err());
        assert!(try_read(&function_with(&format!("%r = load {}", open.repeat(MANY)))).is_err());
    }
    for open in ["bitcast (i8 ", "[i8 ", "{ i8 ", "getelementptr (i8, ptr ", "add (i8 ", "splat (i8 "] {
        assert!(try_read(&format!("@x = global i8 {}", open.repeat(MANY))).is_err());
    }
    for open in ["!{", "!DIX(", "!DIX(a: ", "(", "!DIX(a: ("] {
        assert!(try_read(&format!("!0 = {}", open.repeat(MANY))).is_err());
    }
    assert!(errors(&format!("@x = external global i8{}", "*".repeat(MANY))).contains("nested"));
    assert!(errors(&format!("@x = external global i8{}", " ()".repeat(MANY))).contains("nested"));
    assert!(errors(&format!("attributes #0 = {{ x{}", "(".repeat(MANY))).contains("never closed"));
    // Structs may contain one another to any depth.
    let chain: String = (0..MANY / 10).map(|at| format!("%{at} = type {{ i8, %{} }}\n", at + 1)).collect();
    let text = format!("{chain}%{} = type {{ i8 }}\n@x = global %0 zeroinitializer\n", MANY / 10);
    let module = try_read(&text).expect("the text is right");
    assert_eq!(module.global("x").and_then(|x| module.layouts.size(x.ty)), Some(MANY as u64 / 10 + 1));
}

/// Texts of a few megabytes that would take a careless reader quadratic time.
#[test]
fn long_texts_end() {
    const MANY: usize = 300_000;
    for text in
        ["a.", "5-", "$", "%", "\"", "c\"", "!", "#", "^", "%\"", "-", "@x = ", ";\n", "é", "x\n", "5:\n"]
    {
        let _ = try_read(&text.repeat(MANY));
        let _ = try_read(&function_with(&text.repeat(MANY)));
    }
}
