//! The printer is a fixed point: its output parses as the same program, which prints as the same text.

use crate::common;

use palisade_base::Source;
use palisade_program::print::print;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_syntax::limits::{MAX_EXPR_DEPTH, MAX_NESTING};
use palisade_syntax::{Language, parse, read};
use proptest::prelude::*;

fn reread(text: &str) -> Program {
    match read(Language::Pal, &Source::new("printed.pal", text)) {
        Ok(parsed) => {
            assert!(parsed.warnings.is_empty(), "{:#?}\n{text}", parsed.warnings);
            parsed.program
        }
        Err(diagnostics) => panic!("the output does not parse: {diagnostics:#?}\n{text}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn printed_programs_parse_as_the_same_program(program in common::program()) {
        let text = print(&program);
        let again = reread(&text);
        prop_assert_eq!(&program, &again, "{}", text);
        prop_assert_eq!(text, print(&again));
    }
}

/// Parses the text, prints it, and compares.
fn check(written: &str, printed: &str) {
    assert_eq!(print(&reread(written)), printed);
}

#[test]
fn a_lock_prints_as_a_person_would_write_it() {
    let peterson = "\
shared flag[2]: bool;
shared turn: 0..1 = *;

process P(i: 0..1) {
    loop {
        flag[i] = true;
        turn = 1 - i;
        while flag[1 - i] && turn == 1 - i {}
    cs: skip;
        flag[i] = false;
    }
}

forbid P(0)@cs && P(1)@cs;
";
    check(peterson, peterson);
}

#[test]
fn every_construct_prints_in_one_way() {
    let all = "\
shared x, y, a[4]: 0..3 = 1;
shared b[3]: bool = [true, *, 0 == 1];
shared p: int blocking = &x;
shared q = &a[2];

proc swap(from, to: 0..3 blocking) -> bool {
    let old: 0..3 = *;
    if cas(*from, old, to) {
        return true;
    } else if xchg(x, fetch_add(y, 1)) == 0 {
        goto out;
    } else {
        fetch_or(a[old], ~0);
    }
out:
    return -1 - - -2 == !(x == 1);
}

process Main(i: 0..1, j: bool)[2] {
    spawn Helper(i, j);
    swap(&x, 3);
a1: b1: x = (x + 1) % 4;
    choose {
        sfence;
    } or {} or {
        fence;
    }
    atomic {
        await *p == 0 || x == 0 && y == 0;
        assume((x | y) & 3 != 0);
    critical: skip;
    }
}

process Helper(i: 0..1, me: bool) on spawn {
    while true {
        {
            break;
        }
        continue;
    }
    return;
}

forbid count(Main@critical) >= 2 || Main[1]@end && Main(1, 0)@a1;
final x == 1 && Main(0, 0).old != 3;
";
    // Two labels on one line get lines of their own.
    let printed = all.replace("a1: b1: x", "a1:\nb1: x");
    check(all, &printed);
    check(&printed, &printed);
}

#[test]
fn alternative_spellings_give_the_same_program() {
    check("process P() { l: }", "process P {\nl:  skip;\n}\n");
    check("process P { assert x; spawn T; }", "process P {\n    assert(x);\n    spawn T();\n}\n");
    check("const N = 3; shared x: 0..N-1; process P[N] {}", "shared x: 0..2;\n\nprocess P[3] {}\n");
    check("const N = -3; final x == 2 - N;", "final x == 2 - -3;\n");
    check("final (((a + (b))) * c) == 0x10;", "final (a + b) * c == 16;\n");
    check(
        "process P { if a {} else { if b { skip; } } }",
        "process P {\n    if a {} else if b {\n        skip;\n    }\n}\n",
    );
    check("process P { let b: bool = any(bool); }", "process P {\n    let b: bool = *;\n}\n");
    check("shared x; shared y: int;", "shared x, y;\n");
}

/// All code that walks programs is recursive, so the deepest programs must not exhaust the stack anywhere.
#[test]
fn programs_as_deep_as_allowed_are_printed_validated_and_lowered() {
    // The process body and the expression or statement itself are levels too.
    let deep = MAX_NESTING as usize - 3;
    let high = MAX_EXPR_DEPTH as usize - 2;
    let bodies = [
        format!("x = {}x;", "- ".repeat(deep)),
        format!("x = {}x;", "!".repeat(deep)),
        format!("x = {}x{};", "1 - (".repeat(deep), ")".repeat(deep)),
        format!("x = {}x{};", "x && (x || x || (".repeat(deep / 2), "))".repeat(deep / 2)),
        format!("x = {}x{};", "a[".repeat(deep), "]".repeat(deep)),
        format!("x = {}x{};", "f(".repeat(deep), ")".repeat(deep)),
        format!("x = {}N{};", "1 - (".repeat(deep), ")".repeat(deep)),
        format!("x = {}x;", "x + ".repeat(high)),
        format!("x = {}x;", "x || ".repeat(high)),
        format!("await {}x;", "x && ".repeat(high)),
        format!("{} skip; {}", "loop {".repeat(deep), "}".repeat(deep)),
        format!("{} skip; {}", "atomic {".repeat(deep), "}".repeat(deep)),
        format!("{} {{}}", "if x {} else ".repeat(deep)),
    ];
    for body in bodies {
        let text =
            format!("const N = -1; shared x, a[1]; proc f(n) -> int {{ return n; }} process P {{ {body} }}");
        let parsed = parse(Language::Pal, &Source::new("deep.pal", &*text))
            .unwrap_or_else(|e| panic!("{text}: {e:#?}"));
        let printed = print(&parsed.program);
        assert!(reread(&printed) == parsed.program, "{text}\n{printed}");
        let system = lower(&parsed.program, Instantiation { any: 1, every: None });
        assert_eq!(system.instances.len(), 1);
    }
}

#[test]
fn long_conditions_are_broken_at_their_operators() {
    let long = "first_register == 1 && second_register == 2";
    check(
        &format!("final !({long}) || ({long}) && ({long}) || {long};"),
        &format!("final !({long})\n    || {long} && ({long})\n    || {long};\n"),
    );
}
