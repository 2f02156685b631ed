//! Programs in which several values lead to the same place: the engines treat these values together.

use palisade_conformance::brute::Scope;
use palisade_conformance::generate::generate_parameterized_choices;
use palisade_conformance::parameterized::check_parameterized_with;
use palisade_conformance::suite::{SuiteConfig, Unknown, check_engine};
use palisade_conformance::{Profile, generate, seeds};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Proof, Task, Threads, Verdict};
use palisade_memory::Model;
use palisade_program::written::Program;

fn config(profile: Profile, models: &[Model]) -> SuiteConfig {
    SuiteConfig {
        profiles: vec![profile],
        programs: 15,
        models: models.to_vec(),
        unknown: Unknown::Never,
        ..SuiteConfig::default()
    }
}

#[test]
fn load_buffers() {
    check_engine(&Dual, config(Profile::Choices, &[Model::Sc, Model::Tso]));
}

#[test]
fn load_buffers_with_loops() {
    check_engine(&Dual, config(Profile::CyclicChoices, &[Model::Sc, Model::Tso]));
}

#[test]
fn a_single_buffer() {
    check_engine(&Sb, config(Profile::Choices, &Model::ALL));
}

#[test]
fn a_single_buffer_with_loops() {
    check_engine(&Sb, config(Profile::CyclicChoices, &Model::ALL));
}

fn any_number(engine: &dyn Engine, models: &[Model]) {
    let limits = Scope { states: 5_000, buffer: Some(8) };
    let config = SuiteConfig { limits, ..config(Profile::Choices, models) };
    check_parameterized_with(engine, config, generate_parameterized_choices);
}

#[test]
fn load_buffers_for_any_number_of_threads() {
    any_number(&Dual, &[Model::Sc, Model::Tso]);
}

#[test]
fn a_single_buffer_for_any_number_of_threads() {
    any_number(&Sb, &Model::ALL);
}

/// The checker accepts all proofs.
#[test]
fn proofs() {
    let seeds = seeds(10).starting_at(1);
    let mut checked = 0;
    for seed in &seeds {
        let programs: [Program; 3] = [
            generate(Profile::Choices, seed),
            generate(Profile::CyclicChoices, seed),
            generate_parameterized_choices(seed),
        ];
        for (number, program) in programs.iter().enumerate() {
            for (engine, model) in [
                (&Dual as &dyn Engine, Model::Sc),
                (&Dual, Model::Tso),
                (&Sb, Model::Sc),
                (&Sb, Model::Tso),
                (&Sb, Model::Pso),
            ] {
                for threads in [Threads::Declared, Threads::Each(2)] {
                    let task = Task { threads, ..Task::new(program, model) };
                    let limits = Limits::unlimited(1).with_work(50_000);
                    let (outcome, proof) = engine.prove(&task.analysis(), &limits);
                    let Some(proof) = proof else {
                        assert_ne!(outcome.verdict, Verdict::Holds, "there is a proof");
                        continue;
                    };
                    assert_ne!(proof, Proof::AllStates);
                    let verified = palisade_certificate::verify(&task, &proof, &Limits::unlimited(1));
                    let what = format!("seed {seed}, program {number}, {} {}", engine.name(), model.name());
                    verified.unwrap_or_else(|refusal| panic!("{what}, {threads:?}: {refusal}"));
                    checked += 1;
                }
            }
        }
    }
    println!("{checked} proofs checked");
    assert!(checked > 0 || !seeds.suffice());
}
