//! All engines, side by side, on random programs with loops. If several know the answer, it is the same.
//!
//! By default, a hundred programs of each profile. `PALISADE_SEEDS=2000 cargo test --release -p palisade
//! --test suite agreement -- --nocapture` runs two thousand of each. `PALISADE_SEED=7` runs only that seed.

use palisade::engine::{Limits, Options, Question, Safety, Task, Threads, Verdict};
use palisade::memory::{Interlocked, Model};
use palisade_conformance::{Profile, generate, seeds};
use std::collections::BTreeMap;

#[test]
fn differential_engines_agree_on_programs_with_loops() {
    let seeds = seeds(100).starting_at(1);
    println!("seeds {:?}", seeds.range());
    let mut conclusive: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut compared = 0;
    for profile in [Profile::Cyclic, Profile::Full] {
        for seed in &seeds {
            let program = generate(profile, seed);
            for model in Model::ALL {
                let options = Options { max_buffer: 3, ..Options::default() };
                let interlocked = Interlocked::default();
                let task =
                    Task { program: &program, threads: Threads::Declared, model, interlocked, options };
                let mut answers = Vec::new();
                for engine in palisade::engines() {
                    let limits = Limits::unlimited(1).with_work(5_000);
                    match engine.check(&task.analysis(), &limits).verdict {
                        Verdict::Unknown(_) => {}
                        verdict => answers.push((engine.name(), Safety::word(&verdict))),
                    }
                }
                for &(engine, word) in &answers {
                    *conclusive.entry((engine, word)).or_default() += 1;
                }
                compared += usize::from(answers.len() > 1);
                let agreed = answers.windows(2).all(|pair| pair[0].1 == pair[1].1);
                assert!(
                    agreed,
                    "seed {seed}, {profile:?}, {}: {answers:?}\n{}",
                    model.name(),
                    palisade::program::print::print(&program)
                );
            }
        }
    }
    println!("several engines knew the answer {compared} times; answers: {conclusive:?}");
    assert!(compared > 0 || !seeds.suffice());
}
