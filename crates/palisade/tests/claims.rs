//! What `unknown` says is true: every bound that an engine, or all of them side by side, states about programs without end is checked against brute force.
//!
//! A few programs of each kind each time; `PALISADE_SEEDS=500 cargo test --release -p palisade --test claims -- --nocapture` takes five hundred, `PALISADE_SEED=7` that one only.

use palisade::engine::{Budget, Engine, Options, Outcome, Progress, Suitability, Task};
use palisade::{CheckOptions, check};
use palisade_conformance::brute::Limits;
use palisade_conformance::claims::check_claims;
use palisade_conformance::suite::SuiteConfig;
use std::time::Duration;

/// All engines side by side, as one.
struct Auto;

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn suits(&self, _: &Task<'_>) -> Suitability {
        Suitability::Decides
    }
    fn check(&self, task: &Task<'_>, budget: &Budget, progress: &dyn Progress) -> Outcome {
        let options = CheckOptions {
            model: task.model,
            interlocked: task.interlocked,
            threads: task.threads,
            options: task.options.clone(),
            ..CheckOptions::default()
        };
        let answer = check(task.program, &options, budget, progress);
        answer.unwrap_or_else(|error| panic!("{error}")).outcome
    }
}

fn config(programs: usize, timeout: Duration) -> SuiteConfig {
    SuiteConfig {
        programs,
        first_seed: 9001,
        options: Options { max_buffer: 2, ..Options::default() },
        limits: Limits { states: 1_000, buffer: None },
        timeout,
        ..SuiteConfig::default()
    }
}

#[test]
fn bounds_that_engines_claim_hold() {
    for engine in palisade::engines() {
        check_claims(*engine, config(4, Duration::from_secs(10)));
    }
}

#[test]
fn bounds_that_all_engines_together_claim_hold() {
    check_claims(&Auto, config(4, Duration::from_secs(2)));
}
