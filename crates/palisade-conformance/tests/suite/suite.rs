//! The suite finds the mistakes of wrong engines, and none in a correct one.

use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_conformance::{TestEngine, seeds};
use palisade_engine::{Reason, Verdict, Witness};
use palisade_memory::Model;
use palisade_program::Instantiation;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Searches SC whatever the model is.
    IgnoresBuffers,
    /// Answers `safe` instead of `unsafe`.
    SaysSafe,
    /// Drops the last step of the witness.
    CutsWitness,
    /// Answers `safe` instead of `unsafe` with two jobs.
    DependsOnJobs,
    /// Answers `unknown` for everything.
    SaysUnknown,
    /// Panics if there is a fence.
    Panics,
}

/// The brute-force interpreter as an engine, perhaps with a mistake.
fn brute_force(mistake: Mistake) -> TestEngine {
    TestEngine::new("brute", move |analysis, limits| {
        let task = &analysis.task;
        let instantiation = Instantiation { any: 2, every: None };
        let system = task.lower(2);
        let mut machine = task.machine(&system);
        if mistake == Mistake::IgnoresBuffers {
            machine.model = Model::Sc;
        }
        let printed = palisade_program::print::print(task.program);
        assert!(mistake != Mistake::Panics || !printed.contains(" fence;"), "there is a fence");
        match brute::check(machine, Scope { states: 20_000, buffer: Some(8) }) {
            Answer::Inconclusive => Verdict::Unknown(Reason::BufferBound(8)),
            _ if mistake == Mistake::SaysUnknown => Verdict::Unknown(Reason::BufferBound(0)),
            Answer::Safe => Verdict::Holds,
            Answer::Unsafe(_) if mistake == Mistake::SaysSafe => Verdict::Holds,
            Answer::Unsafe(_) if mistake == Mistake::DependsOnJobs && limits.jobs() == 2 => Verdict::Holds,
            Answer::Unsafe(mut run) => {
                if mistake == Mistake::CutsWitness {
                    run.steps.pop();
                }
                Verdict::Violated(Witness { instantiation, run })
            }
        }
    })
}

fn config(programs: usize) -> SuiteConfig {
    let limits = Scope { states: 20_000, buffer: Some(4) };
    SuiteConfig {
        programs,
        limits,
        unknown: Unknown::IfCyclic,
        witness_factor: Some(1.0),
        ..SuiteConfig::default()
    }
}

#[test]
fn a_correct_engine_passes() {
    check_engine(&brute_force(Mistake::None), config(12));
    check_classics(&brute_force(Mistake::None), config(0));
}

#[test]
fn wrong_engines_fail_with_a_small_program() {
    let cases = [
        (Mistake::IgnoresBuffers, "tso: "),
        (Mistake::SaysSafe, "safe, but there is a run"),
        (Mistake::CutsWitness, "the witness does not replay"),
        (Mistake::DependsOnJobs, "unsafe with one job, safe with two"),
        (Mistake::SaysUnknown, "unknown (no bad state with buffers up to 0), but"),
        (Mistake::Panics, "the engine panicked: there is a fence"),
    ];
    // Fewer programs may not show a mistake.
    let cases = if seeds(40).suffice() { &cases[..] } else { &[] };
    for &(mistake, expected) in cases {
        let failed = catch_unwind(AssertUnwindSafe(|| check_engine(&brute_force(mistake), config(40))));
        let panic = failed.expect_err("the mistake is found");
        let text = panic.downcast_ref::<String>().expect("the message is formatted");
        let small =
            text.split("small program: ").nth(1).unwrap_or_else(|| panic!("nothing was shrunk: {text}"));
        assert!(small.contains(expected), "{expected} is not in:\n{text}");
        assert!(text.contains("PALISADE_SEED="), "{text}");
        assert!(small.lines().count() < 30, "the program is not small:\n{text}");
    }
    let failed =
        catch_unwind(AssertUnwindSafe(|| check_classics(&brute_force(Mistake::IgnoresBuffers), config(0))));
    assert!(failed.is_err(), "the classics find an engine that ignores buffers");
}
