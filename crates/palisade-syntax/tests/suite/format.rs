//! The formatter: the program stays the same, comments survive, and a formatted text stays as it is.

use crate::common;

use palisade_base::Source;
use palisade_program::print::print;
use palisade_syntax::{Language, format_pal, read};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn format(text: &str) -> String {
    let source = Source::new("test.pal", text);
    format_pal(&source).unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}\n{text}"))
}

/// The texts of the comments, found by a scanner of its own. Line ends do not count.
fn comments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['/', '`']) {
        rest = &rest[start..];
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            let (mut depth, mut at) = (0, 0);
            while at == 0 || depth > 0 {
                let (step, change) = match rest.get(at..at + 2) {
                    Some("/*") => (2, 1),
                    Some("*/") => (2, -1),
                    _ => (rest[at..].chars().next().map_or(1, char::len_utf8), 0),
                };
                depth += change;
                at += step;
            }
            at
        } else {
            // A name between backquotes, or a division.
            let name = rest.strip_prefix('`').and_then(|name| name.find('`'));
            let end = name.map_or(1, |end| end + 2);
            rest = &rest[end..];
            continue;
        };
        found.push(rest[..end].replace('\r', "").trim_end().to_owned());
        rest = &rest[end..];
    }
    found
}

/// Formats a text, and checks what must hold of every text.
fn formatted(text: &str) -> String {
    let program =
        |text: &str| read(Language::Pal, &Source::new("test.pal", text)).expect("it parses").program;
    let once = format(text);
    assert_eq!(program(text), program(&once), "another program:\n{text}\n---\n{once}");
    assert_eq!(comments(text), comments(&once), "other comments:\n{text}\n---\n{once}");
    let twice = format(&once);
    assert_eq!(once, twice, "formatting again changes:\n{text}");
    for line in once.lines() {
        let in_comment = line.contains("//") || once.contains("/*");
        assert!(line.trim_end() == line || in_comment, "space at the end of {line:?}:\n{once}");
    }
    once
}

fn check(text: &str, expected: &str) {
    assert_eq!(formatted(text), expected);
}

/// All `.pal` files below a folder.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("it can be read").path()) {
        if path.is_dir() {
            found.extend(programs(&path));
        } else if path.extension().is_some_and(|extension| extension == "pal") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_corpus_is_formatted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for path in programs(&root.join("corpus")) {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        assert_eq!(formatted(&text), text, "{}", path.display());
        seen += 1;
    }
    assert!(seen > 50, "only {seen} programs");
}

#[test]
fn indentation_and_spaces() {
    check(
        "const N=3 ;shared x,a [N]:0 .. N=[ 1,* ,- 1 ] ; process P ( i : 0..1 ) [ 2 ] on spawn{\nx=a[ i ]+ -1*2;\n\
         *p=&x ;if(x)==1{skip;}\nelse{ }\nwhile ! x {\n\n}  cs :skip;await(x); assert (x) ; return - x;}\n\
         forbid P(0)@ cs&&P [1] . r==- -1 ;deadlock - free;live(end);leaves P( 0 ) @cs;",
        "const N = 3;\nshared x, a[N]: 0..N = [1, *, -1];\nprocess P(i: 0..1)[2] on spawn {\n    x = a[i] + -1 * 2;\n    \
         *p = &x;\n    if (x) == 1 { skip; } else {}\n    while !x {}\ncs: skip;\n    await (x);\n    \
         assert(x);\n    return -x;\n}\n\
         forbid P(0)@cs && P[1].r == - -1;\ndeadlock-free;\nlive (end);\nleaves P(0)@cs;\n",
    );
}

#[test]
fn a_property_that_subtracts_is_no_hyphen() {
    check(
        "shared deadlock, live;\nforbid deadlock-1;live -live>0;\n",
        "shared deadlock, live;\nforbid deadlock - 1;\nlive -live > 0;\n",
    );
}

#[test]
fn blocks_keep_their_shape_and_statements_have_lines() {
    check(
        "process P { x = 1; y = 2; }\nprocess Q\n{ x = 1; y = 2; choose { skip; } or\n{\nskip; }\n}\n\n\n\nprocess R {\n\n\n    skip;\n\n\n    skip;\n\n}\n",
        "process P { x = 1; y = 2; }\nprocess Q {\n    x = 1;\n    y = 2;\n    choose { skip; } or {\n        skip;\n    }\n}\n\nprocess R {\n    skip;\n\n    skip;\n}\n",
    );
}

#[test]
fn labels_are_one_level_further_out() {
    check(
        "process P {\na:b: skip;\nloop {\nwait:\nskip;\nwhere:while x {}\nq: skip;\nlast:\n}\n}\n",
        "process P {\na:  b: skip;\n    loop {\n    wait:\n        skip;\n    where: while x {}\n    q:  skip;\n    last:\n    }\n}\n",
    );
}

