//! Runs in which started processes end while others continue.

use palisade_base::Source;
use palisade_engine::{Engine, Limits, Options, Reduction, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Model};
use palisade_syntax::{Language, parse};

/// Checks that the program is unsafe with every reduction and under every model, and that the run can be
/// taken.
fn check(text: &str) {
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is well formed").program;
    for model in Model::ALL {
        for reduction in [Reduction::Full, Reduction::Local, Reduction::None] {
            let options = Options { reduction, ..Options::default() };
            let interlocked = Interlocked::default();
            let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
            let outcome = Explicit.check(&task.analysis(), &Limits::unlimited(1));
            let Verdict::Violated(witness) = &outcome.verdict else {
                panic!("{:?} under {} with {reduction:?}:\n{text}", outcome.verdict, model.name());
            };
            let system = task.lower(1);
            let machine = task.machine(&system);
            let replay = palisade_trace::take(machine, &witness.run).expect("the run can be taken");
            let last = replay.states.last().expect("a run has states");
            assert!(machine.violation(last).is_some(), "under {} with {reduction:?}:\n{text}", model.name());
        }
    }
}

#[test]
fn a_process_that_ends_before_another_frees_its_place() {
    check(
        "shared y: bool; process P[2] { spawn S; } process S on spawn { choose {} or { y = true; } } final y;",
    );
    check("shared y: bool; process P[3] { spawn S; } process S on spawn { y = true; y = false; } final y;");
}

#[test]
fn a_process_that_ends_when_it_starts_another_leaves_its_place_to_it() {
    check(
        "shared y: 0..3; process P[2] { spawn S; } process S on spawn { y = 1; spawn T; } \
         process T on spawn { y = 2; choose {} or { y = 3; } } final y == 3;",
    );
    check(
        "shared y: 0..3; process P { atomic { spawn T; y = 1; } spawn T; } \
         process T on spawn { choose {} or { y = 2; } } final y == 2;",
    );
}
