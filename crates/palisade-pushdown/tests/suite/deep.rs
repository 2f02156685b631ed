//! Bugs at the bottom of deep stacks: whatever cuts the stack above them finds nothing.

use palisade_base::Source;
use palisade_conformance::brute::Answer;
use palisade_conformance::rounds::{self, RoundLimits};
use palisade_engine::{Bound, Engine, Limits, Options, Question, Reason, Safety, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_pushdown::Pushdown;
use palisade_syntax::{Language, parse};
use palisade_trace::take;

/// Calls are counted modulo `down`, returns modulo `up`; the recursion ends at multiples of `down`, and all is well unless `up` counts 2.
fn two_counts(down: u32, up: u32, bad: &str) -> Program {
    let text = format!(
        "shared go: bool; private down: 0..{}; private up: 0..{};
         proc climb() {{
             choose {{ down = (down + 1) % {down}; climb(); up = (up + 1) % {up}; }}
             or {{ await go; assume(down == 0); }}
         }}
         process Climber {{ climb(); assert({bad}); }}
         process Starter {{ go = true; }}",
        down - 1,
        up - 1,
    );
    parse(Language::Pal, &Source::new("two_counts.pal", text.as_str())).expect("it is valid").program
}

fn ask(engine: &dyn Engine, program: &Program, rounds: Bound) -> Verdict {
    let options = Options { rounds, ..Options::default() };
    let (model, interlocked) = (Model::Sc, Interlocked::default());
    let task = Task { program, threads: Threads::Declared, model, interlocked, options };
    engine.check(&task.analysis(), &Limits::unlimited(1)).verdict
}

/// The height of the highest stack of the run that breaks a program.
fn height(program: &Program) -> usize {
    let Verdict::Violated(witness) = ask(&Pushdown, program, Bound::Fixed(2)) else {
        panic!("the bug is not found");
    };
    let system = lower(program, Instantiation { any: 1, every: None });
    let replay = take(Machine::new(&system, Model::Sc), &witness.run).expect("the run replays");
    assert!(replay.violation.is_some());
    let height =
        |state: &palisade_memory::State| state.threads.iter().map(|thread| thread.frames.len()).max();
    replay.states.iter().filter_map(height).max().expect("a run has states")
}

#[test]
fn runs_go_as_deep_as_they_must() {
    // The least multiple of a number that is 2 modulo the next odd one, and the frames of the process body and of the last call.
    assert_eq!(height(&two_counts(3, 5, "up != 2")), 12 + 2);
    assert_eq!(height(&two_counts(11, 13, "up != 2")), 132 + 2);
    assert_eq!(height(&two_counts(17, 19, "up != 2")), 306 + 2);
    assert_eq!(height(&two_counts(23, 25, "up != 2")), 552 + 2);
}

#[test]
fn cut_stacks_find_nothing() {
    let program = two_counts(17, 19, "up != 2");
    let verdict = ask(&Explicit, &program, Bound::Fixed(2));
    assert!(matches!(verdict, Verdict::Unknown(Reason::CallDepth(256))), "{verdict:?}");
    let system = lower(&program, Instantiation { any: 1, every: None });
    let limits = RoundLimits { rounds: 2, frames: 60, threads: 2, states: 100_000 };
    assert_eq!(rounds::check(Machine::new(&system, Model::Sc), limits), Answer::Inconclusive);
}

#[test]
fn all_heights_are_covered() {
    assert_eq!(ask(&Pushdown, &two_counts(17, 17, "up == 0"), Bound::Auto), Verdict::Holds);
    // Every multiple of 6 has an even number of returns.
    assert_eq!(ask(&Pushdown, &two_counts(6, 4, "up % 2 == 0"), Bound::Auto), Verdict::Holds);
    assert_eq!(Safety::word(&ask(&Pushdown, &two_counts(6, 4, "up == 0"), Bound::Auto)), "unsafe");
}