#[test]
fn line_breaks_within_a_statement_are_kept() {
    check(
        "shared a[2] = [\n1,\n2\n];\nforbid x == 1\n&& y == 2\n|| z;\n",
        "shared a[2] = [\n    1,\n    2\n];\nforbid x == 1\n    && y == 2\n    || z;\n",
    );
}

#[test]
fn comments_stay_where_they_are() {
    check(
        "// top\n\n\n  // second\nprocess P { // opens\n// own\nx = 1;   // trailing\ny = 12;  // lines up\n         // and goes on\n\
         z = /* inner */ 1; /* after */\n/* one */ /* two */ skip;\n// last\n}\n// end",
        "// top\n\n// second\nprocess P { // opens\n    // own\n    x = 1;   // trailing\n    y = 12;  // lines up\n             // and goes on\n    \
         z = /* inner */ 1; /* after */\n    /* one */ /* two */ skip;\n    // last\n}\n// end\n",
    );
    check(
        "process P // who\n{ if x { skip; } // then\n// between\nelse { skip; } x = // what\n1 // value\n; }\n",
        "process P // who\n{\n    if x { skip; } // then\n    // between\n    else { skip; }\n    x = // what\n        1 // value\n        ;\n}\n",
    );
    check("/* several\n   lines\n*/ shared x;\n", "/* several\n   lines\n*/ shared x;\n");
    check("process P { /* nothing */ }\n", "process P { /* nothing */ }\n");
    check("process P {\n\n/* nothing */\n\n}\n", "process P {\n    /* nothing */\n}\n");
}

#[test]
fn wide_gaps_keep_their_column() {
    check(
        "process P {\n  x = 1;              // a\n  skip;\n  if x {\n    y = 1;            // b\n  }\n}\n",
        "process P {\n    x = 1;            // a\n    skip;\n    if x {\n        y = 1;        // b\n    }\n}\n",
    );
}

#[test]
fn line_ends_stay_of_one_kind() {
    check("shared x;\r\n\r\n// c\r\nshared y;", "shared x;\r\n\r\n// c\r\nshared y;\r\n");
    check("shared x;\n/* a\r\r\nb */\r\nshared y;", "shared x;\n/* a\nb */\nshared y;\n");
    check("\u{feff}shared x;", "shared x;\n");
    check("", "");
    check("// only", "// only\n");
}

#[test]
fn what_does_not_parse_is_refused_with_all_errors() {
    let source = Source::new("test.pal", "shared x\nprocess P { x = ; y = ; }\n");
    let errors = format_pal(&source).expect_err("it does not parse");
    assert!(errors.len() >= 2, "{errors:#?}");
}

/// What can stand between two tokens.
fn gap() -> impl Strategy<Value = String> {
    let comment = prop_oneof![Just(""), Just("é"), Just("a\tb"), Just("/ {"), Just("; }"), Just("`")];
    prop_oneof![
        6 => Just(" ".to_owned()),
        3 => Just("\n".to_owned()),
        1 => Just("\r\n\r\n\n".to_owned()),
        1 => Just("\t ".to_owned()),
        1 => (comment.clone(), "[ \n]{0,2}").prop_map(|(text, after)| format!(" // {text}\n{after}")),
        1 => (comment.clone(), "[ \n]{0,2}").prop_map(|(text, after)| format!(" /* {text} */{after}")),
        1 => comment.prop_map(|text| format!("\n/*{text}\n  /* {text}\r\n */*/ ")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_with_random_comments(program in common::program(), gaps in prop::collection::vec(gap(), 1..200)) {
        // Every space of the printed program, and every place after a sign that stands for itself, gets a gap.
        let mut text = String::new();
        let mut gaps = gaps.iter().cycle();
        for c in print(&program).chars() {
            match c {
                ' ' | '\n' if text.ends_with(char::is_whitespace) => {}
                ' ' | '\n' => text.push_str(gaps.next().expect("a cycle")),
                ';' | ',' | '(' | ')' | '[' | ']' | '{' | '}' => {
                    text.push(c);
                    text.push_str(gaps.next().expect("a cycle").trim_start_matches(' '));
                }
                _ => text.push(c),
            }
        }
        formatted(&text);
    }
}

#[test]
fn loops_and_quantifiers() {
    let text = "process P {\n  for  i   in 0 .. 3{ // each\n skip;\n}\n}\nforbid   exists i in 0..1,j in P:i!=j&&j@end;\n";
    let expected = "process P {\n    for i in 0..3 { // each\n        skip;\n    }\n}\nforbid exists i in 0..1, j in P: i != j && j@end;\n";
    assert_eq!(format(text), expected);
    assert_eq!(format(expected), expected);
}

#[test]
fn enumerations() {
    let text = "enum  State{Idle ,Busy}\nenum E { // values\nA,\n  B, // last\n}\nshared s:State=Idle;\n";
    let expected =
        "enum State { Idle, Busy }\nenum E { // values\n    A,\n    B, // last\n}\nshared s: State = Idle;\n";
    assert_eq!(format(text), expected);
    assert_eq!(format(expected), expected);
}
