//! The two rewrites of edges (`src/edges.rs`): a store and a fence as one step, and a read by the only writer of a cell. Each
//! program here breaks one of their conditions, so that a rewrite would change the answer. Next to it is a program in which the
//! condition holds. The answers are also compared with brute force, and the checker, which has the rewrites of its own,
//! accepts the proofs.

use crate::spawning::{ENGINES, verdict};
use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_memory::{Machine, Model};
use palisade_syntax::{Language, parse};

/// Under SC, TSO and PSO.
type Words = [&'static str; 3];

const SAFE: Words = ["safe"; 3];
const UNSAFE: Words = ["unsafe"; 3];
/// Store buffers break it.
const BUFFERS: Words = ["safe", "unsafe", "unsafe"];
/// Stores that overtake each other break it.
const OVERTAKING: Words = ["safe", "safe", "unsafe"];

#[track_caller]
fn check(text: &str, expected: Words) {
    let source = Source::new("p", text);
    let program =
        parse(Language::Pal, &source).unwrap_or_else(|problems| panic!("{problems:?}\n{text}")).program;
    for (engine, model) in ENGINES {
        let expected = match model {
            Model::Sc => expected[0],
            Model::Tso => expected[1],
            Model::Pso => expected[2],
        };
        let found = verdict(&program, engine, model, 100_000);
        assert_eq!(found, expected, "{} {}: {text}", engine.name(), model.name());
        for any in 1..=2 {
            let instantiation = palisade_program::Instantiation { any, every: None };
            let system = palisade_program::lower(&program, instantiation);
            let scope = Scope { states: 5_000, buffer: Some(4) };
            match brute::check(Machine::new(&system, model), scope) {
                Answer::Unsafe(_) => assert_eq!(expected, "unsafe", "{any} each, {}: {text}", model.name()),
                Answer::Safe | Answer::Inconclusive => {}
            }
        }
    }
}

/// `P` with these steps before it looks at `y`, against a `Q` that does the same the other way round.
fn flags(steps: &str) -> String {
    format!(
        "shared x, y: 0..3; process P {{ {steps} if y == 0 {{ cs: skip; }} }}
         process Q {{ y = 1; fence; if x == 0 {{ cs: skip; }} }} forbid P@cs && Q@cs;"
    )
}

#[test]
fn control_enters_between_store_and_fence() {
    check(&flags("x = 1; fence;"), SAFE);
    check(&flags("choose { x = 1; } or { skip; } fence;"), UNSAFE);
    check(&flags("choose { x = 1; } or { goto l; } l: fence;"), UNSAFE);
    check(&flags("choose { x = 1; } or { x = 2; } l: fence;"), SAFE);
    check(
        &flags(
            "let again: bool = false; goto first; l: fence; if again { goto out; } again = true; goto l; first: x = 1; goto l; out: skip;",
        ),
        SAFE,
    );
}

#[test]
fn control_leaves_between_store_and_fence() {
    check(&flags("x = 1; choose { fence; } or { skip; }"), BUFFERS);
    check(&flags("x = 1; choose { goto l; } or { skip; } fence; l: skip;"), BUFFERS);
    check(&flags("x = 1; choose { fence; } or { fence; }"), SAFE);
    check(&flags("x = 1; choose { fence; } or { xchg(x, 1); }"), SAFE);
}

#[test]
fn other_steps_between_store_and_fence() {
    check(&flags("x = 1; let r = y; fence; assume(r == 0);"), SAFE);
    let early = |fence: &str| {
        format!(
            "shared x, y: 0..1; process P {{ x = 1; {fence} let r = y; fence; if r == 0 {{ cs: skip; }} }}
             process Q {{ y = 1; fence; if x == 0 {{ cs: skip; }} }} forbid P@cs && Q@cs;"
        )
    };
    check(&early(""), BUFFERS);
    check(&early("fence;"), SAFE);
}

#[test]
fn properties_that_name_the_place_between_store_and_fence() {
    let reached = "shared x: 0..1; process P { x = 1; mid: fence; after: skip; }
                   process Q { await x == 1; cs: skip; } forbid P@PLACE && Q@cs;";
    check(&reached.replace("PLACE", "mid"), UNSAFE);
    check(&reached.replace("PLACE", "after"), UNSAFE);
    let later = "shared x, y: 0..1; process P { x = 1; mid: fence; after: y = 1; }
                 process Q { await y == 1; cs: skip; } forbid P@PLACE && Q@cs;";
    check(&later.replace("PLACE", "mid"), SAFE);
    check(&later.replace("PLACE", "after"), SAFE);
}

#[test]
fn older_stores_are_pending() {
    let text = |between: &str| {
        format!(
            "shared x, y: 0..1; process P {{ y = 1; {between} x = 1; fence; }}
             process Q {{ await x == 1; if y == 0 {{ bad: skip; }} }} forbid Q@bad;"
        )
    };
    check(&text(""), OVERTAKING);
    check(&text("if x == 0 { skip; }"), OVERTAKING);
    check(&text("fence;"), SAFE);
    check(&text("sfence;"), SAFE);
    // The older store is to the same cell.
    let same = "shared x: 0..2; process P { x = 1; x = 2; fence; } process Q { await x == 2; if x == 1 { bad: skip; } } forbid Q@bad;";
    check(same, SAFE);
    check(&same.replace("x = 1; x = 2;", "x = 2; x = 1;"), UNSAFE);
}

#[test]
fn processes_without_number() {
    let text = |count: &str, fence: &str| {
        format!(
            "shared x, y: 0..1; process P{count} {{ x = 1; {fence} if y == 0 {{ cs: skip; }} }}
             process Q{count} {{ y = 1; {fence} if x == 0 {{ cs: skip; }} }} forbid count(P@cs) >= 1 && count(Q@cs) >= 1;"
        )
    };
    check(&text("[*]", "fence;"), SAFE);
    check(&text("[*]", ""), BUFFERS);
    let started = |fence: &str| {
        format!(
            "shared x, y: 0..1; process Main {{ loop {{ spawn P; spawn Q; }} }}
             process P on spawn {{ x = 1; {fence} if y == 0 {{ cs: skip; }} }}
             process Q on spawn {{ y = 1; {fence} if x == 0 {{ cs: skip; }} }} forbid count(P@cs) >= 1 && count(Q@cs) >= 1;"
        )
    };
    check(&started("fence;"), SAFE);
    check(&started(""), BUFFERS);
}

/// A store between the start of another process and a fence.
#[test]
fn starts_and_fences() {
    let text = |steps: &str| {
        format!("shared x: 0..1; process Main {{ {steps} }} process W on spawn {{ assert(x == 1); }}")
    };
    check(&text("x = 1; fence; spawn W;"), SAFE);
    check(&text("x = 1; spawn W; fence;"), BUFFERS);
    check(&text("spawn W; x = 1; fence;"), UNSAFE);
}

/// A process that reads what it stored, and others.
fn own_read(count: &str, others: &str) -> String {
    format!("shared x: 0..3; process P{count} {{ x = 1; x = 2; let r = x; assert(r == 2); }} {others}")
}

#[test]
fn several_writers() {
    check(&own_read("", ""), SAFE);
    check(&own_read("", "process Q { let r = x; }"), SAFE);
    check(&own_read("", "process Q { x = 3; }"), UNSAFE);
    check(&own_read("", "process Q { xchg(x, 3); }"), UNSAFE);
    check(&own_read("", "process Q { atomic { let r = x; x = 3; } }"), UNSAFE);
    check(&own_read("", "process Q { cas(x, 2, 3); }"), UNSAFE);
    check(&own_read("[1]", ""), SAFE);
    check(&own_read("[2]", ""), UNSAFE);
    check(&own_read("[*]", ""), UNSAFE);
    check(&own_read("", "process Q[*] { let r = x; }"), SAFE);
    check(&own_read("", "process Q[*] { x = 3; }"), UNSAFE);
}

#[test]
fn writers_by_parameter() {
    let text = |cell: &str| {
        format!(
            "shared x[2]: 0..3; process P(i: 0..1) {{ {cell} = 1; {cell} = 2; let r = {cell}; assert(r == 2); }}"
        )
    };
    check(&text("x[i]"), SAFE);
    check(&text("x[0]"), UNSAFE);
    check(&text("x[1 - i]"), SAFE);
}

#[test]
fn writers_that_are_started() {
    let main = |starts: &str| format!("process Main {{ {starts} }}");
    let worker = "shared x: 0..3; process W on spawn { x = 1; x = 2; let r = x; assert(r == 2); } ";
    check(&format!("{worker}{}", main("spawn W;")), SAFE);
    check(&format!("{worker}{}", main("spawn W; spawn W;")), UNSAFE);
    check(&format!("{worker}{}", main("loop { spawn W; }")), UNSAFE);
    let parent = "shared x: 0..3; process Main { x = 1; x = 2; STARTS let r = x; assert(r == 2); } ";
    let child = "process W on spawn { x = 3; }";
    check(&format!("{}{child}", parent.replace("STARTS", "spawn W;")), UNSAFE);
    let reader = "process W on spawn { let r = x; }";
    check(&format!("{}{reader}", parent.replace("STARTS", "spawn W;")), SAFE);
}

/// Where control flow meets, the writer may have stored several values.
#[test]
fn values_of_the_only_writer() {
    let text = |value: &str| {
        format!(
            "shared x: 0..3; process P {{ choose {{ x = 1; }} or {{ x = 2; }} let r = x; assert(r != {value}); }}"
        )
    };
    check(&text("1"), UNSAFE);
    check(&text("2"), UNSAFE);
    check(&text("0"), SAFE);
    let initially =
        |init: &str| format!("shared x: 0..1{init}; process P {{ let r = x; assert(r == 0); x = 1; }}");
    check(&initially(" = *"), UNSAFE);
    check(&initially(""), SAFE);
    // Other cells are read in order: the own read does not move the process in time.
    let order = "shared x, y, z: 0..1; process P { x = 1; let r = y; let s = x; let t = z; assert(!(r == 1 && s == 1 && t == 0)); }
                 process Q { STORES }";
    check(&order.replace("STORES", "z = 1; y = 1;"), OVERTAKING);
    check(&order.replace("STORES", "y = 1; z = 1;"), UNSAFE);
}
