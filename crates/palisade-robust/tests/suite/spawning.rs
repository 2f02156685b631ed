//! Robustness of programs that start processes at run time, mostly without bound, against brute force. Brute force looks at
//! the shortest runs of such programs first, and at all runs where there are few enough.

use palisade_conformance::generate::{generate_fenced_spawning, generate_spawning};
use palisade_conformance::robust::{Answer, check};
use palisade_conformance::seeds;
use palisade_engine::{Engine, Limits, Reason, Task, Verdict};
use palisade_memory::{Machine, Model};
use palisade_program::print::print;
use palisade_program::written::Program;
use palisade_program::{Instantiation, lower};
use palisade_robust::Attacks;
use palisade_trace::violating;

/// The numbers of answers: robust, not robust, unknown, and comparisons in which brute force saw all runs or a cycle.
#[derive(Default, Debug)]
struct Counts {
    robust: usize,
    not_robust: usize,
    unknown: usize,
    compared: usize,
}

fn compare(program: &Program, seed: u64, counts: &mut Counts) {
    for model in [Model::Tso, Model::Pso] {
        let what = || format!("seed {seed}, {}\n{}", model.name(), print(program));
        let task = Task::new(program, model);
        let limits = Limits::unlimited(1).with_work(20_000);
        let system = lower(program, Instantiation { any: 1, every: None });
        let expected = check(Machine::new(&system, model), 2_500);
        counts.compared += usize::from(expected != Answer::Inconclusive);
        let mut verdict = Attacks.check(&task.analysis(), &limits).verdict;
        if let Verdict::Unknown(Reason::Unshown(_)) = verdict {
            // Showing a cycle may take more work than knowing of it.
            verdict = Attacks.check(&task.analysis(), &Limits::unlimited(1).with_work(1_000_000)).verdict;
        }
        match verdict {
            Verdict::Holds => {
                assert!(!matches!(expected, Answer::NotRobust(_)), "there is a cycle: {}", what());
                counts.robust += 1;
            }
            Verdict::Violated(witness) => {
                let system = lower(program, witness.instantiation);
                let cycle = violating(Machine::new(&system, model), &witness.run);
                cycle.unwrap_or_else(|trouble| panic!("{trouble:?}: {}", what()));
                assert_ne!(expected, Answer::Robust, "no run has a cycle: {}", what());
                counts.not_robust += 1;
            }
            Verdict::Unknown(_) => counts.unknown += 1,
        }
    }
}

#[test]
fn differential_started_processes() {
    let seeds = seeds(30).starting_at(1);
    let mut counts = Counts::default();
    for seed in &seeds {
        compare(&generate_spawning(seed), seed, &mut counts);
        compare(&generate_fenced_spawning(seed), seed, &mut counts);
    }
    println!("{counts:?}");
    let Counts { robust, not_robust, unknown, compared } = counts;
    assert!(robust > 5 && not_robust > 5 && compared > 10 || !seeds.suffice());
    assert!(unknown <= (robust + not_robust) / 50, "{unknown} of {}", robust + not_robust + unknown);
}
