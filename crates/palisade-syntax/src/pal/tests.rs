//! The parser's errors for bad programs, and the spans of good ones.

use super::parse;
use crate::limits::{MAX_EXPR_DEPTH, MAX_NESTING};
use palisade_base::Source;
use palisade_program::print::RESERVED;
use palisade_program::written::StmtKind;

/// Each diagnostic as `line:column id: message`, with ` | help` if there is any.
fn check(text: &str, expected: &[&str]) {
    let source = Source::new("test.pal", text);
    let diagnostics = match parse(&source) {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    };
    let found: Vec<String> = diagnostics
        .iter()
        .map(|d| {
            let at = source.position(d.span()).expect("every diagnostic has a position");
            let help = d.help.as_ref().map_or(String::new(), |help| format!(" | {help}"));
            format!("{}:{} {}: {}{help}", at.line, at.column, d.id, d.message)
        })
        .collect();
    assert_eq!(found, expected, "\n{text}");
}

/// The same for the statements of a process.
fn check_body(body: &str, expected: &[&str]) {
    check(&format!("process P {{\n{body}\n}}"), expected);
}

#[test]
fn the_printer_knows_the_keywords() {
    let words: Vec<_> = super::token::Word::ALL.iter().map(|word| word.text()).collect();
    assert_eq!(words, RESERVED);
}

#[test]
fn mistakes_of_c_programmers() {
    check_body(
        "x += y;",
        &[
            "2:3 compound-assignment: `+=` would hide a load and a store | write `x = x + y;` (a load, then a store) or `fetch_add(x, y);` (one locked instruction)",
        ],
    );
    check_body(
        "x *= y + 1;",
        &[
            "2:3 compound-assignment: `*=` would hide a load and a store | write `x = x * (y + 1);` (a load, then a store)",
        ],
    );
    let increment = "would hide a load and a store | write `a[i] = a[i] + 1;` (a load, then a store) or `fetch_add(a[i], 1);` (one locked instruction)";
    check_body("a[i]++;", &[&format!("2:5 compound-assignment: `++` {increment}")]);
    check_body("++a[i];", &[&format!("2:1 compound-assignment: `++` {increment}")]);
    let assigns = "assignment-in-condition: `=` assigns and has no value | compare with `==`";
    check_body("if x = 1 {}", &[&format!("2:6 {assigns}")]);
    check_body("while (x = 1) {}", &[&format!("2:10 {assigns}")]);
    check_body("assert(x = 1);", &[&format!("2:10 {assigns}")]);
    check_body(
        "x == 1;",
        &[
            "2:1 comparison-as-statement: the result of this comparison is not used | write `x = 1;` to assign, `await x == 1;` to wait",
        ],
    );
    check_body(
        "int r = 0;",
        &[
            "2:1 foreign-syntax: registers are declared with `let` | write `let r = 0;`, or with a range: `let r: 0..3 = 0;`",
        ],
    );
    check(
        "bool b;",
        &[
            "1:1 foreign-syntax: shared variables are declared with `shared` | write `shared b: bool = 0;`, or with a range: `shared b: 0..3 = 0;`",
        ],
    );
    let no_for = "2:1 foreign-syntax: a `for` loop takes a range | write `for i in 0..3 { … }`; both ends are included";
    check_body("for (i = 0; i < 3; i++) { skip; }", &[no_for]);
    check_body(
        "do { skip; } while (x);",
        &["2:1 foreign-syntax: there is no `do` loop | write `loop { …; if !condition { break; } }`"],
    );
    check_body("mfence;", &["2:1 foreign-syntax: the full fence is called `fence` | write `fence;`"]);
    check_body(
        "fence();",
        &["2:6 unexpected-token: expected `;`, found `(` | write `fence;` without parentheses"],
    );
    check_body(
        "while (c);",
        &[
            "2:10 missing-block: expected `{`, found `;` | write `{}` for an empty body; to wait for a condition, write `await condition;`",
        ],
    );
    check_body(
        "if (c) x = 1;",
        &[
            "2:8 missing-block: expected `{`, found `x` | put the body in `{ … }`, even if it is a single statement",
        ],
    );
    check_body(
        "p = null;",
        &[
            "2:5 foreign-syntax: there is no null pointer | write 0: the first cell has address 1, so 0 is never the address of a cell",
        ],
    );
    check_body(
        "r = cas(&x, 0, 1);",
        &[
            "2:9 not-a-place: `cas` takes the variable itself | write `cas(x, …)`; to use a pointer `p`, write `*p`",
        ],
    );
    check_body(
        "r = cas(x, 0);",
        &["2:5 wrong-arity: `cas` takes 3 arguments, not 2 | write `cas(x, expected, new)`"],
    );
    check_body(
        "x = y = 1;",
        &[
            "2:7 unexpected-token: expected `;`, found `=` | the left side of an assignment must be a variable, an array element or `*pointer`, and only one `=` can follow it",
        ],
    );
    check(
        "#define N 3\nprocess P {}",
        &[
            "1:1 unexpected-character: `#` is not allowed here | comments start with `//`; constants are declared with `const N = 3;`",
            "1:2 unexpected-token: expected an item, found `define` | a program consists of items such as `shared`, `process`, `proc`, `const`, `enum`, `struct`, `import` and `forbid`; statements go into a `process`",
        ],
    );
    check(
        "struct Node { value: 0..7; next: int; }\nshared head: Node;",
        &[
            "1:26 foreign-syntax: fields are separated by commas | write `,`",
            "1:37 foreign-syntax: fields are separated by commas | write `,`",
        ],
    );
    check(
        "void f() {}",
        &[
            "1:1 unexpected-token: expected an item, found `void` | procedures are declared with `proc f(a: 0..3) -> bool { … }`",
        ],
    );
}

