//! The engines on programs for any number of threads, against brute force on small numbers of them.

use palisade_conformance::brute::Scope;
use palisade_conformance::parameterized::check_parameterized;
use palisade_conformance::suite::{SuiteConfig, Unknown};
use palisade_cover::{Dual, Sb};
use palisade_engine::Engine;
use palisade_memory::Model;

fn check(engine: &dyn Engine, models: &[Model]) {
    check_parameterized(
        engine,
        SuiteConfig {
            programs: 150,
            models: models.to_vec(),
            unknown: Unknown::Never,
            // Bodies without loops store fewer than eight times.
            limits: Scope { states: 5_000, buffer: Some(8) },
            ..SuiteConfig::default()
        },
    );
}

#[test]
fn load_buffers_for_any_number_of_threads() {
    check(&Dual, &[Model::Sc, Model::Tso]);
}

#[test]
fn a_single_buffer_for_any_number_of_threads() {
    check(&Sb, &Model::ALL);
}
