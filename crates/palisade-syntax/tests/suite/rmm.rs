//! The translation of `.rmm` programs into `.pal`.

use crate::languages::{self, lines};

use palisade_base::Source;
use palisade_program::print::print;
use palisade_syntax::{Language, Parsed};

fn parsed(text: &str) -> Parsed {
    languages::parsed(Language::Rmm, text)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    languages::check_translation(Language::Rmm, text, expected);
}

/// One process with registers `$r`, `$s` (0 to 3) and `$z` (any integer), global variables `x`, `y` (0 to 3)
/// and a label `A`.
#[track_caller]
fn check_statements(text: &str, expected: &[&str]) {
    let file = format!(
        "forbidden A data x = 0 : [0:3] y = 0 : [0:3] process registers $r = 0 : [0:3] $s = 0 : [0:3] $z = 0 \
         text {text}; A: nop"
    );
    let printed = print(&parsed(&file).program);
    let body = printed.split_once("process P0 {").expect("there is one process").1;
    let body = lines(body);
    let end = body.iter().position(|line| line == "A: skip;").expect("it ends with the label");
    let found: Vec<&str> =
        body[..end].iter().map(String::as_str).filter(|line| !line.starts_with("let ")).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn reads_and_writes() {
    check_statements("nop", &["skip;"]);
    check_statements("read: x = 1", &["await x == 1;"]);
    check_statements("read: x = $r + 1 - $s", &["await x == r + 1 - s;"]);
    check_statements("read: $r := x", &["r = x;"]);
    check_statements("write: x := 2", &["x = 2;"]);
    check_statements("locked write: x := 2", &["atomic {", "x = 2;", "}"]);
    check_statements("slocked write: x := 2", &["sfence;", "x = 2;", "sfence;"]);
    check_statements("syncwr: x := 2", &["atomic {", "x = 2;", "}"]);
    check_statements("syncrd: x = 1", &["fence;", "await x == 1;"]);
    check_statements("syncrd: $r := x", &["fence;", "r = x;"]);
    check_statements("cas(x,0,$r)", &["await cas(x, 0, r);"]);
    check_statements("fence; ssfence; llfence", &["fence;", "sfence;", "skip;"]);
}

#[test]
fn registers_and_conditions() {
    check_statements("$r := -1 + (2 - $s)", &["r = -1 + (2 - s);"]);
    check_statements("assume: not $r = 1 && $s < 2", &["assume(!(r == 1) && s < 2);"]);
    check_statements("assume: [$r >= 1 || true] && not false", &["assume((r >= 1 || true) && !false);"]);
    check_statements("assume: $r <= 1 || $r > 2 && $r != 3", &["assume(r <= 1 || r > 2 && r != 3);"]);
}

#[test]
fn control() {
    check_statements("if $r = 1 then fence", &["if r == 1 {", "fence;", "}"]);
    check_statements(
        "if $r = 1 then {fence; nop} else nop",
        &["if r == 1 {", "fence;", "skip;", "} else {", "skip;", "}"],
    );
    check_statements("while $r = 1 do read: $r := x", &["while r == 1 {", "r = x;", "}"]);
    check_statements("B: goto B", &["B: goto B;"]);
    check_statements("if $r = 1 then B: nop; goto B", &["if r == 1 {", "B: skip;", "}", "goto B;"]);
    check_statements(
        "either{ read: x = 0 or read: x = 1; nop }",
        &["choose {", "await x == 0;", "} or {", "await x == 1;", "skip;", "}"],
    );
    check_statements("either{ nop }", &["{", "skip;", "}"]);
    check_statements("B: syncrd: x = 1", &["B: fence;", "await x == 1;"]);
    check_statements("end: goto end", &["end_2:", "goto end_2;"]);
}

#[test]
fn locked_blocks() {
    check_statements("locked{ read: x = 0; write: x := 1 }", &["atomic {", "assume(x == 0);", "x = 1;", "}"]);
    check_statements(
        "locked{ read: x = 0 or write: y := 1 }",
        &["atomic {", "choose {", "assume(x == 0);", "} or {", "y = 1;", "}", "}"],
    );
    check_statements(
        "locked{ cas(x,0,1); locked write: y := 1; slocked write: y := 2 }",
        &["atomic {", "assume(x == 0);", "x = 1;", "y = 1;", "y = 2;", "}"],
    );
    // A block that reads only once is an ordinary block: it does not drain the buffer.
    check_statements("locked{ read: $r := x; assume: $r = 1 }", &["{", "r = x;", "assume(r == 1);", "}"]);
    check_statements(
        "locked{ read: x = 1 or locked{ read: y = 1 } }",
        &["choose {", "await x == 1;", "} or {", "{", "await y == 1;", "}", "}"],
    );
    check_statements(
        "locked{ read: x = 1; {read: y = 1; nop} }",
        &["atomic {", "assume(x == 1);", "{", "assume(y == 1);", "skip;", "}", "}"],
    );
}

#[test]
fn pointers() {
    check_statements("write: [1] := 0", &["y = 0;"]);
    check_statements("write: [2-1] := 0", &["y = 0;"]);
    check_statements("read: $r := [$r]", &["assume(r < 2);", "r = *(r + 1);"]);
    check_statements("read: [$r-1] = 0", &["assume(r >= 1 && r < 3);", "await *r == 0;"]);
    check_statements("read: [$z] = 0", &["assume(z >= 0 && z < 2);", "await *(z + 1) == 0;"]);
    check_statements(
        "cas([$r-$s],0,1)",
        &["assume(r - s >= 0 && r - s < 2);", "await cas(*(r - s + 1), 0, 1);"],
    );
    check_statements("B: syncrd: $s := [$r]", &["B: assume(r < 2);", "fence;", "s = *(r + 1);"]);
    check_statements("locked{ write: [$r] := 1 }", &["atomic {", "assume(r < 2);", "*(r + 1) = 1;", "}"]);
    // A pointer that is always valid is not guarded.
    check(
        "forbidden A data x = 0 : [0:1] y = 0 : [0:1] process registers $p = 1 : [1:2] text A: write: [$p-1] := 1",
        "shared x, y: 0..1 blocking;
         process P0 { let p: 1..2 blocking = 1; A: *p = 1; }
         forbid P0@A;"
            .replace("{ ", "{\n")
            .replace("; ", ";\n")
            .replace(" }", "\n}")
            .as_str(),
    );
}

#[test]
fn variables_and_initial_values() {
    check(
        "forbidden A data x = * : [-2:-1] y = 3 : Z z = -1 process text A: write: x := -2; write: y := 4; write: z := 0",
        "shared x: -2..-1 blocking = *;
         shared y = 3;
         shared z = -1;
         process P0 {
         A: x = -2;
            y = 4;
            z = 0;
         }
         forbid P0@A;",
    );
}

/// A `*` register that is always written before it is read gets a fixed initial value.
#[test]
fn arbitrary_registers() {
    let check = |text: &str, expected: &str| {
        let file = format!("forbidden A data x = 0 : [0:1] process registers {text}; A: nop");
        let printed = print(&parsed(&file).program);
        assert!(printed.contains(expected), "{text}\n{printed}");
    };
    check("$r = * : [0:1] text write: x := $r", "let r: 0..1 blocking = *;");
    check("$r = * : [0:1] text read: $r := x; write: x := $r", "let r: 0..1 blocking = 0;");
    check("$r = * : [2:3] text read: $r := x; write: x := $r", "let r: 2..3 blocking = 2;");
    check("$r = * : Z text read: $r := x; write: x := $r", "let r = 0;");
    check("$r = * : Z text B: read: $r := x; if $r = 0 then goto B", "let r = 0;");
    check("$r = * : [0:1] text either{ read: $r := x or nop }; write: x := $r", "= *;");
    check("$r = * : [0:1] text either{ read: $r := x or $r := 1 }; write: x := $r", "= 0;");
    check("$r = * : [0:1] $s = 0 text while $s = 0 do read: $r := x; write: x := $r", "= *;");
    check("$r = * : [0:1] $s = 0 text if $s = 0 then read: $r := x else goto A; write: x := $r", "= 0;");
    check("$r = * : [0:1] $s = 0 text if $s = 0 then read: $r := x; write: x := $r", "= *;");
    check("$r = * : [0:1] text $r := $r", "= *;");
    check("$r = * : [0:1] text read: $r := [$r]", "= *;");
    check("$r = * : [0:1] text goto B; write: x := $r; B: read: $r := x", "= 0;");
}

#[test]
fn own_and_other_copies() {
    check(
        "forbidden A A process data f = 0 : [0:1] text A: write: f[my] := 1; read: f[0] = 0 \
         process data f = 1 : [0:1] text A: write: f[my] := 0; read: f[0] = 1",
        "shared f[2]: 0..1 blocking = [0, 1];
         process P0 {
         A: f[0] = 1;
            await f[1] == 0;
         }
         process P1 {
         A: f[1] = 0;
            await f[0] == 1;
         }
         forbid P0@A && P1@A;",
    );
    check(
        "forbidden A A process(2) data f = 0 : [0:1] text A: write: f[my] := 1; read: f[0] = 0",
        "shared f[2]: 0..1 blocking;
         process P0(me: 0..1) {
         A: f[me] = 1;
            await f[1 - me] == 0;
         }
         forbid count(P0@A) >= 2;",
    );
    check(
        "forbidden * A * * * process data f = 0 : [0:1] text nop \
         process(3) data f = 0 : [0:1] text A: read: f[0] = 0; read: f[1] = 1; read: f[2] = 0; read: f[3] = 0 \
         process data f = 0 : [0:1] text nop",
        "shared f[5]: 0..1 blocking;
         process P0 {
            skip;
         }
         process P1(me: 1..3) {
         A: await f[0] == 0;
            await f[1 + (me <= 1)] == 1;
            await f[2 + (me <= 2)] == 0;
            await f[4] == 0;
         }
         process P4 {
            skip;
         }
         forbid P1(1)@A;",
    );
}

/// Copies that do not form an array are separate variables.
#[test]
fn copies_that_differ() {
    check(
        "forbidden A * * process data f = 0 : [0:1] text A: write: f[my] := 1; read: f[0] = 2 \
         process(2) data f = 0 : [0:2] text write: f[my] := 2; read: f[0] = 1; read: f[1] = 0",
        "shared f_0: 0..1 blocking;
         shared f_1, f_2: 0..2 blocking;
         process P0 {
         A: f_0 = 1;
            await f_1 == 2;
         }
         process P1 {
            f_1 = 2;
            await f_0 == 1;
            await f_2 == 0;
         }
         process P2 {
            f_2 = 2;
            await f_0 == 1;
            await f_1 == 0;
         }
         forbid P0@A;",
    );
    check(
        "forbidden A * data f = 0 : [0:1] process data f = 0 : [0:1] text A: write: f := 1; write: f[my] := 1 \
         process text read: f[0] = 1",
        "shared f, f_0: 0..1 blocking;
         process P0 {
         A: f = 1;
            f_0 = 1;
         }
         process P1 {
            await f_0 == 1;
         }
         forbid P0@A;",
    );
}

#[test]
fn names_that_pal_does_not_accept() {
    check(
        "forbidden loop * data shared = 0 : [0:1] x = 0 : [0:1] P0 = 0 : [0:1] \
         process registers $x = 0 : [0:1] $0 = 0 : [0:1] $P1 = 0 : [0:1] text \
         loop: read: $x := x; read: $0 := shared; $P1 := $x + $0; write: P0 := $P1; goto loop \
         process text nop",
        "shared shared_2, x, P0: 0..1 blocking;
         process P0_2 {
            let r_x: 0..1 blocking = 0;
            let r_0: 0..1 blocking = 0;
            let r_P1: 0..1 blocking = 0;
         loop_2:
            r_x = x;
            r_0 = shared_2;
            r_P1 = r_x + r_0;
            P0 = r_P1;
            goto loop_2;
         }
         process P1 {
            skip;
         }
         forbid P0_2@loop_2;",
    );
}

#[test]
fn forbidden_combinations() {
    let check = |combinations: &str, processes: &str, expected: &[&str]| {
        let printed = print(&parsed(&format!("forbidden {combinations} {processes}")).program);
        let found: Vec<&str> = printed.lines().filter(|line| line.starts_with("forbid")).collect();
        assert_eq!(found, expected, "{combinations}");
    };
    let processes = "process(3) text A: nop; B: nop process text A: nop";
    check("A A A A", processes, &["forbid count(P0@A) >= 3 && P3@A;"]);
    check("A A * *; A * A *; * A A *", processes, &["forbid count(P0@A) >= 2;"]);
    check(
        "A A * *; A * A *; A * A *",
        processes,
        &["forbid P0[0]@A && P0[1]@A;", "forbid P0[0]@A && P0[2]@A;"],
    );
    check(
        "A * * A; * * A A; * A * A; * * * A",
        processes,
        &["forbid count(P0@A) >= 1 && P3@A;", "forbid P3@A;"],
    );
    check("A B * *; B A * *", processes, &["forbid P0[0]@A && P0[1]@B;", "forbid P0[0]@B && P0[1]@A;"]);
}

#[test]
fn macros_predicates_and_comments() {
    check(
        "/* a */ forbidden C C /* the states
         to look for */ predicates $r = 0; $r > 1 && true
         macro N() 1 endmacro
         data lck = 0 : [0:N()] /**/
         macro lock(l) cas(l,0,1); llfence endmacro
         macro worker(l,n)
         process registers $r = 0 : [0:2] text
         L: lock(l); $r := n; C: syncwr: l := 0
         endmacro
         worker(lck,1); goto L
         worker([0],(1+1))",
        "shared lck: 0..1 blocking;
         process P0 {
            let r: 0..2 blocking = 0;
         L: await cas(lck, 0, 1);
            skip;
            r = 1;
         C: atomic {
               lck = 0;
            }
            goto L;
         }
         process P1 {
            let r: 0..2 blocking = 0;
         L: await cas(lck, 0, 1);
            skip;
            r = 1 + 1;
         C: atomic {
               lck = 0;
            }
         }
         forbid P0@C && P1@C;",
    );
}

/// The span of a step is in the macro, not at the call.
#[test]
fn places_in_macros() {
    let text = "forbidden A data x = 0 : [0:1] macro put(v) write: x := v endmacro process text A: put(1)";
    let program = parsed(text).program;
    let source = Source::new("test.rmm", text);
    let body = &program.templates[0].body;
    assert_eq!(source.slice(body[0].span()), "write: x := v");
    assert_eq!(source.slice(body[0].labels[0].span()), "A");
}

#[test]
fn values_outside_domains_are_reported() {
    let check = |statement: &str, expected: &[&str]| {
        let file = format!(
            "forbidden A data x = 0 : [0:2] process registers $r = 0 : [0:1] text {statement}; A: nop"
        );
        let warnings = parsed(&file).warnings;
        let found: Vec<&str> = warnings.iter().map(|warning| warning.id).collect();
        assert_eq!(found, expected, "{statement}");
    };
    check("write: x := 2", &[]);
    check("write: x := 3", &["outside-domain"]);
    check("read: x = 0-1", &["outside-domain"]);
    check("cas(x,2,3)", &["outside-domain"]);
    check("$r := 2", &["outside-domain"]);
    check("read: $r := x", &[]);
    check("locked{ read: x = 0; read: x = 1 }", &["locked-reads"]);
}

/// The examples in the documentation are valid programs.
#[test]
fn documentation() {
    let text = include_str!("../../../../docs/rmm.md");
    let examples: Vec<&str> = text
        .split("```rmm\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(example, _)| example))
        .collect();
    assert!(examples.len() >= 2);
    for example in examples {
        assert!(parsed(example).warnings.is_empty(), "{example}");
    }
}