#[test]
fn mistakes_of_rust_programmers() {
    check("shared x: 0..=3;", &["1:12 foreign-syntax: `..` already includes both ends | write `..`"]);
    check(
        "shared x: u64;",
        &[
            "1:11 unexpected-token: expected a domain, found `u64` | numbers have 64 bits and do not wrap around: write `int`; the operators `+%`, `-%` and `*%` wrap around",
        ],
    );
    check_body(
        "a < b < c;",
        &[
            "2:7 chained-comparison: comparisons cannot be chained | write `a < b && b < c`, or put one of them in parentheses",
        ],
    );
    check_body("let x: 0..3 = 1", &["2:16 missing-semicolon: expected `;`, found `}`"]);
    check_body("x = 1\ny = 2;", &["2:6 missing-semicolon: expected `;`, found `y`"]);
    check_body("x = 1 y = 2;", &["2:7 missing-semicolon: expected `;`, found `y`"]);
    check_body(
        "let a[3];",
        &[
            "2:6 register-array: registers cannot be arrays | declare a `private` array outside the process: `private a[3]: 0..7;`",
        ],
    );
    check_body(
        "let r = *;",
        &[
            "2:9 any-without-domain: `*` needs a domain to choose from | declare the domain, as in `let r: 0..3 = *;`",
        ],
    );
    check_body(
        "x = *;",
        &[
            "2:5 any-without-domain: `*` is not a value here | write `any(lo..hi)`; `*` alone is allowed only as an initial value",
        ],
    );
}

#[test]
fn misspelt_words_get_a_suggestion() {
    check_body(
        "wihle x { }",
        &["2:1 unknown-statement: `wihle` does not start a statement | did you mean `while`?"],
    );
    check(
        "proces P { }",
        &["1:1 unexpected-token: expected an item, found `proces` | did you mean `process`?"],
    );
    check(
        "const LIMIT = 3; shared x: 0..LIMT;",
        &["1:31 not-constant: the value must be known before the program runs | did you mean `LIMIT`?"],
    );
    check_body(
        "let fence = 1;",
        &[
            "2:5 reserved-word: expected the name of a register, found the keyword `fence` | `fence` is a keyword and cannot be used as a name",
        ],
    );
}

