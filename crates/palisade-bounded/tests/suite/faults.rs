//! Faults of calls and returns: runs of a translation that end in one are translated back to the program.

use palisade_base::Source;
use palisade_bounded::{Age, Rounds};
use palisade_engine::{Engine, Limits, Task, Verdict};
use palisade_explore::Explicit;
use palisade_memory::Model;
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};

/// Checks that both engines find the program unsafe, with a run of the program.
fn check(text: &str) {
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is well formed").program;
    let engines: [&dyn Engine; 2] = [&Rounds { sc: &Explicit, recursive: &Pushdown }, &Age { sc: &Explicit }];
    for engine in engines {
        let task = Task::new(&program, Model::Tso);
        let verdict = engine.check(&task.analysis(), &Limits::unlimited(1)).verdict;
        let Verdict::Violated(witness) = &verdict else {
            panic!("{verdict:?} by {} of\n{text}", engine.name());
        };
        let system = task.lower(1);
        let machine = task.machine(&system);
        let replay = palisade_trace::take(machine, &witness.run).expect("the run can be taken");
        let last = replay.states.last().expect("a run has states");
        assert!(machine.violation(last).is_some(), "by {} of\n{text}", engine.name());
    }
}

#[test]
fn a_recursive_call_with_an_argument_out_of_its_domain() {
    check("proc f(i: 0..2) { f(i + 1); } process P { f(2); }");
    check("shared x: 0..5; proc f(i: 0..2) { x = x + 1; f(x); } process P { f(0); }");
}

#[test]
fn a_recursive_return_of_a_value_out_of_its_domain() {
    check(
        "proc f(i: 0..2) -> 0..1 { if i == 0 { return 2; } let r: 0..5 = f(i - 1); return 0; } \
         process P { let q: 0..5 = f(2); }",
    );
}

#[test]
fn a_load_of_a_value_out_of_the_domain_of_the_register() {
    check("shared x: 0..5; process P { x = 3; let r: 0..1 = x; }");
    check("shared x, y: 0..5; process P { x = 3; y = 1; } process Q { let r: 0..2 = x; }");
}

#[test]
fn other_accesses_that_fault() {
    check("shared x: 0..5; process P { x = 3; x = x + 3; }");
    check("shared x: 0..5; shared a[2]: 0..1; process P { x = 3; a[x] = 1; }");
    check("shared x: 0..5; shared a[2]: 0..1; process P { x = 3; let r = a[x]; }");
    check("shared x: 0..5; process P { atomic { x = 3; let r: 0..1 = x; } }");
    check("shared x: 0..5; process P { x = 3; atomic { x = x + 3; } }");
}
