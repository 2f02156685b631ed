//! The load-buffer engine against the brute-force interpreter: the suite every engine must pass.

use palisade_conformance::Profile;
use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_cover::Dual;
use palisade_memory::Model;

#[test]
fn simple_programs() {
    check_engine(
        &Dual,
        SuiteConfig {
            profiles: vec![Profile::Simple],
            models: vec![Model::Sc, Model::Tso],
            unknown: Unknown::Never,
            ..SuiteConfig::default()
        },
    );
}

#[test]
fn programs_of_all_kinds() {
    check_engine(
        &Dual,
        SuiteConfig {
            profiles: vec![Profile::Acyclic, Profile::Cyclic, Profile::Full],
            models: vec![Model::Sc, Model::Tso],
            unknown: Unknown::Always,
            ..SuiteConfig::default()
        },
    );
}

#[test]
fn classics() {
    check_classics(&Dual, SuiteConfig { models: vec![Model::Sc, Model::Tso], ..SuiteConfig::default() });
}