#[test]
fn one_run_reports_every_error() {
    check(
        "shared x: 0..;\nprocess P {\n x = ;\n if x { y = 1 +; }\n x = 1;\n while { x = 2 2; }\n}\nforbid P@;\nfinal;",
        &[
            "1:14 unexpected-token: expected an expression, found `;`",
            "3:6 unexpected-token: expected an expression, found `;`",
            "4:16 unexpected-token: expected an expression, found `;`",
            "6:8 unexpected-token: expected an expression, found `{`",
            "6:16 missing-semicolon: expected `;`, found `2`",
            "8:10 unexpected-token: expected a label, found `;`",
            "9:6 unexpected-token: expected an expression, found `;`",
        ],
    );
    check(
        "process P {\n loop {\n x = 1;\nprocess Q { y = ; }\n}",
        &[
            "2:7 unclosed-block: expected `}`, found the keyword `process`",
            "4:17 unexpected-token: expected an expression, found `;`",
            "5:1 unmatched-brace: this `}` closes nothing",
        ],
    );
    check(
        "process P { shared x = 1; x = 2; } forbid x == ;",
        &[
            "1:13 misplaced-declaration: `shared` declarations must be outside processes and procedures | declare registers with `let`; if the block should have ended earlier, a `}` is missing",
            "1:48 unexpected-token: expected an expression, found `;`",
        ],
    );
    check(
        "process P(i: 0.1) { x = ; }",
        &[
            "1:15 unexpected-token: expected `..`, found `.` | a domain is `bool`, `int`, a machine word such as `u8`, an enum, or a range such as `0..3`, both ends included",
            "1:25 unexpected-token: expected an expression, found `;`",
        ],
    );
    check(
        "process P { skip;; }",
        &["1:18 stray-semicolon: this `;` ends nothing | remove it, or write `skip;`"],
    );
}

#[test]
fn constants() {
    check(
        "const N = 3; const M = N * 2 - 1; shared a[M]: -N..N; process P[N] { x = any(0..M); } forbid P[N - 1]@l;",
        &[],
    );
    check("const N = 1; const N = 2;", &["1:20 duplicate-name: `N` is declared twice"]);
    check("const N = 1; shared N;", &["1:21 duplicate-name: `N` is already the name of a constant"]);
    check(
        "shared x = N; const N = 1;",
        &[
            "1:21 late-constant: the constant `N` is used before it is declared | declare it before its first use, and do not use its name for anything else",
        ],
    );
    check("const N = 1 / 0; shared a[N];", &["1:11 constant-fault: division by zero"]);
    check(
        "const N = x; shared a[N];",
        &[
            "1:11 not-constant: the value must be known before the program runs | use numbers and names declared with `const`",
        ],
    );
    check("const N = -1; shared a[N];", &["1:24 bad-count: -1 is not a valid number of cells"]);
    check(
        "const N = 1; process P { N = 2; N[0] = 1; x = &N; }",
        &[
            "1:26 not-a-place: `N` is a constant and cannot be assigned",
            "1:33 not-a-place: `N` is a constant, not an array",
            "1:48 not-a-place: `N` does not have an address | only variables, array elements `a[i]` and `*pointer` do",
        ],
    );
    check(
        "const N = 9223372036854775807; const M = -9223372036854775808; const K = 9223372036854775808;",
        &[
            "1:74 number-too-large: this number does not fit into 64 bits | the largest number is 9223372036854775807",
        ],
    );
}

#[test]
fn variables_of_quantifiers() {
    check("shared a[2]; final forall i in 0..1: a[i] == 1 || exists i in 0..0: a[i] == 0;", &[]);
    check(
        "shared a[3]; final forall i in 0..1, j in i..1: a[j] == 1 || exists i in j..2: a[i] == i + j;",
        &[],
    );
    check(
        "const N = 1; shared a[2]; final exists N in 0..1: a[N] == 0;",
        &["1:40 duplicate-name: `N` is already the name of a constant"],
    );
    check(
        "process P { cs: skip; } forbid forall p in Q: p@cs;",
        &[
            "1:44 unknown-name: there is no process or enumeration `Q` before this | declare it first, or write a range: `forall i in 0..3: …`",
        ],
    );
}

