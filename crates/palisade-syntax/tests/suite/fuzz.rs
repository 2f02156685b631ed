//! For any input, the parsers return a program or errors that point into the text.

use crate::common;

use palisade_base::Source;
use palisade_program::print::{RESERVED, print};
use palisade_syntax::limits::MAX_ERRORS;
use palisade_syntax::{Language, parse, read};
use proptest::collection::vec;
use proptest::prelude::*;

/// Parses and validates the text in every language. The result must be well-formed.
fn check(text: &str) {
    let source = Source::new("fuzz", text);
    for language in Language::ALL {
        for answer in [read(language, &source), parse(language, &source)] {
            let diagnostics = match answer {
                Ok(parsed) => {
                    assert!(parsed.warnings.iter().all(|d| !d.is_error()), "{language}: {text:?}");
                    parsed.warnings
                }
                Err(diagnostics) => {
                    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
                    assert!(
                        (1..=MAX_ERRORS + 1).contains(&errors),
                        "{language}: {errors} errors for {text:?}"
                    );
                    diagnostics
                }
            };
            for diagnostic in diagnostics {
                assert!(!diagnostic.labels.is_empty(), "{language}: {diagnostic:?} has no span in {text:?}");
                for label in &diagnostic.labels {
                    let range = label.span.range();
                    assert!(text.get(range).is_some(), "{language}: {diagnostic:?} points outside {text:?}");
                }
            }
        }
    }
}

/// Tokens of all languages, in any order.
fn token_soup() -> impl Strategy<Value = String> {
    const SIGNS: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ";",
        ",",
        ":",
        ".",
        "..",
        "@",
        "->",
        "=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "&",
        "|",
        "^",
        "<<",
        ">>",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "!",
        "~",
        "++",
        "+=",
        "/*",
        "*/",
        "//",
        "\n",
        "0",
        "1",
        "7",
        "0x1f",
        "9223372036854775808",
        "x",
        "P",
        "cs",
        "on",
        "count",
        "end",
        "#",
        "\"",
        ":=",
        "/\\",
        "\\/",
        "forbidden",
        "data",
        "text",
        "write:",
        "read:",
        "either",
        "locked",
        "X86",
        "exists",
        "P0",
        "MOV",
        "EAX",
        "$1",
        "MFENCE",
        "program",
        "thread",
        "initial",
        "transition",
    ];
    let token =
        prop_oneof![(0..SIGNS.len()).prop_map(|i| SIGNS[i]), (0..RESERVED.len()).prop_map(|i| RESERVED[i])];
    vec(token, 0..60).prop_map(|tokens| tokens.join(" "))
}

/// A damaged program.
fn damaged() -> impl Strategy<Value = String> {
    #[derive(Clone, Debug)]
    enum Damage {
        Truncate(usize),
        Flip(usize, u8),
        Delete(usize),
        Duplicate(usize),
    }
    let at = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    let damage = prop_oneof![
        at().prop_map(Damage::Truncate),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        at().prop_map(Damage::Delete),
        at().prop_map(Damage::Duplicate),
    ];
    (common::program(), vec(damage, 1..4)).prop_map(|(program, damages)| {
        let mut text = print(&program).into_bytes();
        for damage in damages {
            let mut lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
            let line = |at: usize| at % lines.len();
            text = match damage {
                Damage::Truncate(at) => text[..at % (text.len() + 1)].to_vec(),
                Damage::Flip(at, byte) => {
                    let mut flipped = text.clone();
                    let len = flipped.len().max(1);
                    flipped.get_mut(at % len).into_iter().for_each(|b| *b ^= byte);
                    flipped
                }
                Damage::Delete(at) => {
                    lines.remove(line(at));
                    lines.join(&b'\n')
                }
                Damage::Duplicate(at) => {
                    lines.insert(line(at), lines[line(at)]);
                    lines.join(&b'\n')
                }
            };
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_text(text in "\\PC{0,100}") {
        check(&text);
    }

    #[test]
    fn random_tokens(text in token_soup()) {
        check(&text);
        check(&format!("process P {{ {text} }}"));
    }

    #[test]
    fn damaged_programs(text in damaged()) {
        check(&text);
    }
}

/// Texts that are deep, long or unusual enough to break a careless parser.
#[test]
fn hostile_texts() {
    const MANY: usize = 100_000;
    let many = |text: &str| text.repeat(MANY);
    let bodies = [
        many("{"),
        many("}"),
        many("{}"),
        many("("),
        many("x = ("),
        format!("x = {}1{};", many("("), many(")")),
        format!("x = {}1;", many("-")),
        format!("x = {}1;", many("- ")),
        format!("x = {}p;", many("*")),
        format!("x = {}p;", many("& ")),
        format!("x = {}1;", many("1 + ")),
        format!("x = {}1;", many("1 == ")),
        format!("x = {}1{};", many("a["), many("]")),
        format!("x = {}1{};", many("f("), many(")")),
        format!("x = {}1{};", many("1 || (1 && (1 | (1 + (1 * ("), many(")))))")),
        many("if x {} else "),
        many("if x {"),
        many("while x {"),
        many("choose {} or {} or "),
        many("choose { "),
        many("atomic {"),
        many("l: "),
        many("l: ;"),
        many(";"),
        many("x = 1;\n"),
        many("x = = 1;\n"),
        many("\""),
        many("#"),
        many("é"),
        many("/*"),
        many("/* */"),
        many("process "),
        many("shared x;"),
        "9".repeat(MANY),
        "x".repeat(MANY),
    ];
    for body in bodies {
        check(&body);
        check(&format!("process P {{ {body} }}"));
    }
    check(&format!("shared {}x = [{}0];", many("x, "), many("*, ")));
    check(&format!("const N = {}1;", many("1 + ")));
    check(&format!("forbid {}1;", many("P(0)@cs && ")));
    check("");
    check("\0");
    check("\u{feff}");
}
