//! Robustness by attacks against brute force: the suite every engine for robustness must pass.

use palisade_conformance::robust_suite::{Config, check_robustness};
use palisade_robust::Attacks;

#[test]
fn random_programs() {
    check_robustness(&Attacks, &Config::default());
}
