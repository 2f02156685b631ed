//! The single-buffer engine against the brute-force interpreter (the suite every engine must pass) and
//! against load buffers.

use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Options, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::print::print;

#[test]
fn simple_programs() {
    check_engine(
        &Sb,
        SuiteConfig { profiles: vec![Profile::Simple], unknown: Unknown::Never, ..SuiteConfig::default() },
    );
}

#[test]
fn programs_of_all_kinds() {
    check_engine(
        &Sb,
        SuiteConfig {
            profiles: vec![Profile::Acyclic, Profile::Cyclic, Profile::Full],
            unknown: Unknown::Always,
            ..SuiteConfig::default()
        },
    );
}

#[test]
fn classics() {
    check_classics(&Sb, SuiteConfig::default());
}

/// The two exact procedures agree, whether or not brute force is conclusive.
#[test]
fn differential_single_buffer_and_load_buffers() {
    let seeds = seeds(60).starting_at(1);
    for (profile, seed) in
        Profile::ALL.into_iter().flat_map(|profile| seeds.range().map(move |seed| (profile, seed)))
    {
        let program = generate(profile, 1_000_000 + seed);
        for model in [Model::Sc, Model::Tso] {
            let (threads, interlocked) = (Threads::Declared, Interlocked::WholeBuffer);
            let task = Task { program: &program, threads, model, interlocked, options: Options::default() };
            let ask = |engine: &dyn Engine| engine.check(&task.analysis(), &Limits::unlimited(1)).word();
            let (single, dual) = (ask(&Sb), ask(&Dual));
            let name = model.name();
            assert_eq!(
                single,
                dual,
                "{profile:?}, seed {seed}, {name}: sb (left) and dual\n{}",
                print(&program)
            );
        }
    }
}
