//! The engines against the brute-force interpreter: the suite every engine must pass.

use palisade_bounded::{Age, Rounds};
use palisade_conformance::Profile;
use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_engine::{Bound, Options};
use palisade_explore::Explicit;
use palisade_memory::Model;
use palisade_pushdown::Pushdown;

const ROUNDS: Rounds = Rounds { sc: &Explicit, recursive: &Pushdown };
const AGE: Age = Age { sc: &Explicit };

fn config(profiles: &[Profile], programs: usize, bound: Bound, unknown: Unknown) -> SuiteConfig {
    SuiteConfig {
        profiles: profiles.to_vec(),
        models: vec![Model::Tso],
        programs,
        unknown,
        options: Options { rounds: bound, age: bound, ..Options::default() },
        ..SuiteConfig::default()
    }
}

/// Without loops some bound is enough.
#[test]
fn growing_bounds_decide_programs_without_loops() {
    check_engine(&AGE, config(&[Profile::Simple], 25, Bound::Auto, Unknown::Never));
    check_engine(&ROUNDS, config(&[Profile::Simple], 15, Bound::Auto, Unknown::Never));
}

#[test]
fn fixed_rounds() {
    let profiles = [Profile::Acyclic, Profile::Cyclic, Profile::Full];
    check_engine(&ROUNDS, config(&profiles, 12, Bound::Fixed(2), Unknown::Always));
}

#[test]
fn fixed_age() {
    let profiles = [Profile::Acyclic, Profile::Cyclic, Profile::Full];
    check_engine(&AGE, config(&profiles, 12, Bound::Fixed(2), Unknown::Always));
}

#[test]
fn classics() {
    check_classics(&ROUNDS, config(&[], 0, Bound::Fixed(2), Unknown::Always));
    check_classics(&AGE, config(&[], 0, Bound::Fixed(2), Unknown::Always));
}
