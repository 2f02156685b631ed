//! The errors of invalid `.rmm` files, and where they point.

use crate::languages;

use palisade_base::Source;
use palisade_syntax::{Language, parse};

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    languages::check_errors(Language::Rmm, text, expected);
}

/// The same for the statements of a process with a variable `x`, its own variable `f` and a register `$r`.
/// There is one more process.
#[track_caller]
fn check_statements(text: &str, expected: &[(&str, &str)]) {
    let file = format!(
        "forbidden A * data x = 0 : [0:1] process data f = 0 : [0:1] registers $r = 0 : [0:1] text A: nop; {text} \
         process text nop"
    );
    check(&file, expected);
}

const TOKEN: &str = "unexpected-token";

#[test]
fn all_errors_at_once() {
    check(
        "forbidden CS CS CS; CS X\n\
         data x = 2 : [0:1]\n y = 0 : [0:1] y = 1 : [0:1]\n\
         process registers $r = 0 : [0:1] text\n\
         CS: wirte: x := 1;\n read: $s := y;\n goto L;\n write: z := 1\n\
         process text CS: nop; CS: nop\n",
        &[
            ("wrong-process-count", "CS CS CS"),
            ("unknown-label", "X"),
            ("outside-domain", "2"),
            ("duplicate-name", "y"),
            (TOKEN, "wirte"),
            ("unknown-register", "$s"),
            ("unknown-label", "L"),
            ("unknown-variable", "z"),
            ("duplicate-name", "CS"),
        ],
    );
}

#[test]
fn sections() {
    check("", &[(TOKEN, "")]);
    check("process text nop", &[(TOKEN, "process")]);
    check("forbidden A", &[(TOKEN, "")]);
    check("forbidden process text A: nop", &[(TOKEN, "process")]);
    check("forbidden A; process text A: nop", &[(TOKEN, "process")]);
    check("forbidden A data process text A: nop", &[(TOKEN, "process")]);
    check("forbidden A data x = 0 data y = 0 process text A: nop", &[(TOKEN, "data")]);
    check("forbidden A process", &[(TOKEN, "")]);
    check("forbidden A process registers text A: nop", &[(TOKEN, "text")]);
    check("forbidden A process text", &[(TOKEN, "")]);
    check("forbidden A process A: nop", &[(TOKEN, "A")]);
    check("forbidden A process() text A: nop", &[(TOKEN, ")")]);
    check("forbidden A process(0) text A: nop", &[("empty-process", "0")]);
    check("forbidden A process(99999) text A: nop", &[("too-many-processes", "process(99999)")]);
    check(
        "forbidden A process(99999999999999999999) text A: nop",
        &[("number-too-large", "99999999999999999999")],
    );
    check("forbidden A process data x = 0 data y = 0 text A: nop", &[("duplicate-section", "data")]);
    check("forbidden A process text A: nop data x = 0", &[(TOKEN, "data"), (TOKEN, "x")]);
    check("forbidden A predicates process text A: nop", &[(TOKEN, "process")]);
    check("forbidden A predicates $r = 0 $s = 0 process text A: nop", &[(TOKEN, "$s")]);
}

#[test]
fn forbidden_combinations() {
    let check = |combination: &str, expected: &[(&str, &str)]| {
        check(&format!("forbidden {combination} process(2) text CS: nop; END: nop"), expected);
    };
    check("CS", &[("wrong-process-count", "CS")]);
    check("CS CS *", &[("wrong-process-count", "CS CS *")]);
    check("CS Cs", &[("unknown-label", "Cs")]);
    check("* *", &[("forbids-everything", "* *")]);
    check("CS CS,", &[(TOKEN, ",")]);
    check(
        "CS CS; * X; * *; CS",
        &[("unknown-label", "X"), ("forbids-everything", "* *"), ("wrong-process-count", "CS")],
    );
}

