//! Structs, arrays of arrays and private arrays: what they are read as, and what is refused.

use palisade_base::{Source, Span};
use palisade_program::print::print;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_syntax::names::{SymbolKind, rename, symbols};
use palisade_syntax::{Language, format_pal, parse};

fn program(text: &str) -> Program {
    let source = Source::new("test.pal", text);
    parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}")).program
}

/// Both texts are the same program.
#[track_caller]
fn check(written: &str, lowered: &str) {
    let (written, lowered) = (program(written), program(lowered));
    assert_eq!(written, lowered, "\n{}\n{}", print(&written), print(&lowered));
    // The printed form is read as the same program.
    assert_eq!(program(&print(&written)), written);
}

const QUEUE: &str = "\
struct Slot {
    value: 0..7 = 3,
    used[2]: bool,
}
struct Queue { head: 0..3, slot[4]: Slot } // nested

shared queue, other: Queue;
shared m[2][3]: 0..5 = [[0, 1, 2], [3, 4, 5]];
private mine[3]: 0..2;

process P(i: 0..1) {
    for j in 0..2 {
        m[i][j] = m[1 - i][j] + 1;
    }
    queue.slot[queue.head].value = 7;
    let k: 0..1 = m[0][0] % 2;
    if queue.slot[m[0][1]].used[k] {
        cas(other.slot[0].value, 3, &m[1][2]);
    }
    mine[1] = 2;
    mine[i] = m[i][0];
    assert(mine[i] == 2);
}

forbid m[1][2] == 0 && other.slot[3].used[1];
";

#[test]
fn parts_are_variables() {
    let head = "\
shared `queue.head`: 0..3;
shared `queue.slot[].value`[4]: 0..7 = 3;
shared `queue.slot[].used[2]`[8]: bool;
shared `other.head`: 0..3;
shared `other.slot[].value`[4]: 0..7 = 3;
shared `other.slot[].used[2]`[8]: bool;
shared `m[][3]`[6]: 0..5 = [0, 1, 2, 3, 4, 5];
private `mine[0]`, `mine[1]`, `mine[2]`: 0..2;
process P(i: 0..1) {
    for j in 0..2 {
        `m[][3]`[i * 3 + j] = `m[][3]`[(1 - i) * 3 + j] + 1;
    }
    `queue.slot[].value`[`queue.head`] = 7;
    let k: 0..1 = `m[][3]`[0] % 2;
    if `queue.slot[].used[2]`[`m[][3]`[1] * 2 + k] {
        cas(`other.slot[].value`[0], 3, &`m[][3]`[5]);
    }
    `mine[1]` = 2;
    {
        let `mine[i] (1)`: 0..2 = `m[][3]`[i * 3 + 0];
        let `index of mine[i] (1)`: 0..1 = i;
        if `index of mine[i] (1)` == 0 { `mine[0]` = `mine[i] (1)`; }
        if `index of mine[i] (1)` == 1 { `mine[1]` = `mine[i] (1)`; }
    }
    assert((i == 0) * `mine[0]` + (i == 1) * `mine[1]` == 2);
}
forbid `m[][3]`[5] == 0 && `other.slot[].used[2]`[7];
";
    check(QUEUE, head);
    // Runs show the cells as they are written.
    let system = lower(&program(QUEUE), Instantiation { any: 1, every: None });
    let names: Vec<&str> = system.cells.iter().map(|cell| cell.name.as_str()).collect();
    for name in ["queue.head", "queue.slot[3].value", "other.slot[2].used[1]", "m[0][0]", "m[1][2]"] {
        assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{name}: {names:?}");
    }
    // One dimension at the end needs no pattern.
    check(
        "struct S { a[3]: bool }\nshared s: S;\nprocess P { s.a[2] = true; }\n",
        "shared `s.a`[3]: bool;\nprocess P { `s.a`[2] = true; }\n",
    );
    // A private struct; the first index of a shared array may be anything.
    check(
        "struct S { a: bool, b }\nprivate s: S;\nshared t[2]: S, x;\nprocess P { s.a = true; s.b = t[x + 5].b; }\n"
            .replace(", x;", ";\nshared x;")
            .as_str(),
        "private `s.a`: bool;\nprivate `s.b`;\nshared `t[].a`[2]: bool;\nshared `t[].b`[2];\nshared x;\n\
         process P { `s.a` = true; `s.b` = `t[].b`[x + 5]; }\n",
    );
}

