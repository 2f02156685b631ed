//! Programs that need room, made by hand: the translator is a text with numbers in it.

use super::limits::{Room, only_limits, within_limits};
use super::{COptions, Recipe, Slots, check_input, make, robust_input, settle};
use crate::language::InputLanguage;
use crate::robust::RobustOptions;
use crate::{CheckOptions, EngineChoice, Input};
use palisade_base::Source;
use palisade_c::{Aim, Finish, Identity, Note, Objects, Translation, WaitTable};
use palisade_engine::{Limits, Threads, Verdict};
use palisade_memory::Model;
use palisade_syntax::{Language, parse};
use std::sync::Arc;

/// A program from a text in which `SLOTS` and `HEAP` stand for the room.
fn input(text: &'static str, options: COptions) -> Input {
    let translator = move |room: Room, _: Aim, _: Identity| {
        let text =
            text.replace("SLOTS", &room.slots.main.to_string()).replace("HEAP", &room.heap.to_string());
        let program = parse(Language::Pal, &Source::new("p", text)).expect("the program is valid").program;
        let notes = vec![Note("the sun shines".to_owned())];
        Ok(Translation {
            program,
            notes,
            circumstances: Vec::new(),
            uses_of_bits: Vec::new(),
            asserted: false,
            objects: Objects::default(),
            threads: Vec::new(),
            finish: Finish::Never,
            waits: WaitTable::default(),
            spurious: false,
            outlives: false,
            allocates: false,
            allocations: None,
        })
    };
    make(Recipe {
        source: Source::new("p.c", ""),
        language: InputLanguage::C,
        compiler: "clang".to_owned(),
        arguments: Vec::new(),
        options,
        translator: Arc::new(translator),
    })
    .expect("the program is valid")
}

fn options(model: Model) -> CheckOptions {
    CheckOptions { model, engine: EngineChoice::Named("explicit".to_owned()), ..CheckOptions::default() }
}

#[track_caller]
fn check(text: &'static str, options_of_c: COptions, expected: &str, heap: u32) -> Input {
    let mut input = input(text, options_of_c);
    let answer =
        check_input(&mut input, &options(Model::Sc), &Limits::unlimited(1)).expect("there is an answer");
    let word = match &answer.outcome.verdict {
        Verdict::Holds => "safe".to_owned(),
        Verdict::Violated(_) => {
            let evidence = answer.evidence(&input.source).expect("there is a run");
            format!("unsafe: {}", palisade_report::explain(&evidence))
        }
        Verdict::Unknown(reason) => format!("unknown: {reason}"),
    };
    assert_eq!(word, expected);
    assert_eq!(input.c.as_ref().expect("it is a C program").build.heap, heap);
    input
}

/// Allocates three objects, in every run.
const THREE: &str = "shared n: 0..100; process P { while n < 3 { assert(n < HEAP) else heap; n = n + 1; } }";

/// Allocates one object, or in a run that the first guess does not see, three.
const PERHAPS: &str = "shared n: 0..100; process P { choose { n = 1; } or {
    while n < 3 { assert(n < HEAP) else heap; n = n + 1; } } }";

/// Allocates without end, and does nothing wrong.
const ENDLESS: &str = "shared n: 0..1000; process P { choose { skip; } or {
    while n < 1000 { assert(n < HEAP) else heap; n = n + 1; } } }";

/// Allocates without end, and fails on the way.
const FAILS: &str = "shared n: 0..1000; process P { choose { skip; } or {
    while n < 1000 { assert(n < HEAP) else heap; n = n + 1; assert(n < 2); } } }";

#[test]
fn a_run_on_the_trusted_machine_gives_the_first_guess() {
    assert_eq!(input(THREE, COptions::default()).c.expect("it is a C program").build.heap, 3);
    assert_eq!(input(PERHAPS, COptions::default()).c.expect("it is a C program").build.heap, 1);
}

#[test]
fn room_grows_until_it_is_enough() {
    check(THREE, COptions::default(), "safe", 3);
    let found = check(PERHAPS, COptions::default(), "safe", 4);
    assert_eq!(found.assumptions(), ["the sun shines"]);
}

#[test]
fn without_enough_room_the_answer_is_unknown() {
    check(
        ENDLESS,
        COptions::default(),
        "unknown: a thread can allocate more than 64 objects at line 1; allow more with --heap N \
         (no run within this limit breaks the program)",
        64,
    );
    let fixed = COptions { heap: Some(2), ..COptions::default() };
    check(
        THREE,
        fixed,
        "unknown: a thread can allocate more than 2 objects at line 1; allow more with --heap N \
         (no run within this limit breaks the program)",
        2,
    );
}

#[test]
fn a_bug_within_the_room_is_found() {
    // The bug shows only where there is more room than the first guess, so the room grows.
    let input = check(FAILS, COptions::default(), "unsafe: assertion failed in P at line 1", 2);
    assert!(!input.c.as_ref().expect("it is a C program").build.within_limits);
    // With less room that cannot grow, the bug is out of reach.
    let fixed = COptions { heap: Some(1), ..COptions::default() };
    let unknown = "unknown: a thread can allocate more than 1 object at line 1; allow more with --heap N \
                   (no run within this limit breaks the program)";
    check(FAILS, fixed, unknown, 1);
}