#[test]
fn nesting_is_limited() {
    let nested = |open: &str, inner: &str, close: &str, levels: u32| {
        format!("process P {{ {}{inner}{} }}", open.repeat(levels as usize), close.repeat(levels as usize))
    };
    let errors = |text: &str| match parse(&Source::new("test.pal", text)) {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics.iter().map(|d| d.id).collect::<Vec<_>>(),
    };
    assert_eq!(errors(&nested("loop { ", "skip;", " }", MAX_NESTING - 1)), [""; 0]);
    assert_eq!(errors(&nested("loop { ", "skip;", " }", MAX_NESTING)), ["too-deep"]);
    let parentheses =
        |levels: u32| format!("final {}x{};", "(".repeat(levels as usize), ")".repeat(levels as usize));
    assert_eq!(errors(&parentheses(MAX_NESTING - 1)), [""; 0]);
    assert_eq!(errors(&parentheses(MAX_NESTING)), ["too-deep"]);
    let chain = |operators: u32| format!("final {}x;", "x + ".repeat(operators as usize));
    assert_eq!(errors(&chain(MAX_EXPR_DEPTH - 1)), [""; 0]);
    assert_eq!(errors(&chain(MAX_EXPR_DEPTH)), ["too-deep"]);
}

#[test]
fn origins_are_statements_without_labels_and_headings() {
    let text = "process P(i: 0..1)[2] { a: b: x = y + 1; while x > 0 { skip; } c: }";
    let source = Source::new("test.pal", text);
    let program = parse(&source).expect("a good program").program;
    let template = &program.templates[0];
    assert_eq!(source.slice(template.origin.0), "process P(i: 0..1)[2]");
    let spans: Vec<_> = template.body.iter().map(|stmt| source.slice(stmt.span())).collect();
    assert_eq!(spans, ["x = y + 1;", "while x > 0", "c"]);
    let StmtKind::Assign { place, value } = &template.body[0].kind else { panic!("an assignment") };
    assert_eq!((source.slice(place.span()), source.slice(value.span())), ("x", "y + 1"));
}

#[test]
fn for_loops() {
    check_body("for i in 0..3 { x = i; continue; break; }\nfor i in 5..4 { x = i; }", &[]);
    check_body("for i in 0..3 { x = ; }", &["2:21 unexpected-token: expected an expression, found `;`"]);
    check_body(
        "for i in 0..3 { i = 2; }",
        &[
            "2:17 loop-variable: `i` is the variable of a loop and cannot be assigned | leave the loop with `break;`, or write a `while` loop with a register",
        ],
    );
    check_body(
        "for i in 0..3 {}\nx = i;",
        &[
            "3:5 loop-variable: `i` is the variable of a loop that is over | copy it to a register inside the loop",
        ],
    );
    check_body(
        "for i in 0..3 { for i in 0..1 { skip; } }",
        &["2:21 duplicate-name: `i` is already the variable of a loop around this one"],
    );
    check_body(
        "goto l; for i in 0..3 { l: goto l; }",
        &[
            "2:6 goto-into-loop: `goto l` jumps into a `for` loop | a `for` loop can be entered only at its start; write a `while` loop with a register",
        ],
    );
    check_body(
        "for i of 0..3 { x = ; }",
        &[
            "2:7 unexpected-token: expected `in`, found `of` | write `for i in 0..3`",
            "2:21 unexpected-token: expected an expression, found `;`",
        ],
    );
    check_body(
        "for i in 3 { skip; }",
        &[
            "2:12 unexpected-token: expected `..`, found `{` | a domain is `bool`, `int`, a machine word such as `u8`, an enum, or a range such as `0..3`, both ends included",
        ],
    );
    check_body(
        "for i in 0..=3 { skip; }",
        &["2:11 foreign-syntax: `..` already includes both ends | write `..`"],
    );
    check_body(
        "for i in 0..x { skip; }",
        &[
            "2:13 not-constant: the value must be known before the program runs | use numbers and names declared with `const`",
        ],
    );
    check_body(
        "for i in -9223372036854775808..0 { skip; }",
        &["2:10 bad-range: a loop cannot begin at -9223372036854775808"],
    );
    check(
        "process P { for i in 0..1 { skip; } }\nfinal P.i == 1;",
        &[
            "2:9 loop-variable: `i` is the variable of a loop, which properties cannot refer to | copy it to a register inside the loop: `let r = i;`",
        ],
    );
    check(
        "const i = 1; process P { for i in 0..1 { skip; } }",
        &["1:30 duplicate-name: `i` is already the name of a constant"],
    );
}