#[test]
fn declarations() {
    let check = |declarations: &str, expected: &[(&str, &str)]| {
        check(&format!("forbidden A data {declarations} process text A: nop"), expected);
    };
    check("x", &[(TOKEN, "process")]);
    check("x = ", &[(TOKEN, "process")]);
    check("x = y", &[(TOKEN, "y")]);
    check("x = 0 : [0:", &[(TOKEN, "process")]);
    check("x = 0 : [1:0]", &[("empty-domain", "[1:0]")]);
    check("x = 0 : N", &[(TOKEN, "N")]);
    check("x = 5 : [0:1] y = -1 : [0:1]", &[("outside-domain", "5"), ("outside-domain", "-1")]);
    check("x = * : Z", &[("any-without-domain", "x")]);
    check("x = 0; y = 0", &[(TOKEN, ";")]);
    check("x : 0 y = 0 : [0:1", &[(TOKEN, ":"), (TOKEN, "process")]);
    check("$r = 0", &[(TOKEN, "$r")]);
    check("x = 99999999999999999999", &[("number-too-large", "99999999999999999999")]);
}

#[test]
fn statements() {
    check_statements("x := 1", &[(TOKEN, "x")]);
    check_statements("$r = 1", &[(TOKEN, "=")]);
    check_statements("read x = 1; write: x = 1; read: x := 1", &[(TOKEN, "x"), (TOKEN, "="), (TOKEN, ":=")]);
    check_statements("read: $r = x", &[(TOKEN, "=")]);
    check_statements("write: $r := 1", &[(TOKEN, "$r")]);
    check_statements("write: x := x", &[(TOKEN, "x")]);
    check_statements("nop nop", &[(TOKEN, "nop")]);
    check_statements("nop;", &[("stray-semicolon", ";")]);
    check_statements("cas(x,0)", &[(TOKEN, ")")]);
    check_statements("slocked{ write: x := 1 }", &[(TOKEN, "{")]);
    check_statements("if $r then nop", &[(TOKEN, "then")]);
    check_statements("if $r = 0 nop", &[(TOKEN, "nop")]);
    check_statements("while ($r = 0) do nop", &[(TOKEN, "=")]);
    check_statements("assume $r = 0", &[(TOKEN, "$r")]);
    check_statements("assume: 1 = 2 = 3", &[(TOKEN, "=")]);
    check_statements("goto 1", &[(TOKEN, "1")]);
    check_statements("either{ nop or }; nop", &[(TOKEN, "}")]);
    check_statements("either nop", &[(TOKEN, "nop")]);
    check_statements("{ nop; fence", &[(TOKEN, "process")]);
    check_statements("nop }; fence; fense", &[(TOKEN, "}"), (TOKEN, "fense")]);
    check_statements("call(x); nop", &[(TOKEN, "call")]);
    check_statements("write: f[me] := 1", &[(TOKEN, "me")]);
    check_statements("write: f[my := 1", &[(TOKEN, ":=")]);
    check_statements("A: B: nop", &[("duplicate-name", "A"), (TOKEN, "B")]);
}

#[test]
fn names() {
    check_statements("$s := $t + $r", &[("unknown-register", "$s"), ("unknown-register", "$t")]);
    check_statements("read: y = 0", &[("unknown-variable", "y")]);
    check_statements("read: f = 0", &[("unknown-variable", "f")]);
    check_statements("read: x[my] = 0", &[("unknown-variable", "x[my]")]);
    check_statements("read: f[0] = 0", &[("unknown-variable", "f[0]")]);
    check_statements("read: f[1] = 0", &[("no-such-process", "f[1]")]);
    check_statements("read: g[0] = 0", &[("unknown-variable", "g[0]")]);
    check_statements("read: [1] = 0", &[("invalid-pointer", "[1]")]);
    check_statements("read: [$r+1] = 0", &[("invalid-pointer", "[$r+1]")]);
    check_statements("read: [$s] = 0", &[("unknown-register", "$s")]);
    check_statements("goto B", &[("unknown-label", "B")]);
    check_statements("A: nop", &[("duplicate-name", "A")]);
    check("forbidden A process registers $r = 0 $r = 1 text A: $r := 0", &[("duplicate-name", "$r")]);
    check("forbidden A process data f = 0 f = 1 text A: nop", &[("duplicate-name", "f")]);
    check("forbidden A process text A: read: [0] = 0", &[("invalid-pointer", "[0]")]);
    check("forbidden A process registers $r = * text A: $r := $r + 1", &[("any-without-domain", "$r")]);
}

