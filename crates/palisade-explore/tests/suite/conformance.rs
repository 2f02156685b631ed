//! The explicit engine against the brute-force interpreter: the suite every engine must pass.

use palisade_conformance::brute::Scope;
use palisade_conformance::claims::check_claims;
use palisade_conformance::seeds;
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

#[test]
fn bounds_that_are_claimed_hold() {
    for (reduction, programs) in [(Reduction::Full, 24), (Reduction::Local, 8), (Reduction::None, 8)] {
        let options = Options { reduction, max_buffer: 2, ..Options::default() };
        let limits = Scope { states: 1_500, buffer: None };
        let compared =
            check_claims(&Explicit, SuiteConfig { programs, options, limits, ..SuiteConfig::default() });
        if reduction == Reduction::Full && seeds(programs as u64).suffice() {
            for kind in ["buffers", "instances", "nested calls", "started processes"] {
                assert!(compared.contains_key(kind), "no claim about {kind}: {compared:?}");
            }
        }
    }
}
