//! Brute-force robustness follows its definition and agrees with the checker of runs, and the suite finds the
//! mistakes of wrong engines.

use palisade_base::Source;
use palisade_conformance::robust::{self, Answer, Brute};
use palisade_conformance::robust_suite::{Config, check_robustness};
use palisade_conformance::{Profile, generate, seeds};
use palisade_engine::{Analysis, Engine, Limits, Outcome, Robustness, Suitability, Verdict};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_program::written::{Program, Start};
use palisade_program::{Instantiation, lower};
use palisade_syntax::{Language, parse};
use palisade_trace::violating;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn program(text: &str) -> Program {
    parse(Language::Pal, &Source::new("test.pal", text)).expect("the program is valid").program
}

const DECLARED: Instantiation = Instantiation { any: 2, every: None };

#[track_caller]
fn check(text: &str, expected: [&str; 2]) {
    let system = lower(&program(text), DECLARED);
    let answer = |model| robust::check(Machine::new(&system, model), 100_000);
    assert_eq!([Model::Tso, Model::Pso].map(|model| answer(model).word()), expected, "{text}");
    assert_eq!(answer(Model::Sc), Answer::Robust, "{text}");
}

#[test]
fn well_known_programs() {
    check(
        "shared x, y: 0..1; process P { x = 1; let r = y; } process Q { y = 1; let r = x; }",
        ["not-robust", "not-robust"],
    );
    check(
        "shared x, y: 0..1; process P { x = 1; fence; let r = y; } process Q { y = 1; fence; let r = x; }",
        ["robust", "robust"],
    );
    check(
        "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { let a = y; let b = x; }",
        ["robust", "not-robust"],
    );
    check(
        "shared x, y: 0..1; process P { x = 1; sfence; y = 1; } process Q { let a = y; let b = x; }",
        ["robust", "robust"],
    );
    check(
        "shared x, y: 0..1; process P { let r = x; y = 1; } process Q { let r = y; x = 1; }",
        ["robust", "robust"],
    );
    // A thread reads its own store early, and the store is overwritten while a later one is still pending.
    check(
        "shared c, x: 0..2; process P { c = 1; x = 1; let r = c; } process Q { c = 2; let r = x; }",
        ["not-robust", "not-robust"],
    );
    check(
        "shared x: 0..1; process P { x = 1; spawn C(); } process C() on spawn { let r = x; }",
        ["not-robust", "not-robust"],
    );
    check(
        "shared x: 0..1; process P { x = 1; fence; spawn C(); } process C() on spawn { let r = x; }",
        ["robust", "robust"],
    );
    // An empty section drains the buffer, too.
    check(
        "shared x, y: 0..1; process P { x = 1; atomic {} let r = y; } process Q { y = 1; fence; let r = x; }",
        ["robust", "robust"],
    );
}

/// A program is robust iff every complete run has the trace of a sequentially consistent run. The numbers of
/// started threads differ between runs, so programs that start threads are left out.
#[test]
fn no_cycle_means_the_same_traces_as_under_sc() {
    let (mut robust, mut not_robust, seeds) = (0, 0, seeds(60));
    for profile in [Profile::Simple, Profile::Acyclic] {
        for seed in &seeds {
            let program = generate(profile, seed);
            if program.templates.iter().any(|template| template.start != Start::Initially) {
                continue;
            }
            let system = lower(&program, DECLARED);
            for model in [Model::Tso, Model::Pso] {
                let traces = |model| robust::complete_traces(Machine::new(&system, model), 3_000);
                let (Some(weak), Some(strong)) = (traces(model), traces(Model::Sc)) else { continue };
                match robust::check(Machine::new(&system, model), 10_000) {
                    Answer::Robust => {
                        assert!(weak.is_subset(&strong), "{profile:?} {seed} {model:?}");
                        robust += 1;
                    }
                    Answer::NotRobust(run) => {
                        let only_weak = weak.iter().filter(|trace| !strong.contains(*trace));
                        let all_cyclic = only_weak.clone().all(|trace| trace.has_cycle());
                        // A section that never closes may hide all complete runs.
                        let open = system_has_sections(&program);
                        assert!(open || only_weak.count() > 0 && all_cyclic, "{profile:?} {seed} {model:?}");
                        violating(Machine::new(&system, model), &run).expect("the run has a cycle");
                        not_robust += 1;
                    }
                    Answer::Inconclusive => {}
                }
            }
        }
    }
    assert!(robust > 20 && not_robust > 20 || !seeds.suffice(), "{robust} robust, {not_robust} not");
}

fn system_has_sections(program: &Program) -> bool {
    palisade_program::print::print(program).contains("atomic")
}

/// Brute force with a mistake.
struct Wrong(Mistake);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    SaysRobust,
    SaysUnknown,
    CutsRun,
    DependsOnJobs,
}

impl Engine<Robustness> for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }
    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        Suitability::Tries
    }
    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome<Robustness> {
        let task = &analysis.task;
        use palisade_engine::Reason;
        let mut outcome = Brute { most: 10_000 }.check(&task.analysis(), limits);
        match (&mut outcome.verdict, self.0) {
            (answer, Mistake::SaysUnknown) => *answer = Verdict::Unknown(Reason::BufferBound(0)),
            (answer @ Verdict::Violated(_), Mistake::SaysRobust) => *answer = Verdict::Holds,
            (Verdict::Violated(witness), Mistake::CutsRun) => _ = witness.run.steps.pop(),
            (answer @ Verdict::Violated(_), Mistake::DependsOnJobs) if limits.jobs() == 2 => {
                *answer = Verdict::Holds;
            }
            _ => {}
        }
        outcome
    }
}

#[test]
fn the_suite_finds_wrong_engines() {
    let config = Config {
        profiles: vec![Profile::Simple],
        programs: 8,
        machines: vec![(Model::Tso, Interlocked::WholeBuffer), (Model::Pso, Interlocked::WholeBuffer)],
        ..Config::default()
    };
    check_robustness(&Wrong(Mistake::None), &config);
    // Fewer programs may not show a mistake.
    if !seeds(config.programs as u64).suffice() {
        return;
    }
    for (mistake, expected) in [
        (Mistake::SaysRobust, "but there is a run"),
        (Mistake::SaysUnknown, "unknown ("),
        (Mistake::CutsRun, "the run shows nothing"),
        (Mistake::DependsOnJobs, "with two"),
    ] {
        let panic = catch_unwind(AssertUnwindSafe(|| check_robustness(&Wrong(mistake), &config)));
        let panic = panic.expect_err("the suite finds the mistake");
        let text = panic.downcast_ref::<String>().expect("the message is formatted");
        assert!(text.contains(expected), "{text}");
    }
}
