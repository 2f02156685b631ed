//! Translated programs are valid, readable and linear in size, and safe iff the program is safe under TSO
//! within the bound.

use palisade_base::{Severity, Source};
use palisade_bounded::{Bounded, translate, translate_age, translate_rounds};
use palisade_engine::{Engine, Limits, Task};
use palisade_memory::Model;
use palisade_program::written::{Block, Program, StmtKind};
use palisade_program::{print, validate};
use palisade_syntax::{Language, parse};

fn read(text: &str) -> Program {
    parse(Language::Pal, &Source::new("test.pal", text)).unwrap_or_else(|e| panic!("{e:?}\n{text}")).program
}

/// The verdict on a translation under SC. The translation must be a valid program that can be parsed again.
fn verdict(program: &Program) -> &'static str {
    let errors: Vec<_> = validate(program).into_iter().filter(|d| d.severity == Severity::Error).collect();
    let text = print::print(program);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    assert_eq!(read(&text), *program, "{text}");
    let task = Task::new(program, Model::Sc);
    let outcome = palisade_explore::Explicit.check(&task.analysis(), &Limits::unlimited(1));
    outcome.word()
}

/// The verdicts for the bounds from 0 to 3.
fn check(text: &str, rounds: [&str; 4], age: [&str; 4]) {
    let program = read(text);
    for (bound, (rounds, age)) in (0..).zip(rounds.into_iter().zip(age)) {
        let translated = translate_rounds(&program, bound).expect("it is small");
        assert_eq!(verdict(&translated), rounds, "{bound} rounds of\n{text}");
        let translated = translate_age(&program, bound).expect("it is small");
        assert_eq!(verdict(&translated), age, "age {bound} in\n{text}");
    }
}

const SAFE: &str = "safe";
const BAD: &str = "unsafe";

#[test]
fn store_buffering() {
    let text = "shared flag[2]: bool; \
        process P(i: 0..1) { flag[i] = true; if !flag[1 - i] { cs: skip; } } \
        forbid P(0)@cs && P(1)@cs;";
    check(text, [SAFE, BAD, BAD, BAD], [SAFE, BAD, BAD, BAD]);
    // For a condition on memory the stores must have reached memory, which takes a second round.
    let text = "shared x, y; process P { x = 1; let r = y; } process Q { y = 1; let r = x; } \
        final P.r == 1 || Q.r == 1;";
    check(text, [SAFE, SAFE, BAD, BAD], [SAFE, BAD, BAD, BAD]);
}

#[test]
fn a_store_can_stay_pending_up_to_the_bound_and_no_longer() {
    // The store to `x` must be pending for two rounds of P, until Q has read a second time.
    let text = "shared x, y, z, w; \
        process P { x = 1; if y == 0 { await z == 1; if w == 0 { seen: skip; } } } \
        process Q { y = 1; fence; if x == 0 { z = 1; fence; w = 1; fence; if x == 0 { late: skip; } } } \
        forbid P@seen && Q@late;";
    check(text, [SAFE, SAFE, BAD, BAD], [SAFE, SAFE, BAD, BAD]);
}

#[test]
fn a_round_may_end_when_stores_have_reached_memory_and_nothing_else_has_happened() {
    // P reads `y` before `x` reaches memory, and again after Q has seen `x` there. So `x` reaches memory in a
    // round of its own.
    let text = "shared x, y; process P { x = 1; if y == 0 { if y == 2 { seen: skip; } } } \
        process Q { y = 1; fence; if x == 0 { await x == 1; y = 2; } } forbid P@seen;";
    check(text, [SAFE, SAFE, SAFE, BAD], [SAFE, BAD, BAD, BAD]);
}

#[test]
fn nothing_else_is_reordered() {
    let text = "shared data, ready; process W { data = 1; ready = 1; } \
        process R { await ready; assert(data == 1); }";
    check(text, [SAFE; 4], [SAFE; 4]);
}

#[test]
fn a_process_that_is_stuck_or_runs_forever_lets_others_continue() {
    for end in ["assume(false);", "loop {}", "l: goto l;", "let r: 0..1 blocking = 2;", "await r0 == 1;"] {
        let text = format!(
            "shared x; process P {{ let r0; x = 1; {end} }} process Q {{ await x == 1; cs: skip; }} forbid Q@cs;"
        );
        check(&text, [SAFE, BAD, BAD, BAD], [BAD; 4]);
    }
}

