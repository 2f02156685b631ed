//! The lazy engine against the brute-force interpreter: the suite every engine must pass.

use palisade_conformance::Profile;
use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_explore::Explicit;
use palisade_memory::Model;
use palisade_robust::Lazy;

const LAZY: Lazy = Lazy { sc: &Explicit };

fn config(profiles: &[Profile], unknown: Unknown) -> SuiteConfig {
    SuiteConfig {
        profiles: profiles.to_vec(),
        models: vec![Model::Tso],
        programs: 40,
        unknown,
        ..SuiteConfig::default()
    }
}

/// Programs without loops are decided (Theorem 3).
#[test]
fn random_programs_without_loops() {
    check_engine(&LAZY, config(&[Profile::Simple], Unknown::Never));
}

#[test]
fn random_programs_with_loops() {
    check_engine(&LAZY, config(&[Profile::Cyclic, Profile::Acyclic, Profile::Full], Unknown::Always));
}

#[test]
fn classics() {
    check_classics(&LAZY, config(&[], Unknown::Always));
}