#[test]
fn quantifiers() {
    let process = "process P(k: 0..1)[2] { let r = 0; cs: skip; } process Q[*] { cs: skip; }\n";
    let check = |property: &str, expected: &[&str]| check(&format!("{process}{property}"), expected);
    check("forbid exists p in P, q in P: p != q && p@cs && q@cs;", &[]);
    check("final forall i in 0..2: x == i || (exists j in 0..i: a[j] == i) && true;", &[]);
    check("shared forall, exists; final forall == exists;", &[]);
    check(
        "forbid exists q in Q: q@cs;",
        &["2:20 no-instances: the instances of `Q` have no numbers | use `count`, as in `count(Q@cs) >= 2`"],
    );
    check(
        "forbid exists r in R: r@cs;",
        &[
            "2:20 unknown-name: there is no process or enumeration `R` before this | declare it first, or write a range: `forall i in 0..3: …`",
        ],
    );
    check(
        "forbid exists i in 0..1 a[i];",
        &[
            "2:25 unexpected-token: expected `:`, found `a` | write `forall i in 0..2: …`, and several variables as `forall i in 0..2, j in 0..2: …`",
        ],
    );
    // An error in the body is reported once.
    check(
        "forbid exists i in 0..9: a[i] == ;",
        &["2:34 unexpected-token: expected an expression, found `;`"],
    );
    check("forbid exists i in 0..2: 1 / (i - 1) == a[1 / (i - 1)];", &[]);
    check("forbid exists i in 0..1000000: a[i];", &["2:20 too-large: `i` has more than 100000 values"]);
    // What is read again counts, even if it is a comment.
    let comment = " ".repeat(1_000_000);
    check(
        &format!("forbid exists i in 0..99999: /*{comment}*/ a[i];"),
        &["2:1000039 too-large: the program is too large"],
    );
}

#[test]
fn constants_from_outside() {
    let text = "const N = 2; const M = N + 1;\nshared a[M];";
    let length = |constants: &[(&str, i64)]| {
        let constants = constants.iter().map(|(name, value)| ((*name).to_owned(), *value));
        let parsed = parse(&Source::new("t.pal", text).with_constants(constants));
        parsed.map(|parsed| parsed.program.shared[0].len).map_err(|errors| {
            errors
                .into_iter()
                .map(|error| (error.message, error.help.unwrap_or_default()))
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(length(&[]), Ok(Some(3)));
    assert_eq!(length(&[("N", 7)]), Ok(Some(8)));
    assert_eq!(length(&[("N", 7), ("N", 6)]), Ok(Some(7)));
    assert_eq!(length(&[("N", 7), ("M", 4)]), Ok(Some(4)));
    let errors = length(&[("N", 1), ("K", 4)]).expect_err("there is no such constant");
    let message = "`-D K=4`: the program has no constant `K`".to_owned();
    assert_eq!(errors, [(message, "its constants are N, M".to_owned())]);
}

#[test]
fn enumerations() {
    check("enum E { A, B, } shared x: E = B; process P(e: E) { for s in E { x = s; } x = any(E); }", &[]);
    check("enum E { A, A }", &["1:13 duplicate-name: `A` is declared twice"]);
    check(
        "enum E {}",
        &["1:6 empty-domain: the enumeration `E` has no values | write `enum E { First, Second }`"],
    );
    check(
        "enum E { A = 3 }",
        &[
            "1:12 unexpected-token: expected `,`, found `=` | the values are 0, 1, 2, … in this order; use `const` for other numbers",
        ],
    );
    check("enum E { A } shared E;", &["1:21 duplicate-name: `E` is already the name of an enumeration"]);
    check("enum E { A } shared A;", &["1:21 duplicate-name: `A` is already the name of a constant"]);
    check(
        "shared x: 0..1; process P { x = B; } enum E { A, B }",
        &[
            "1:50 late-constant: the constant `B` is used before it is declared | declare it before its first use, and do not use its name for anything else",
        ],
    );
}
