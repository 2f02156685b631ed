//! Bugs that need deep stacks. A search that cuts stacks earlier finds nothing.

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

/// Calls are counted modulo `down`, and returns modulo `up`. The recursion ends when the count of calls is 0.
/// The assertion about the counts is `bad`.
fn two_counts(down: u32, up: u32, assertion: &str) -> Program {
    let text = format!(
        "shared go: bool; private down: 0..{}; private up: 0..{};
         proc climb() {{
             choose {{ down = (down + 1) % {down}; climb(); up = (up + 1) % {up}; }}
             or {{ await go; assume(down == 0); }}
         }}
         process Climber {{ climb(); assert({assertion}); }}
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

/// The height of the highest stack in a run that violates the assertion.
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
fn runs_are_as_deep_as_necessary() {
    // The least multiple of `down` that is 2 modulo `up`, plus the frames of the process body and of the last
    // call.
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