/// Inner indices that may be out of range are checked when they are evaluated.
#[test]
fn inner_indices_are_checked() {
    check(
        "shared m[2][3]: 0..5; shared x: 0..5; process P { let k = 2; m[k][k] = 1; m[x][x] = m[1][x % 3]; }",
        "shared `m[][3]`[6]: 0..5; shared x: 0..5; process P { let k = 2; \
         `m[][3]`[k * 3 + (&`m[][3]`[k * 2] - &`m[][3]`[0]) / 2] = 1; \
         `m[][3]`[x * 3 + (&`m[][3]`[x * 2] - &`m[][3]`[0]) / 2] = `m[][3]`[1 * 3 + x % 3]; }",
    );
    check(
        "struct S { f[2][4]: bool } shared s[3]: S; process P { let k = 2; s[k].f[k][k] = 1; }",
        "shared `s[].f[2][4]`[24]: bool; process P { let k = 2; `s[].f[2][4]`[(k * 2 \
         + (&`s[].f[2][4]`[k * 12] - &`s[].f[2][4]`[0]) / 12) * 4 \
         + (&`s[].f[2][4]`[k * 6] - &`s[].f[2][4]`[0]) / 6] = 1; }",
    );
}

/// The errors: place and name, with a part of the message.
#[track_caller]
fn refused(text: &str, expected: &[(u32, u32, &str, &str)]) {
    let source = Source::new("test.pal", text);
    let errors = parse(Language::Pal, &source).err().unwrap_or_default();
    let found: Vec<(u32, u32, &str)> = errors
        .iter()
        .map(|error| {
            let at = source.position(error.span()).expect("a place");
            (at.line, at.column, error.id)
        })
        .collect();
    let wanted: Vec<(u32, u32, &str)> =
        expected.iter().map(|&(line, column, id, _)| (line, column, id)).collect();
    assert_eq!(found, wanted, "{text}\n{errors:#?}");
    for (error, (.., part)) in errors.iter().zip(expected) {
        let all = format!("{} {}", error.message, error.help.as_deref().unwrap_or_default());
        assert!(all.contains(part), "{all}");
    }
}

#[test]
fn wrong_uses() {
    let body = |statements: &str| {
        format!("struct S {{ a: bool, b[2]: 0..3 }}\nshared m[2][3], x: 0..5;\nshared s[2]: S;\nprivate p[3];\nprocess P {{ let r: 0..4; {statements} }}\n")
            .replace("shared m[2][3], x: 0..5;", "shared m[2][3]: 0..5; shared x: 0..5;")
    };
    refused(&body("m[0][3] = 1;"), &[(5, 31, "bad-index", "`3` is not an index from 0 to 2")]);
    refused(&body("m[0] = 1;"), &[(5, 31, "unexpected-token", "write `m[0][0]`")]);
    refused(&body("m = 1;"), &[(5, 28, "unexpected-token", "write `m[0]`")]);
    refused(&body("m[0][0][0] = 1;"), &[(5, 33, "not-a-place", "`m[0][0]` is a number")]);
    refused(&body("s[0] = 1;"), &[(5, 31, "unexpected-token", "`s[0]` is a struct: write `s[0].a`")]);
    refused(&body("s[0].c = 1;"), &[(5, 31, "unknown-name", "its fields are a, b")]);
    refused(&body("s[0].b[2] = 1;"), &[(5, 33, "bad-index", "from 0 to 1")]);
    refused(&body("p[x] = 1;"), &[(5, 28, "bad-index", "`x` can be 0 to 5")]);
    refused(
        &body("let k = 1; p[k] = 1;"),
        &[(5, 39, "bad-index", "declare it with a domain: `let k: 0..2`")],
    );
    refused(&body("let k: 0..3; p[k] = 1;"), &[(5, 41, "bad-index", "`let index: 0..2 = k;`")]);
    refused(&body("p[r] = 1;"), &[(5, 28, "bad-index", "`let k: 0..2 = r;`")]);
    refused(&body("p[r - 3] = 1;"), &[(5, 28, "bad-index", "can be -3 to 1")]);
    refused(
        "shared m[2][3] at 8: bool; process P { let k = 1; m[0][k] = true; }",
        &[(1, 56, "bad-index", "declare it with a domain")],
    );
    refused(&body("p[x % 3] = 1;"), &[(5, 28, "bad-index", "copy it to a register first")]);
    refused(&body("p[3] = 1;"), &[(5, 28, "bad-index", "not an index from 0 to 2")]);
    refused(
        &body("let z: S;"),
        &[(5, 33, "unexpected-token", "only shared and private variables can be structs")],
    );
    refused(&body("let s = 1;"), &[(5, 30, "duplicate-name", "already the name of a variable")]);
    refused(&body("cas(p[r % 2], 0, 1);"), &[(5, 30, "not-a-place", "`p[r % 2]` cannot be written")]);
    let end = "process P { skip; }\n";
    refused(&format!("struct S {{}}\n{end}"), &[(1, 8, "empty-domain", "no fields")]);
    refused(&format!("struct S {{ a, a }}\n{end}"), &[(1, 15, "duplicate-name", "declared twice")]);
    refused(
        &format!("struct S {{ a }}\nshared s: S = [1];\n{end}"),
        &[(2, 8, "bad-count", "initial values")],
    );
    refused(&format!("shared m[2][2] = [[1, 2], [3]];\n{end}"), &[(1, 27, "bad-count", "1 values, not 2")]);
    refused(&format!("shared m[2][0];\n{end}"), &[(1, 12, "bad-count", "has elements")]);
    refused(&format!("private a[300];\n{end}"), &[(1, 9, "too-large", "at most 256")]);
    refused(
        "process P { x[0][1] = 1; }\nshared x[2][2];\n",
        &[
            (1, 17, "not-a-place", "declare it before it is used"),
            (2, 8, "late-constant", "used before it is declared"),
        ],
    );
    // A struct in itself is not known yet.
    refused(&format!("struct S {{ s: S }}\n{end}"), &[(1, 15, "unexpected-token", "a domain")]);
}