#[test]
fn a_positive_answer_needs_enough_room() {
    let limits = Limits::unlimited(1);
    let mut perhaps = input(PERHAPS, COptions::default());
    let answer = robust_input(&mut perhaps, &RobustOptions::default(), &limits).expect("there is an answer");
    assert_eq!((answer.outcome.verdict, perhaps.c.expect("C").build.heap), (Verdict::Holds, 4));
    let mut endless = input(ENDLESS, COptions::default());
    let answer = robust_input(&mut endless, &RobustOptions::default(), &limits).expect("there is an answer");
    assert!(matches!(answer.outcome.verdict, Verdict::Unknown(_)), "{:?}", answer.outcome.verdict);
    let mut three = input(THREE, COptions { heap: Some(1), ..COptions::default() });
    let unsettled = settle(&mut three, Model::Sc, Threads::default(), &limits).expect("there is an answer");
    assert!(unsettled.is_some());
}

#[test]
fn threads_get_room_by_their_creator() {
    const CREATES: &str =
        "shared n: 0..100; process main { while n < 5 { assert(n < SLOTS) else threads; n = n + 1; } }";
    let found = input(CREATES, COptions::default());
    assert_eq!(found.c.expect("it is a C program").build.slots, [5, 0]);
    let fixed = COptions { slots: Some(Slots { main: 2, nested: 2 }), ..COptions::default() };
    check(
        CREATES,
        fixed,
        "unknown: `main` can start more than 2 threads at line 1; allow more with --slots N \
         (no run within this limit breaks the program)",
        1,
    );
}

#[test]
fn limits_become_assumptions_and_nothing_else_does() {
    let source = Source::new(
        "p",
        "shared x: 0..9; process P { if x == 0 { assert(x < 1) else heap; } assert(x < 2); assert(x < 3) else overflow; }",
    );
    let program = parse(Language::Pal, &source).expect("the program is valid").program;
    let text = palisade_program::print::print(&within_limits(&program));
    assert!(text.contains("assume(x < 1)") && text.contains("assert(x < 2)"), "{text}");
    assert!(text.contains("assert(x < 3) else overflow"), "{text}");
    let text = palisade_program::print::print(&only_limits(&program));
    assert!(text.contains("assert(x < 1) else heap") && text.contains("assume(x < 2)"), "{text}");
    assert!(text.contains("assume(x < 3)"), "{text}");
}

#[test]
fn a_shortest_run_stays_within_the_room() {
    // The shortest way to a failed assertion is through an exhausted heap.
    const LATER: &str = "shared n: 0..9; process P { choose { assert(HEAP > 9) else heap; } or {
        n = 1; n = 2; n = 3; assert(n < 3); } }";
    let limits = Limits::unlimited(1);
    let mut input = input(LATER, COptions { heap: Some(1), ..COptions::default() });
    let options = options(Model::Sc);
    let answer = check_input(&mut input, &options, &limits).expect("there is an answer");
    let answer = answer.with_shortest_run(&mut input, &options, &limits).expect("there is an answer");
    let evidence = answer.evidence(&input.source).expect("there is a run");
    assert!(palisade_report::explain(&evidence).starts_with("assertion failed"));
    assert_eq!(answer.shortest, Some(Ok(())));
    assert!(answer.witness_file(&input).expect("there is a run").program.build.expect("C").within_limits);
}

#[test]
fn deadlocks_are_asked_about_unless_that_is_turned_off() {
    let verdict = |text: &'static str, finish: bool| {
        let mut input = input(text, COptions { finish, ..COptions::default() });
        let answer = check_input(&mut input, &options(Model::Sc), &Limits::unlimited(1)).expect("an answer");
        let notes = answer.progress.map(|progress| progress.holds).unwrap_or_default();
        (answer.outcome.verdict.witness().is_some(), notes.join(", "))
    };
    // A program that is over stays where it is.
    const OVER: &str = "shared go: bool; process main { over: goto over; } process f { await go; }";
    assert_eq!(verdict(OVER, true), (false, "free of deadlocks".to_owned()));
    assert_eq!(verdict(OVER, false), (false, String::new()));
    const STUCK: &str = "shared go: bool; process main { await go; } process f { await go; }";
    assert_eq!(verdict(STUCK, true), (true, String::new()));
    assert_eq!(verdict(STUCK, false), (false, String::new()));
}

#[test]
fn an_engine_that_does_not_look_for_deadlocks_says_so() {
    const ENDS: &str = "process main { skip; }";
    let mut input = input(ENDS, COptions::default());
    let options = CheckOptions { engine: EngineChoice::Named("dual".to_owned()), ..CheckOptions::default() };
    let answer = check_input(&mut input, &options, &Limits::unlimited(1)).expect("there is an answer");
    let Verdict::Unknown(reason) = answer.outcome.verdict else { panic!("it is not known") };
    assert!(reason.to_string().contains("--no-deadlock"), "{reason}");
}