#[test]
fn fences_locked_instructions_and_atomic_blocks_wait_for_pending_stores() {
    for drain in ["fence;", "fetch_add(z, 1);", "atomic { z = 1; }"] {
        let text = format!(
            "shared x, y, z; process P {{ x = 1; {drain} if y == 0 {{ cs: skip; }} }} \
             process Q {{ y = 1; fence; if x == 0 {{ cs: skip; }} }} forbid P@cs && Q@cs;"
        );
        check(&text, [SAFE; 4], [SAFE; 4]);
    }
    let text = "shared x, y; process P { x = 1; sfence; if y == 0 { cs: skip; } } \
         process Q { y = 1; fence; if x == 0 { cs: skip; } } forbid P@cs && Q@cs;";
    check(text, [SAFE, BAD, BAD, BAD], [SAFE, BAD, BAD, BAD]);
}

#[test]
fn arrays_pointers_procedures_and_spawned_processes() {
    let text = "shared a[3]: 0..2; shared p; \
        proc put(q, v) { *q = v; } proc get(q) -> int { return *q; } \
        process P { put(&a[1], 1); if get(&a[2]) == 0 { spawn S(1); } } \
        process Q { put(&a[2], 1); if get(&a[1]) == 0 { spawn S(2); } } \
        process S(n: 1..2) on spawn { cs: skip; } \
        forbid count(S@cs) >= 2;";
    check(text, [SAFE, BAD, BAD, BAD], [SAFE, BAD, BAD, BAD]);
    // No pointer leads to cells that exist only in the translation.
    for access in ["*p = 1;", "let r = *p;", "let r = xchg(*p, 1);", "atomic { *p = 1; }"] {
        let text = format!("shared x, y; process P {{ let p = any(3..4); {access} }}");
        check(&text, [SAFE, BAD, BAD, BAD], [BAD; 4]);
    }
}

#[test]
fn names_of_the_program_stay_unchanged() {
    let text = "shared sim, v, i, mask_1_v: 0..1; private r_TSO; proc new_round(p) { v = p; } \
        process again { let queue_1_v; new_round(1); at_l: queue_1_v = v; l: skip; } \
        forbid again@l && again.queue_1_v == 1;";
    check(text, [SAFE, BAD, BAD, BAD], [BAD; 4]);
}

#[test]
fn the_result_refers_to_the_lines_of_the_program() {
    let text = "shared x;\nprocess P {\n    x = 1;\n    let r = x + 1;\n    fence;\n    assert(r == 2);\n}\n";
    let translated = translate_rounds(&read(text), 2).expect("it is small");
    let spans: Vec<&str> = translated.templates[0]
        .body
        .iter()
        .filter(|stmt| !stmt.span().is_none())
        .map(|stmt| &text[stmt.span().start as usize..stmt.span().end as usize])
        .collect();
    assert_eq!(spans, ["x = 1;", "let r = x + 1;", "assert(r == 2);"]);
}

/// The size of a program, in words of its text.
fn size(program: &Program) -> usize {
    print::print(program).split_whitespace().count()
}

/// A program with this many variables, and as many statements with loads and stores.
fn large(size: usize) -> Program {
    let mut text = String::new();
    for n in 0..size {
        text += &format!("shared x{n}, a{n}[2]: 0..3; proc f{n}(v) {{ a{n}[v] = x{n}; fence; }} ");
    }
    text += "process P { let r: 0..3; ";
    for n in 0..size {
        text += &format!("x{n} = r; r = a{n}[1]; f{n}(0); atomic {{ x{n} = 1; f{n}(1); }} ");
        text += &format!("while cas(x{n}, 0, 1) {{ if a{n}[0] == r {{ break; }} }} ");
    }
    read(&(text + "}"))
}

#[test]
fn the_size_is_linear() {
    for bounded in [Bounded::Rounds(3), Bounded::Age(3)] {
        let translated = |n| size(&translate(&large(n), bounded).expect("it is small").program) as f64;
        let (small, twice, four_times) = (translated(20), translated(40), translated(80));
        let per_step = (four_times - twice) / (twice - small);
        assert!((1.98..2.02).contains(&per_step), "{small} {twice} {four_times}");
    }
    // And linear in the bound.
    let program = large(10);
    let translated = |bound| size(&translate_rounds(&program, bound).expect("it is small")) as f64;
    let per_step = (translated(16) - translated(8)) / (translated(8) - translated(4));
    assert!((1.9..2.1).contains(&per_step), "{per_step}");
}

#[test]
fn atomic_blocks_stay_atomic_blocks() {
    fn count(block: &Block) -> usize {
        block.iter().filter(|stmt| matches!(stmt.kind, StmtKind::Atomic(_))).count()
    }
    let program =
        read("shared x; proc f() { x = x + 1; } process P { atomic { f(); if x == 1 { return; } } x = 5; }");
    let translated = translate_age(&program, 1).expect("it is small");
    assert_eq!(count(&translated.templates[0].body), 1);
    assert!(translated.procedures.iter().any(|procedure| procedure.name.as_str() == "f_atomic"));
    assert_eq!(verdict(&translated), "safe");
}