/// A small text does not become a large program, and deep nesting ends.
#[test]
fn sizes_are_limited() {
    let mut text = "struct S0 { a: bool, b: bool }\n".to_owned();
    for level in 1..40 {
        text += &format!("struct S{level} {{ a: S{0}, b: S{0} }}\n", level - 1);
    }
    let huge = |top: u32| format!("{text}shared s: S{top};\nprocess P {{ skip; }}\n");
    for (top, id) in [(14, ""), (25, "too-deep"), (39, "too-deep")] {
        let found = parse(Language::Pal, &Source::new("t", huge(top)));
        let ids: Vec<&str> = found.err().unwrap_or_default().iter().map(|error| error.id).collect();
        assert_eq!(ids.first().copied().unwrap_or_default(), id, "{top}");
    }
    let wide = "shared m[65536][65536];\nprocess P { skip; }\n";
    let found = parse(Language::Pal, &Source::new("t", wide)).expect_err("it is too large");
    assert_eq!(found[0].id, "too-large");
}

#[test]
fn formatting_and_names() {
    let formatted = format_pal(&Source::new("t.pal", QUEUE)).expect("it is right");
    assert_eq!(formatted, QUEUE);
    let source = Source::new("t.pal", QUEUE);
    let found = symbols(&source).expect("it is right");
    let uses = |kind: SymbolKind, name: &str| {
        let symbol = found.symbols.iter().find(|symbol| symbol.kind == kind && symbol.name == name);
        let symbol = symbol.unwrap_or_else(|| panic!("{name}: {:#?}", found.symbols));
        symbol.mentions().iter().for_each(|span| assert_eq!(source.slice(*span), name));
        symbol.uses.len()
    };
    assert_eq!(uses(SymbolKind::Shared, "m"), 7);
    assert_eq!(uses(SymbolKind::Private, "mine"), 3);
    assert_eq!(uses(SymbolKind::Struct, "Slot"), 1);
    assert_eq!(uses(SymbolKind::Field, "value"), 2);
    assert_eq!(uses(SymbolKind::Parameter, "i"), 5);
    assert!(found.symbols.iter().all(|symbol| !symbol.name.contains(['[', '.'])), "{:#?}", found.symbols);
    // Another name changes nothing else.
    let at = QUEUE.find("value = 7").expect("it is there");
    let (places, spelling) = rename(&source, at, "item").expect("the name is free");
    let mut text = QUEUE.to_owned();
    places.iter().rev().for_each(|place: &Span| text.replace_range(place.range(), &spelling));
    assert_eq!(places.len(), 3);
    assert!(print(&program(&text)).contains("queue.slot[].item"));
    let at = QUEUE.find("m[2][3]").expect("it is there");
    assert!(rename(&source, at, "queue").is_err());
    assert_eq!(rename(&source, at, "matrix").expect("the name is free").0.len(), 8);
}
