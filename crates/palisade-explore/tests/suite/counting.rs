//! Processes that count for a long time, or forever, do not keep the search from a bug in another process.

use palisade_base::Source;
use palisade_engine::{Engine, Limits, Options, Reduction, Task, Threads, Verdict};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Model};
use palisade_syntax::{Language, parse};

/// The number of states that a search may visit.
const FEW: u64 = 64;
/// The number of bytes that its tables may take.
const SMALL: u64 = 1 << 20;

/// Checks that the bug is found within few states while this process runs as well.
fn check(counter: &str) {
    let text = format!("shared x: 0..1; {counter} process B {{ assert(x == 1); }}");
    let program = parse(Language::Pal, &Source::new("test.pal", &text)).expect("it is well formed").program;
    for model in Model::ALL {
        for reduction in [Reduction::Full, Reduction::Local] {
            let options = Options { reduction, ..Options::default() };
            let interlocked = Interlocked::default();
            let task = Task { program: &program, threads: Threads::Declared, model, interlocked, options };
            let limits = Limits::unlimited(1).at_most_work(FEW);
            let outcome = Explicit.check(&task.analysis(), &limits);
            let how = format!("under {} with {reduction:?}:\n{text}", model.name());
            let Verdict::Violated(witness) = &outcome.verdict else { panic!("{:?} {how}", outcome.verdict) };
            let steps = witness.run.steps.len();
            assert!(steps <= 2, "{steps} steps {how}");
            let depth = outcome.stats.get("depth").expect("the depth is counted");
            assert!(depth <= 2, "depth {depth} {how}");
            let bytes = outcome.stats.get("table_bytes").expect("bytes are counted");
            assert!(bytes < SMALL, "{bytes} bytes {how}");
        }
    }
}

#[test]
fn a_register_that_is_counted_up_forever() {
    check("process A { let i = 0; loop { i = i + 1; } }");
    check("process A[*] { let i = 0; loop { i = i + 1; } }");
    check("process A[3] { let i = 0; loop { i = i + 1; } }");
}

#[test]
fn a_private_variable_that_is_counted_up_forever() {
    check("private d; process A { loop { d = d + 1; } }");
}

#[test]
fn a_register_that_takes_very_many_values() {
    check("process A { let i: 0..1000000 = 0; loop { i = (i + 1) % 1000000; } }");
    check("process A { let i: 0..1000000 = 0; while i < 1000000 { i = i + 1; } }");
}

#[test]
fn counting_that_the_bug_needs_is_in_the_run() {
    let text = "shared x: 0..1; process A { let i = 0; while i < 50000 { i = i + 1; } x = 1; } process B { assert(x == 0); }";
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is well formed").program;
    let (options, interlocked) = (Options::default(), Interlocked::default());
    let task =
        Task { program: &program, threads: Threads::Declared, model: Model::Tso, interlocked, options };
    let outcome = Explicit.check(&task.analysis(), &Limits::unlimited(1));
    let Verdict::Violated(witness) = &outcome.verdict else { panic!("{:?}", outcome.verdict) };
    let system = task.lower(1);
    let machine = task.machine(&system);
    let replay = palisade_trace::take(machine, &witness.run).expect("the run can be taken");
    assert!(machine.violation(replay.states.last().expect("a run has states")).is_some());
    assert!(witness.run.steps.len() > 50_000);
}
