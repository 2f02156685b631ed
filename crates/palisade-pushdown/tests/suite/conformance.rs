//! The engine against the brute-force interpreter: the suite every engine must pass, under SC.

use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_engine::{Bound, Options, Reduction};
use palisade_memory::Model;
use palisade_pushdown::Pushdown;

fn config(reduction: Reduction, rounds: Bound) -> SuiteConfig {
    let options = Options { rounds, reduction, ..Options::default() };
    SuiteConfig { programs: 50, models: vec![Model::Sc], options, ..SuiteConfig::default() }
}

#[test]
fn random_programs_with_any_number_of_rounds() {
    check_engine(&Pushdown, config(Reduction::Full, Bound::Auto));
}

#[test]
fn random_programs_with_stacks_in_the_middle_of_local_steps() {
    check_engine(&Pushdown, SuiteConfig { first_seed: 2001, ..config(Reduction::None, Bound::Auto) });
}

#[test]
fn random_programs_with_few_rounds() {
    let config = config(Reduction::Full, Bound::Fixed(2));
    check_engine(&Pushdown, SuiteConfig { first_seed: 3001, unknown: Unknown::Always, ..config });
}

#[test]
fn classics() {
    check_classics(&Pushdown, config(Reduction::Full, Bound::Auto));
}
