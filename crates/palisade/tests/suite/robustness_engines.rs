//! Engines for robustness agree whenever two of them have an answer.

use palisade::engine::{Limits, Options, Question, Robustness, Suitability, Task, Threads, Verdict};
use palisade::engines::robustness_engines;
use palisade::{Interlocked, Model};
use palisade_conformance::{Profile, generate, seeds};
use std::time::Duration;

#[test]
fn differential_random_programs() {
    let seeds = seeds(60).starting_at(10_001);
    let machines = [
        (Model::Tso, Interlocked::WholeBuffer),
        (Model::Pso, Interlocked::WholeBuffer),
        (Model::Pso, Interlocked::OwnAddress),
    ];
    let mut compared = 0;
    for profile in Profile::ALL {
        for seed in &seeds {
            let program = generate(profile, seed);
            for (model, interlocked) in machines {
                let options = Options::default();
                let task =
                    Task { program: &program, threads: Threads::Declared, model, interlocked, options };
                let mut known: Option<(&str, &str)> = None;
                for engine in robustness_engines()
                    .iter()
                    .filter(|engine| engine.suits(&task.analysis()) != Suitability::No)
                {
                    let time = if profile.is_acyclic() { 10_000 } else { 40 };
                    let limits = Limits::unlimited(1).with_timeout(Duration::from_millis(time));
                    let answer = engine.check(&task.analysis(), &limits).verdict;
                    if matches!(answer, Verdict::Unknown(_)) {
                        continue;
                    }
                    if let Some((other, verdict)) = known {
                        let place = format!("{profile:?}, seed {seed}, {} ({interlocked:?})", model.name());
                        assert_eq!(
                            verdict,
                            Robustness::word(&answer),
                            "{place}: {other} against {}",
                            engine.name()
                        );
                        compared += 1;
                    }
                    known = Some((engine.name(), Robustness::word(&answer)));
                }
            }
        }
    }
    assert!(compared as u64 > seeds.count() * 4 || !seeds.suffice(), "{compared} comparisons");
}
