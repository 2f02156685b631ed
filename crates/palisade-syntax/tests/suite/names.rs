//! Names: where they are declared and used, and what happens when they change.

use palisade_base::{Source, Span};
use palisade_syntax::names::{RenameError, SymbolKind, rename, symbols};
use palisade_syntax::{Language, parse};

const PROGRAM: &str = "\
const N = 2;
shared x, a[N]: 0..N = 1;
shared p = &x;
private depth: 0..3;

proc f(x1, depth1: 0..N) -> bool {
    let r = x1 + depth;
    return r == a[N - 1];
}

process P(i: 0..1) {
    let r: 0..N = x;
cs: if f(r, i) { goto cs; }
    plain(x) = *p; cas(a[i], 0, N);
    spawn Q;
}

process Q on spawn {
cs: skip;
}

forbid P(0)@cs && P(1).r == N && count(Q@cs) > x;
leaves P(0)@cs;
";

/// Every mention of a declared name: the kind, the text, and the line of the declaration.
fn all(text: &str) -> Vec<(usize, SymbolKind, String)> {
    let source = Source::new("t.pal", text);
    let found = symbols(&source).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let mut all: Vec<(Span, SymbolKind, String)> = Vec::new();
    for symbol in &found.symbols {
        for span in symbol.mentions() {
            assert_eq!(source.slice(span).trim_matches('`'), symbol.name, "{symbol:?}");
            all.push((span, symbol.kind, symbol.name.clone()));
        }
    }
    all.sort_by_key(|(span, ..)| *span);
    let line = |span: Span| source.position(span).expect("a place").line as usize;
    all.into_iter().map(|(span, kind, name)| (line(span), kind, name)).collect()
}

#[test]
fn every_mention_is_found_once() {
    use SymbolKind::{Constant, Label, Parameter, Private, Procedure, Process, Register, Shared};
    let expected = [
        (1, Constant, "N"),
        (2, Shared, "x"),
        (2, Shared, "a"),
        (2, Constant, "N"),
        (2, Constant, "N"),
        (3, Shared, "p"),
        (3, Shared, "x"),
        (4, Private, "depth"),
        (6, Procedure, "f"),
        (6, Parameter, "x1"),
        (6, Parameter, "depth1"),
        (6, Constant, "N"),
        (7, Register, "r"),
        (7, Parameter, "x1"),
        (7, Private, "depth"),
        (8, Register, "r"),
        (8, Shared, "a"),
        (8, Constant, "N"),
        (11, Process, "P"),
        (11, Parameter, "i"),
        (12, Register, "r"),
        (12, Constant, "N"),
        (12, Shared, "x"),
        (13, Label, "cs"),
        (13, Procedure, "f"),
        (13, Register, "r"),
        (13, Parameter, "i"),
        (13, Label, "cs"),
        (14, Shared, "x"),
        (14, Shared, "p"),
        (14, Shared, "a"),
        (14, Parameter, "i"),
        (14, Constant, "N"),
        (15, Process, "Q"),
        (18, Process, "Q"),
        (19, Label, "cs"),
        (22, Process, "P"),
        (22, Label, "cs"),
        (22, Process, "P"),
        (22, Register, "r"),
        (22, Constant, "N"),
        (22, Process, "Q"),
        (22, Label, "cs"),
        (22, Shared, "x"),
        (23, Process, "P"),
        (23, Label, "cs"),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(line, kind, name)| (line, kind, name.to_owned())).collect();
    assert_eq!(all(PROGRAM), expected);
}

#[test]
fn declarations_reach_to_the_end_of_their_bodies() {
    let source = Source::new("t.pal", PROGRAM);
    let found = symbols(&source).expect("it is valid");
    let whole = |name: &str| {
        let symbol = found.symbols.iter().find(|symbol| symbol.name == name).expect("it is declared");
        source.slice(symbol.whole)
    };
    assert!(whole("f").starts_with("proc f(") && whole("f").ends_with("];\n}"), "{}", whole("f"));
    assert!(whole("P").ends_with("spawn Q;\n}"), "{}", whole("P"));
    assert_eq!(whole("N"), "const N = 2;");
    assert_eq!(found.properties.len(), 2);
}

/// Renames what is at the first place of a text, and returns the new program.
fn renamed(text: &str, at: &str, name: &str) -> Result<String, RenameError> {
    let source = Source::new("t.pal", text);
    let (places, spelling) = rename(&source, text.find(at).expect("it is there"), name)?;
    let mut text = text.to_owned();
    places.iter().rev().for_each(|place| text.replace_range(place.range(), &spelling));
    Ok(text)
}

