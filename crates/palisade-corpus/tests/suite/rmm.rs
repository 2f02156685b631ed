//! The semantics of `.rmm`: verdicts of small programs under SC, TSO and PSO. Explicit search decides all of
//! them.

use palisade::{CheckOptions, EngineChoice, Language, Model, Source, Verdict};

/// `expected` has one word per model: SC, TSO, PSO.
#[track_caller]
fn check(text: &str, expected: &str) {
    let input = palisade::read(Source::new("test.rmm", text), Language::Rmm, None)
        .unwrap_or_else(|refused| panic!("{refused:?}\nin\n{text}"));
    let found: Vec<&str> = Model::ALL
        .into_iter()
        .map(|model| {
            let engine = EngineChoice::Named("explicit".to_owned());
            let answer = palisade::check_simply(
                &input.program,
                CheckOptions { model, engine, ..CheckOptions::default() },
            );
            match answer.outcome.verdict {
                Verdict::Holds => "safe",
                Verdict::Violated(_) => "unsafe",
                Verdict::Unknown(_) => "unknown",
            }
        })
        .collect();
    assert_eq!(found.join(" "), expected, "{text}");
}

/// Store buffering between two processes. `first` and `second` are the statements of each.
#[track_caller]
fn check_store_buffering(first: &str, second: &str, expected: &str) {
    check(
        &format!(
            "forbidden E E data x = 0 : [0:1] y = 0 : [0:1] z = 0 : [0:1]
             process registers $r = 1 : [0:1] text {first}; assume: $r = 0; E: nop
             process registers $r = 1 : [0:1] text {second}; assume: $r = 0; E: nop"
        ),
        expected,
    );
}

#[test]
fn instructions_that_drain_the_buffer() {
    let other = "write: y := 1; fence; read: $r := x";
    check_store_buffering("write: x := 1; read: $r := y", other, "safe unsafe unsafe");
    check_store_buffering("write: x := 1; fence; read: $r := y", other, "safe safe safe");
    check_store_buffering("locked write: x := 1; read: $r := y", other, "safe safe safe");
    check_store_buffering("syncwr: x := 1; read: $r := y", other, "safe safe safe");
    check_store_buffering("cas(x,0,1); read: $r := y", other, "safe safe safe");
    check_store_buffering("write: x := 1; syncrd: $r := y", other, "safe safe safe");
    check_store_buffering("write: x := 1; cas(z,0,1); read: $r := y", other, "safe safe safe");
    check_store_buffering("write: x := 1; locked{ write: z := 1 }; read: $r := y", other, "safe safe safe");
    check_store_buffering(
        "write: x := 1; locked{ nop or write: z := 1 }; read: $r := y",
        other,
        "safe safe safe",
    );
    check_store_buffering("locked{ write: x := 1; nop }; read: $r := y", other, "safe safe safe");
    // These do not drain the buffer.
    check_store_buffering("write: x := 1; ssfence; read: $r := y", other, "safe unsafe unsafe");
    check_store_buffering("write: x := 1; llfence; read: $r := y", other, "safe unsafe unsafe");
    check_store_buffering("slocked write: x := 1; read: $r := y", other, "safe unsafe unsafe");
    check_store_buffering("write: x := 1; locked{ read: $r := y }", other, "safe unsafe unsafe");
    check_store_buffering("write: x := 1; locked{ read: z = 0 }; read: $r := y", other, "safe unsafe unsafe");
}

#[test]
fn instructions_that_order_stores() {
    let check = |writer: &str, expected| {
        check(
            &format!(
                "forbidden * E data x = 0 : [0:1] y = 0 : [0:1] process text {writer}
                 process text read: y = 1; read: x = 0; E: nop"
            ),
            expected,
        );
    };
    check("write: x := 1; write: y := 1", "safe safe unsafe");
    check("write: x := 1; ssfence; write: y := 1", "safe safe safe");
    check("slocked write: x := 1; write: y := 1", "safe safe safe");
    check("write: x := 1; slocked write: y := 1", "safe safe safe");
    check("write: x := 1; llfence; write: y := 1", "safe safe unsafe");
    check("locked write: x := 1; write: y := 1", "safe safe safe");
}

#[test]
fn statements_that_block() {
    let check = |statements: &str, expected| {
        let declared = "data x = 0 : [0:1] process registers $r = 0 : [0:1] $s = 0 : [0:5] text";
        check(&format!("forbidden E {declared} {statements}; E: nop"), expected);
    };
    check("nop", "unsafe unsafe unsafe");
    check("read: x = 1", "safe safe safe");
    check("write: x := 1; read: x = 1", "unsafe unsafe unsafe");
    check("cas(x,1,0)", "safe safe safe");
    check("cas(x,0,1); read: x = 1", "unsafe unsafe unsafe");
    check("write: x := 2", "safe safe safe");
    check("$r := 2", "safe safe safe");
    check("locked{ write: x := 1; assume: $r = 1 }", "safe safe safe");
    check("locked{ write: x := 1; assume: $r = 1 or nop }; read: x = 0", "unsafe unsafe unsafe");
    check("$s := 3; write: [$s] := 1", "safe safe safe");
    check("$s := 0; write: [$s] := 1; read: x = 1", "unsafe unsafe unsafe");
    check("either{ assume: false or nop }", "unsafe unsafe unsafe");
    check("while true do nop", "safe safe safe");
}

/// A read into a register waits for a value in the register's domain.
#[test]
fn reads_wait_for_values_in_the_domain() {
    check(
        "forbidden E * data x = 5 : [0:5] process registers $r = 0 : [0:1] text read: $r := x; E: nop
         process text write: x := 1",
        "unsafe unsafe unsafe",
    );
    check(
        "forbidden E * data x = 5 : [0:5] process registers $r = 0 : [0:1] text read: $r := x; E: nop
         process text write: x := 4",
        "safe safe safe",
    );
}

/// `x[0]` means process 1's variable in process 0, and process 0's in the others. Pointers never reach these
/// cells.
#[test]
fn own_and_other_memory() {
    check(
        "forbidden * A A
         process(3) data f = 0 : [0:3] registers $r = 0 : [0:3] text write: f[my] := 1; fence; read: $r := f[1]; assume: $r = 0; A: nop",
        "safe safe safe",
    );
    check(
        "forbidden A * process data f = 0 : [0:1] text read: f[0] = 1; A: nop process data f = 1 : [0:1] text nop",
        "unsafe unsafe unsafe",
    );
    check(
        "forbidden A * data x = 0 : [0:1] process data f = 0 : [0:1] registers $r = 1 : [0:1] text write: [$r] := 1; A: nop \
         process data f = 0 : [0:1] text nop",
        "safe safe safe",
    );
}

/// Programs on which other tools are known to give wrong answers.
#[test]
fn programs_that_other_tools_get_wrong() {
    check(
        "forbidden BAD data x = 0 : [0:1] process registers $r = 0 : [0:1] text
         locked write: x := 1; read: $r := x; read: x = 1; assume: $r = 1; BAD: nop",
        "unsafe unsafe unsafe",
    );
    check(
        "forbidden BAD * data x = 0 : [0:1] process text write: x := 1; read: x = 0; BAD: nop process text write: x := 1",
        "safe safe safe",
    );
    check(
        "forbidden E E data x = 0 : [0:1] y = 0 : [0:1] process text write: y := 1; E: nop process text cas(x,0,1); E: nop",
        "unsafe unsafe unsafe",
    );
}
