//! The behaviour of lowered programs, found by exploring all their runs under sequential consistency.
//!
//! The expected outcomes are worked out by hand from the meaning of the written program.

use crate::common;

use common::system;
use palisade_memory::{Machine, Model, State};
use palisade_program::running::System;
use std::collections::{BTreeSet, HashSet};

/// All reachable states.
fn reachable(system: &System) -> HashSet<State> {
    let machine = Machine::new(system, Model::Sc);
    let mut seen: HashSet<State> = machine.initial_states().collect();
    let mut open: Vec<State> = seen.iter().cloned().collect();
    while let Some(state) = open.pop() {
        for successor in machine.successors(&state) {
            if seen.insert(successor.state.clone()) {
                open.push(successor.state);
            }
        }
    }
    seen
}

/// The faults that can happen, and the values of `x` and `y` (the first two cells) when all processes have
/// ended.
fn outcomes(text: &str) -> BTreeSet<String> {
    let system = system(text);
    let machine = Machine::new(&system, Model::Sc);
    let mut outcomes = BTreeSet::new();
    for state in reachable(&system) {
        if let Some((_, fault)) = state.fault {
            outcomes.insert(fault.to_string());
        } else if state.threads.iter().all(|thread| thread.has_ended(&system)) {
            assert!(state.section.is_none(), "a process ended inside an atomic section");
            let cells: Vec<String> = state.memory.iter().take(2).map(i64::to_string).collect();
            outcomes.insert(cells.join(" "));
        }
        if machine.violation(&state).is_some() && state.fault.is_none() {
            outcomes.insert("violation".to_owned());
        }
    }
    outcomes
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|outcome| (*outcome).to_owned()).collect();
    assert_eq!(outcomes(text), expected, "{text}");
}

/// Checks a single process.
#[track_caller]
fn check_body(body: &str, expected: &[&str]) {
    check(&format!("shared x, y, a[3]; process P {{ {body} }}"), expected);
}

#[test]
fn expressions() {
    check_body("x = 7; y = x - 2 * 3 % 4;", &["7 5"]);
    check_body("x = 5; y = 10 * (x == 5);", &["5 10"]);
    check_body("x = 2; a[x] = 9; y = a[x] + *(&a[2]) + !x + ~0;", &["2 17"]);
    check_body("x = 1; y = x && 7 || 1 / x == 0;", &["1 1"]);
    check_body("x = 0; y = x && 1 / x;", &["0 0"]);
    check_body("x = 0; y = x || 1 / x;", &["division by zero"]);
    check_body("y = cas(x, 0, 3) + 10 * cas(x, 0, 4) + 100 * xchg(x, 5);", &["5 301"]);
    check_body("y = any(1..3) * 10 + any(0..1);", &["0 10", "0 11", "0 20", "0 21", "0 30", "0 31"]);
    check_body("x = &a[1]; *x = 4; y = a[1];", &["4 4"]);
    check_body("x = 3; y = &a[x];", &["array index out of bounds"]);
    check_body("*x = 1;", &["null pointer dereferenced"]);
}

#[test]
fn control_flow() {
    check_body(
        "let i; while i < 5 { i = i + 1; if i == 2 { continue; } if i == 4 { break; } y = y + i; } x = i;",
        &["4 4"],
    );
    check_body("choose { loop { x = x + 1; if x == 2 { break; } } } or { x = 7; }", &["2 0", "7 0"]);
    check_body("choose { goto l; } or { x = 1; } y = 1; return; l: y = 2;", &["0 2", "1 1"]);
    check_body(
        "let r = any(0..1); if r { goto l; } x = 1; return; l: atomic { y = 1; goto m; } m: x = 2;",
        &["1 0", "2 1"],
    );
    check_body("let i; l: let r; r = r + 1; i = i + 1; if i < 3 { goto l; } x = r; y = i;", &["1 3"]);
    check_body(
        "choose {} or { assume(0); x = 1; } choose { await x == 0; } or { await x == 1; y = 1; }",
        &["0 0"],
    );
    check_body("loop { atomic { x = x + 1; if x == 3 { break; } } } y = 1;", &["3 1"]);
    check_body("assert(x == 0 && y == 0); x = 1; assert(!(x == 1 && y == 0));", &["assertion failed"]);
    check_body("await cas(x, 0, 1) && cas(y, 0, 2);", &["1 2"]);
}