#[test]
fn renaming_changes_all_mentions_and_nothing_else() {
    let new = renamed(PROGRAM, "x, a", "flag").expect("the name is free");
    assert!(new.contains("shared flag, a[N]") && new.contains("&flag") && new.contains("> flag;"), "{new}");
    assert!(new.contains("let r = x1 + depth;"), "{new}");
    let new = renamed(PROGRAM, "cs: if", "busy").expect("the name is free");
    assert!(new.contains("busy: if f(r, i) { goto busy; }") && new.contains("P(0)@busy &&"), "{new}");
    assert!(new.contains("cs: skip;") && new.contains("count(Q@cs)"), "{new}");
    let new = renamed(PROGRAM, "N = 2", "size of it").expect("it can be quoted");
    assert!(new.contains("0..`size of it`"), "{new}");
    parse(Language::Pal, &Source::new("t.pal", new)).expect("it is still valid");
}

#[test]
fn names_that_would_change_the_program_are_refused() {
    for (at, name) in [("x, a", "a"), ("x, a", "r"), ("i: 0..1", "x"), ("f(x1", "x"), ("P(i", "Q")] {
        let outcome = renamed(PROGRAM, at, name);
        let same = outcome.as_ref().is_ok_and(|text| all(text).len() == all(PROGRAM).len());
        assert!(outcome == Err(RenameError::Taken) || same, "{at} to {name}: {outcome:?}");
    }
    assert_eq!(renamed(PROGRAM, "x, a", "a"), Err(RenameError::Taken));
    assert_eq!(renamed(PROGRAM, "x, a", "r"), Err(RenameError::Taken));
    assert_eq!(renamed(PROGRAM, "x, a", "a`b"), Err(RenameError::NotAName));
    assert_eq!(renamed(PROGRAM, "x, a", ""), Err(RenameError::NotAName));
    assert_eq!(renamed(PROGRAM, "= 2", "y"), Err(RenameError::Nothing));
    assert!(matches!(renamed("process P { x = 1; }", "P", "Q"), Err(RenameError::Wrong(_))));
}

#[test]
fn variables_of_loops_and_quantifiers() {
    let text = "\
shared a[3]: 0..3;
process P[2] {
    for i in 0..2 { a[i] = i; }
    for i in 1..2 { a[i] = 0; }
    await forall j in 0..2: a[j] == 0;
}
forbid exists p in P, q in P: p != q && p@end && q@end;
";
    let found = symbols(&Source::new("t.pal", text)).expect("it is valid");
    let names = |kind: SymbolKind| {
        let chosen = found.symbols.iter().filter(move |symbol| symbol.kind == kind);
        chosen
            .map(|symbol| (symbol.name.as_str(), symbol.detail.as_str(), symbol.uses.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(SymbolKind::Register), [("i", "for i in 0..2", 2), ("i", "for i in 1..2", 1)]);
    assert_eq!(names(SymbolKind::Bound), [("j", "j in 0..2", 1), ("p", "p in P", 2), ("q", "q in P", 2)]);
    let at = |part: &str| text.find(part).expect("a part of the text");
    let renamed = |at: usize, name: &str| {
        let (places, spelling) = rename(&Source::new("t.pal", text), at, name).expect("it can be renamed");
        let mut text = text.to_owned();
        places.iter().rev().for_each(|place| text.replace_range(place.range(), &spelling));
        text
    };
    let first = renamed(at("i in 0"), "k");
    assert!(first.contains("for k in 0..2 { a[k] = k; }\n    for i in 1..2 { a[i] = 0; }"), "{first}");
    assert!(renamed(at("p != q"), "one").contains("exists one in P, q in P: one != q && one@end"));
    assert!(renamed(at("P[2]"), "Worker").contains("exists p in Worker, q in Worker:"));
    assert_eq!(rename(&Source::new("t.pal", text), at("p != q"), "q"), Err(RenameError::Taken));
    assert_eq!(rename(&Source::new("t.pal", text), at("j in"), "a"), Err(RenameError::Taken));
}

#[test]
fn enumerations() {
    let text = "enum State { Idle, Busy }\nshared s: State = Idle;\nprocess P { s = Busy; let r: State = s; }\nfinal s == Busy;\n";
    let found = symbols(&Source::new("t.pal", text)).expect("it is valid");
    let all: Vec<_> = found
        .symbols
        .iter()
        .map(|symbol| (symbol.kind, symbol.name.as_str(), symbol.uses.len(), symbol.detail.as_str()))
        .collect();
    assert_eq!(
        all[..3],
        [
            (SymbolKind::Enum, "State", 2, "enum State { Idle, Busy }"),
            (SymbolKind::EnumValue, "Idle", 1, "`Idle` = 0, a value of `State`"),
            (SymbolKind::EnumValue, "Busy", 2, "`Busy` = 1, a value of `State`"),
        ]
    );
    assert_eq!(all[3], (SymbolKind::Shared, "s", 3, "shared s: State"));
    let (places, _) =
        rename(&Source::new("t.pal", text), text.find("Busy").expect("there"), "Done").expect("free");
    assert_eq!(places.len(), 3);
}