#[test]
fn locked_blocks() {
    check_statements("locked{ B: read: x = 0; write: x := 1 }", &[("label-in-locked-block", "B")]);
    check_statements("locked{ write: x := 1; goto A }", &[("not-in-locked-block", "goto A")]);
    check_statements("locked{ if $r = 0 then write: x := 1 }", &[("not-in-locked-block", "if $r = 0 then")]);
    check_statements("locked{ nop or {nop; fence} }", &[("not-in-locked-block", "fence")]);
    check_statements("locked{ either{ nop or nop } }", &[("not-in-locked-block", "either")]);
    check_statements("locked{ syncwr: x := 1 }", &[("not-in-locked-block", "syncwr: x := 1")]);
}

#[test]
fn characters() {
    check("forbidden A process text A: nop /* never ends", &[("unterminated-comment", "/*")]);
    check("forbidden A process text A: nop // comment", &[("unexpected-character", "//")]);
    check("forbidden A process text A: nop; assume: ! true", &[("unexpected-character", "!")]);
    check("forbidden A process text A: nop \u{0}\u{1}é", &[("unexpected-character", "\u{0}\u{1}é")]);
}

#[test]
fn macros() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        check(&format!("forbidden A data x = 0 : [0:1] {text}"), expected);
    };
    check("macro m(v) write: x := v endmacro process text A: m()", &[("wrong-arity", "m")]);
    check("macro m() write: y := 1 endmacro process text A: m(); m()", &[("unknown-variable", "y")]);
    check("macro m(v) write: v := 1 endmacro process text A: m(y)", &[("unknown-variable", "v")]);
    check("macro m() nop process text A: m()", &[("unterminated-macro", "macro")]);
    check("process text A: m()", &[(TOKEN, "m")]);
}

/// A message about the body of a macro also points at the call.
#[test]
fn errors_in_macros_show_the_call() {
    let text = "forbidden A macro inner(v) read: v = 0 endmacro macro outer(v) nop; inner(v) endmacro \
                process text A: outer(y)";
    let source = Source::new("test.rmm", text);
    let errors = parse(Language::Rmm, &source).expect_err("y is not declared");
    let places: Vec<(&str, &str)> =
        errors[0].labels.iter().map(|label| (source.slice(label.span), label.text.as_str())).collect();
    assert_eq!(places, [("v", ""), ("inner", "in this call"), ("outer", "in this call")]);
    assert!(errors[0].message.contains("`y`"), "{}", errors[0].message);
}

#[test]
fn help() {
    let check = |statement: &str, expected: &str| {
        let file =
            format!("forbidden A data flag = 0 : [0:1] process registers $tmp = 0 text A: {statement}");
        let errors = parse(Language::Rmm, &Source::new("test.rmm", file)).expect_err(statement);
        assert_eq!(errors[0].help.as_deref(), Some(expected), "{statement}");
    };
    check("raed: flag = 1", "did you mean `read`?");
    check("nop; wirte: flag := 1", "did you mean `write`?");
    check("nop; locked wirte: flag := 1", "put the alternatives in braces: `{ … or … }`");
    check("write: flga := 1", "did you mean `flag`?");
    check("$tpm := 1", "did you mean `$tmp`?");
    check("tmp := 1", "to write to memory, use `write: tmp := …`; a register is called `$tmp`");
    check(
        "write: flag := flag",
        "expressions can contain only registers; load the variable first: `read: $flag := flag`",
    );
    check("goto a", "did you mean `A`?");
    check("write: flag[my] := 1", "`flag` is a global variable; write it without brackets");
    check("$other := 1", "declare it in the `registers` section of the process");
}