#[test]
fn procedures_and_spawns() {
    check(
        "shared x, y; proc fac(n: 0..5) -> int { if n == 0 { return 1; } return n * fac(n - 1); }
        process P { x = fac(5); y = fac(3) - fac(2); }",
        &["120 4"],
    );
    check(
        "shared x, y; proc twice(n) { atomic { atomic { if n { return; } } x = x + 1; } y = 1; }
        process P { twice(1); twice(0); }",
        &["1 1"],
    );
    check(
        "shared x, y; process P { spawn Q(1); spawn Q(2); } process Q(i: 1..2) on spawn { atomic { x = x * 3 + i; } }",
        &["5 0", "7 0"],
    );
    check(
        "process P { spawn Q(3); } process Q(i: 1..2) on spawn { }",
        &["value 3 is outside the declared domain"],
    );
    // The division is evaluated before the call, which never returns.
    check(
        "shared x, y; proc f() -> int { loop {} return 1; } process P { y = 1 / x + f(); }",
        &["division by zero"],
    );
}

#[test]
fn interleavings() {
    check("shared x, y; process P[2] { let r = x; x = r + 1; }", &["1 0", "2 0"]);
    check("shared x, y; process P[2] { atomic { x = x + 1; } }", &["2 0"]);
    check("shared x, y; process P[3] { fetch_add(x, 1); }", &["3 0"]);
    check(
        "shared x, y; process P { x = 1; y = 1; } process Q { let r = y; let s = x; }
        final !(Q.r == 1 && Q.s == 0);",
        &["1 1"],
    );
    check("shared x, y; process P(i: 0..1) { cs: skip; } forbid P(0)@cs && P(1)@cs;", &["0 0", "violation"]);
    check(
        "shared x, y; process P[2] { await cas(x, 0, 1); cs: skip; x = 0; } forbid count(P@cs) >= 2;",
        &["0 0"],
    );
}

#[test]
fn peterson_is_right_without_store_buffers() {
    check(
        "shared x, y; shared flag[2]: bool; shared turn: 0..1 = *;
        process P(i: 0..1) {
            flag[i] = true;
            turn = 1 - i;
            while flag[1 - i] && turn == 1 - i {}
        cs: x = x + 1;
            flag[i] = false;
        }
        forbid P(0)@cs && P(1)@cs;",
        &["2 0"],
    );
}

#[test]
fn private_variables_belong_to_a_process_and_the_procedures_it_calls() {
    // The procedure sees the value assigned by the process, and the process sees the value assigned by the
    // procedure.
    check(
        "shared x, y; private p: 0..9; proc twice() { p = 2 * p; } process P { p = 3; twice(); twice(); x = p; y = 1; }",
        &["value 12 is outside the declared domain"],
    );
    // Every process has its own copy, which starts at 0.
    check(
        "shared x, y; private p; proc set(v) { p = p + v; } process P { set(1); x = p; } process Q { set(2); y = p; }",
        &["1 2"],
    );
    // Nested calls pass it on and back.
    check(
        "shared x, y; private p; proc down(n) { p = p + 1; if n > 0 { down(n - 1); } y = p; } process P { down(3); x = p; }",
        &["4 4"],
    );
    // Operands to the left of a call are read before it.
    check(
        "shared x, y; private p; proc next() -> int { p = p + 1; return p; } process P { x = p + 10 * next(); y = next() + 10 * p; }",
        &["10 22"],
    );
    check(
        "shared x, y; private p; proc next() -> int { p = p + 1; return p; } proc f(a, b) -> int { return a + 10 * b; } \
         process P { x = f(p, next()); if p == 1 && next() == 2 && p == 2 { y = 1; } }",
        &["10 1"],
    );
    // A spawned process also starts with 0.
    check(
        "shared x, y; private p; process P { p = 5; spawn Q; x = p; } process Q on spawn { y = p; }",
        &["5 0"],
    );
}
