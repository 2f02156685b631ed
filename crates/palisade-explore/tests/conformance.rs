//! The explicit engine against the brute-force interpreter: the suite every engine must pass.

use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_engine::{Options, Reduction};
use palisade_explore::Explicit;

#[test]
fn random_programs_with_all_reductions() {
    check_engine(&Explicit, SuiteConfig { unknown: Unknown::IfCyclic, ..SuiteConfig::default() });
}

#[test]
fn random_programs_without_reduction() {
    let options = Options { reduction: Reduction::None, ..Options::default() };
    check_engine(
        &Explicit,
        SuiteConfig {
            unknown: Unknown::IfCyclic,
            witness_factor: Some(2.0),
            options,
            ..SuiteConfig::default()
        },
    );
}

#[test]
fn random_programs_with_local_steps_collapsed() {
    let options = Options { reduction: Reduction::Local, ..Options::default() };
    check_engine(
        &Explicit,
        SuiteConfig { unknown: Unknown::IfCyclic, first_seed: 1001, options, ..SuiteConfig::default() },
    );
}

#[test]
fn classics() {
    check_classics(&Explicit, SuiteConfig::default());
}
