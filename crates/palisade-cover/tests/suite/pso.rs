//! What PSO allows and forbids, in small programs with loops around them where buffers should grow without
//! bound.

use palisade_base::Source;
use palisade_cover::Sb;
use palisade_engine::{Engine, Limits, Options, Question, Safety, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_syntax::{Language, parse};

#[track_caller]
fn check_with(interlocked: Interlocked, text: &str, expected: &str) {
    let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is well formed").program;
    let threads = Threads::Declared;
    let task =
        Task { program: &program, threads, model: Model::Pso, interlocked, options: Options::default() };
    let verdict = Sb.check(&task.analysis(), &Limits::unlimited(1)).verdict;
    assert_eq!(Safety::word(&verdict), expected, "{text}\n{verdict:?}");
}

#[track_caller]
fn check(text: &str, expected: &str) {
    check_with(Interlocked::WholeBuffer, text, expected);
}

#[test]
fn stores_to_different_cells_overtake_each_other() {
    let program = |between: &str| {
        format!(
            "shared x, y: bool; process W {{ loop {{ x = true; {between} y = true; x = false; }} }} process R {{ let a = y; let b = x; assert(!a || b || true); }}
             shared d, f: bool; process P {{ d = true; {between} f = true; }} process Q {{ await f; if !d {{ bad: skip; }} }} forbid Q@bad;"
        )
    };
    check(&program(""), "unsafe");
    check(&program("sfence;"), "safe");
    check(&program("fence;"), "safe");
    let both = |between: &str| {
        format!(
            "shared x, y: 0..2; process P {{ x = 1; {between} y = 1; }} process Q {{ y = 2; {between} x = 2; }} final !(x == 1 && y == 2);"
        )
    };
    check(&both(""), "unsafe");
    check(&both("sfence;"), "safe");
}

#[test]
fn stores_to_one_cell_stay_in_order() {
    check(
        "shared x: 0..2; process W { x = 1; x = 2; } process R { let a = x; let b = x; assert(a <= b); }",
        "safe",
    );
    check("shared x: 0..2; process W { x = 1; x = 2; } final x == 2;", "safe");
    check(
        "shared x: 0..1; process W { loop { x = 1; } } process R { await x == 1; await x == 0; bad: skip; } forbid R@bad;",
        "safe",
    );
    check(
        "shared x: 0..1; process W { loop { x = 1; x = 0; } } process R { await x == 1; await x == 0; bad: skip; } forbid R@bad;",
        "unsafe",
    );
}

#[test]
fn processes_see_their_own_stores() {
    check("shared x: bool; process P { x = true; assert(x); sfence; assert(x); }", "safe");
    // After a store-store fence the store is still pending, and only the process itself sees it.
    let text = "shared x, y: bool; process P(i: 0..1) { if i == 0 { x = true; sfence; let a = x; let b = y; if a && !b { l: skip; } } else { y = true; sfence; let c = y; let d = x; if c && !d { m: skip; } } } forbid P(0)@l && P(1)@m;";
    check(text, "unsafe");
    check(&text.replace("sfence", "fence"), "safe");
}

#[test]
fn a_store_store_fence_orders_stores_that_no_element_requires() {
    // z = 1 must reach memory before y = 1 does, and after that no process sets z to 0 again.
    let text = "shared y, z: bool; process W { z = true; sfence; y = true; } process R { await y; await !z; bad: skip; } forbid R@bad;";
    check(text, "safe");
    check(&text.replace("sfence;", ""), "unsafe");
}

#[test]
fn locked_instructions_wait_for_the_buffer_or_for_their_cell() {
    let text = "shared x, y, l: bool; process P(i: 0..1) { if i == 0 { x = true; let o = xchg(l, true); let b = y; if !b { m: skip; } } else { y = true; let p = xchg(l, true); let c = x; if !c { n: skip; } } } forbid P(0)@m && P(1)@n;";
    check(text, "safe");
    check_with(Interlocked::OwnAddress, text, "unsafe");
    // An atomic block always waits for the whole buffer.
    let block = text
        .replace("let o = xchg(l, true)", "atomic { l = true; }")
        .replace("let p = xchg(l, true)", "atomic { l = true; }");
    check_with(Interlocked::OwnAddress, &block, "safe");
    // A store-store fence before a locked instruction makes it wait.
    let fenced = text.replace("let o", "sfence; let o").replace("let p", "sfence; let p");
    check_with(Interlocked::OwnAddress, &fenced, "safe");
    // It waits for its own cell.
    let own = "shared x: 0..2; process P { x = 1; let o = fetch_add(x, 1); assert(o == 1); }";
    check_with(Interlocked::OwnAddress, own, "safe");
}

#[test]
fn memory_is_judged_with_nothing_pending() {
    check("shared x, y: bool; process P { x = true; y = true; } forbid y && !x;", "safe");
    check("shared x: bool; process P { l: x = true; m: skip; } forbid P@m && !x;", "safe");
    check("shared x: 0..2; process P[2] { x = 1; x = 2; } final x == 2;", "safe");
    check(
        "shared x, y: 0..1; process P[*] { x = 1; y = 1; } process R { let a = y; let b = x; if a == 1 && b == 0 { bad: skip; } } forbid R@bad;",
        "unsafe",
    );
    check(
        "shared x, y: 0..1; process P[*] { x = 1; sfence; y = 1; } process R { let a = y; let b = x; if a == 1 && b == 0 { bad: skip; } } forbid R@bad;",
        "safe",
    );
}
