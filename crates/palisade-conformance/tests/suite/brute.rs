//! The brute-force interpreter on programs small enough to be counted by hand.

use palisade_base::Source;
use palisade_conformance::brute::{self, Answer, Observed, Scope};
use palisade_memory::{Machine, Model};
use palisade_program::running::System;
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};

fn system(text: &str) -> System {
    let parsed = parse(Language::Pal, &Source::new("test.pal", text)).expect("the program is valid");
    lower(&parsed.program, Instantiation { any: 2, every: None })
}

const LIMITS: Scope = Scope { states: 10_000, buffer: None };

#[test]
fn states_are_counted() {
    let check = |text: &str, expected: [usize; 3]| {
        let system = system(text);
        let count = |model| brute::reachable(Machine::new(&system, model), LIMITS).states.len();
        assert_eq!(Model::ALL.map(count), expected, "{text}");
    };
    // Start, buffered, in memory.
    check("shared x: 0..1; process P { x = 1; }", [2, 3, 3]);
    // Two such processes with separate variables are independent, so the numbers are squared.
    check("shared x, y: 0..1; process P { x = 1; } process Q { y = 1; }", [4, 9, 9]);
    // One state at the start, 2 after the first store (pending or not), 3 after both under TSO and 4 under
    // PSO.
    check("shared x, y: 0..1; process P { x = 1; y = 1; }", [3, 6, 7]);
    // One state per initial value, and one more for each after the load.
    check("shared x: 0..4 = *; process P { let r = x; }", [10, 10, 10]);
}

#[test]
fn runs_are_shortest() {
    let text =
        "shared x: 0..3; process P { x = 1; x = 2; } process Q { loop { let r = x; assert(r != 2); } }";
    let system = system(text);
    let length = |model| match brute::check(Machine::new(&system, model), LIMITS) {
        Answer::Unsafe(run) => run.steps.len(),
        other => panic!("{}", other.word()),
    };
    // Two stores, a load, the assertion; and the two updates.
    assert_eq!(Model::ALL.map(length), [4, 6, 6]);
}

#[test]
fn limits_make_the_answer_inconclusive_unless_a_run_was_found() {
    let check = |text: &str, limits, expected| {
        let system = system(text);
        assert_eq!(
            brute::check(Machine::new(&system, Model::Tso), limits).word(),
            expected,
            "{text} {limits:?}"
        );
    };
    let pump = "shared x: 0..1; process P { loop { x = 1; } } process Q { let r = x; assert(r != 2); }";
    check(pump, Scope { states: 1_000, buffer: None }, "inconclusive");
    check(pump, Scope { states: 1_000, buffer: Some(3) }, "inconclusive");
    check(&pump.replace("r != 2", "r != 1"), Scope { states: 1_000, buffer: Some(1) }, "unsafe");
    let finite = "shared x: 0..1; process P { x = 1; x = 0; }";
    check(finite, Scope { states: 100, buffer: Some(2) }, "safe");
    check(finite, Scope { states: 100, buffer: Some(1) }, "inconclusive");
    check(finite, Scope { states: 5, buffer: None }, "inconclusive");
}

#[test]
fn outcomes_are_those_of_finished_runs() {
    let text = "shared x, a[2]: 0..2; process P { let r = any(0..2); assume(r != 1); a[1] = r; if r == 2 { assert(x == 1); } }";
    let system = system(text);
    let machine = Machine::new(&system, Model::Tso);
    let seen = ["P.r", "a[1]"].map(|name| Observed::named(&system, name));
    // With 1 the process is stuck, with 2 the assertion fails.
    assert_eq!(brute::outcomes(machine, LIMITS, &seen), Some([vec![0, 0]].into()));
    assert_eq!(brute::outcomes(machine, Scope::states(2), &seen), None);
}
