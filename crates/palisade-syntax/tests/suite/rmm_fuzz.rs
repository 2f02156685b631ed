//! For any input, the `.rmm` parser returns a program or errors that point into the text. A program can be
//! printed and parsed again as `.pal`.

use crate::languages;

use palisade_syntax::Language;
use proptest::collection::vec;
use proptest::prelude::*;

fn check(text: &str) {
    languages::check_any_text(Language::Rmm, text);
}

const PIECES: &[&str] = &[
    "forbidden",
    "A",
    "B",
    "*",
    ";",
    "data",
    "x",
    "f",
    "=",
    "0",
    "1",
    "2",
    ":",
    "[0:1]",
    "Z",
    "process",
    "process(2)",
    "registers",
    "$r",
    "$s",
    "text",
    "nop",
    "read:",
    "write:",
    "locked",
    "slocked",
    "syncrd:",
    "syncwr:",
    ":=",
    "cas(",
    ",",
    ")",
    "(",
    "fence",
    "ssfence",
    "llfence",
    "assume:",
    "if",
    "then",
    "else",
    "while",
    "do",
    "goto",
    "either",
    "{",
    "}",
    "or",
    "[",
    "]",
    "my",
    "-",
    "+",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "not",
    "true",
    "macro",
    "endmacro",
    "m",
    "m(",
    "predicates",
    "/*",
    "*/",
    "99999999999999999999",
    "?",
];

const FILE: &str = "forbidden A * *; * A A
predicates $r = 0; $r < $s
data x = 0 : [0:1] y = * : [0:1] z = 0
macro lock(l) cas(l,0,1); llfence endmacro
macro own(v) v[my] endmacro
process data f = 0 : [0:1] registers $r = * : [0:1] $s = 0 text
L: write: own(f) := 1; read: $r := f[0]; if $r = 1 && not $s = 0 then { goto L } else nop;
lock(x); A: syncwr: [$r] := 0; goto L
process(2) data f = 1 : [0:1] registers $r = 0 : [0:2] text
A: either{ read: f[1] = 0; locked{ read: y = 0; write: y := 1 or write: z := -1 } or while $r < 2 do $r := $r + 1 };
slocked write: x := 0; locked write: f[my] := $r - 1; fence; ssfence; syncrd: $r := y; assume: [$r != 0 || false]; goto A";

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_in_any_order(pieces in vec((0..PIECES.len()).prop_map(|i| PIECES[i]), 0..40)) {
        let soup = pieces.join(" ");
        check(&soup);
        check(&format!("forbidden A data x = 0 : [0:1] process data f = 0 registers $r = * : [0:1] text A: {soup}"));
    }

    #[test]
    fn damaged_files(from in any::<prop::sample::Index>(), len in 0usize..30, put in (0..PIECES.len()).prop_map(|i| PIECES[i])) {
        let from = from.index(FILE.len());
        let to = (from + len).min(FILE.len());
        check(&[&FILE[..from], " ", put, " ", &FILE[to..]].concat());
        check(&[&FILE[..from], &FILE[to..]].concat());
        check(&FILE[..from]);
    }
}

#[test]
fn the_whole_file_is_read() {
    languages::parsed(Language::Rmm, FILE);
    check(FILE);
}

/// Texts that are deep, long or unusual enough to break a careless parser.
#[test]
fn hostile_texts() {
    const MANY: usize = 50_000;
    let many = |text: &str| text.repeat(MANY);
    let statements = [
        many("{"),
        many("}"),
        many("either{"),
        many("locked{ nop or "),
        many("if true then "),
        many("if true then nop else "),
        many("while true do "),
        many("nop;"),
        many("nop "),
        many("L: "),
        many("L: nop;"),
        many("goto L;"),
        many("write: y := 1;"),
        many("$q := 1;"),
        many("read: $r := [$r];"),
        format!("$r := {}1", many("-")),
        format!("$r := {}1{}", many("("), many(")")),
        format!("$r := {}1", many("1+")),
        format!("$r := {}1{}", many("(1+"), many(")")),
        format!("assume: {}true{}", many("["), many("]")),
        format!("assume: {}true", many("true && true || ")),
        format!("assume: {}true", many("not ")),
        many("process "),
        many("process text nop "),
        many("data "),
        many("/*"),
        many("?"),
    ];
    for text in statements {
        check(&text);
        check(&format!(
            "forbidden A data x = 0 : [0:1] process registers $r = * : [0:1] text A: nop; {text}"
        ));
        check(&format!(
            "forbidden A data x = 0 : [0:1] process registers $r = * : [0:1] text A: nop; {text} nop"
        ));
    }
    check(&format!("forbidden {} process text A: nop", many("A ")));
    check(&format!("forbidden {} A process text A: nop", many("A; ")));
    check(&format!("forbidden A data {} process text A: nop", many("x = 0 ")));
    check(&format!("forbidden A process registers {} text A: nop", many("$r = * ")));
    check(&format!("forbidden A {} process text A: nop", many("macro m() nop endmacro ")));
    let distinct = |what: &str| (0..MANY).map(|i| what.replace('#', &i.to_string())).collect::<String>();
    check(&format!("forbidden A process registers {} text A: nop", distinct("$r# = * : [0:1] ")));
    let registers = distinct("$r# = * : [0:1] ");
    check(&format!("forbidden A process registers {registers} text {} A: nop", distinct("$r# := $r#; ")));
    check(&format!("forbidden A {} process text A: m0()", distinct("macro m#() m#1() endmacro ")));
    check("");
    check("\0");
    check("\u{feff}forbidden");
}
