//! The load-buffer engine on programs for any number of threads, against brute force on small numbers of them.

use palisade_conformance::brute::Limits;
use palisade_conformance::parameterized::check_parameterized;
use palisade_conformance::suite::{SuiteConfig, Unknown};
use palisade_cover::Dual;
use palisade_memory::Model;

#[test]
fn programs_for_any_number_of_threads() {
    check_parameterized(
        &Dual,
        SuiteConfig {
            programs: 150,
            models: vec![Model::Sc, Model::Tso],
            unknown: Unknown::Never,
            // Bodies without loops store less than eight times.
            limits: Limits { states: 5_000, buffer: Some(8) },
            ..SuiteConfig::default()
        },
    );
}
