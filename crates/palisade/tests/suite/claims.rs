//! The reason of an `unknown` is true. For programs that never end, every bound that an engine claims, or
//! all engines together, is checked against brute force.
//!
//! By default, a few programs of each kind. `PALISADE_SEEDS=500 cargo test --release -p palisade --test suite
//! claims -- --nocapture` runs five hundred. `PALISADE_SEED=7` runs only that seed.

use palisade::engine::{Analysis, Engine, Limits, Options, Outcome, Suitability, Verdict};
use palisade::syntax::parse;
use palisade::{CheckOptions, EngineChoice, Language, Model, check};
use palisade_conformance::brute::Scope;
use palisade_conformance::claims::check_claims;
use palisade_conformance::suite::SuiteConfig;
use std::time::Duration;

/// All engines side by side, as one.
struct Auto;

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn suits(&self, _: &Analysis<'_>) -> Suitability {
        Suitability::Decides
    }
    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        let task = &analysis.task;
        let options = CheckOptions {
            model: task.model,
            interlocked: task.interlocked,
            threads: task.threads,
            options: task.options.clone(),
            ..CheckOptions::default()
        };
        let answer = check(task.program, &options, limits);
        answer.unwrap_or_else(|error| panic!("{error}")).outcome
    }
}

fn config(programs: usize, timeout: Duration) -> SuiteConfig {
    SuiteConfig {
        programs,
        first_seed: 9001,
        options: Options { max_buffer: 2, ..Options::default() },
        limits: Scope { states: 1_000, buffer: None },
        timeout,
        ..SuiteConfig::default()
    }
}

#[test]
fn bounds_that_engines_claim_hold() {
    for engine in palisade::engines() {
        check_claims(*engine, config(4, Duration::from_secs(2)));
    }
}

#[test]
fn bounds_that_all_engines_together_claim_hold() {
    check_claims(&Auto, config(4, Duration::from_secs(2)));
}

fn ask(text: &str, model: Model, engine: EngineChoice) -> Outcome {
    let source = palisade::Source::new("p.pal", text);
    let program = parse(Language::Pal, &source).unwrap_or_else(|errors| panic!("{errors:?}")).program;
    let options = CheckOptions { model, engine, ..CheckOptions::default() };
    let limits = Limits::unlimited(1).with_timeout(Duration::from_secs(120));
    check(&program, &options, &limits).expect("no engine fails").outcome
}

#[test]
fn dual_and_sb_claim_nothing_about_nested_calls_that_they_did_not_search() {
    let text =
        "shared x: 0..1; proc dig() { choose { dig(); } or { skip; } } process P { dig(); assert(x == 1); }";
    for engine in ["dual", "sb"] {
        let Verdict::Unknown(reason) = ask(text, Model::Tso, EngineChoice::Named(engine.to_owned())).verdict
        else {
            panic!("{engine} does not handle recursion")
        };
        assert_eq!(reason.to_string(), "there may be more than 256 nested calls");
    }
}

#[test]
fn auto_under_pso_finds_a_started_process_that_fails() {
    let text = "shared x: 0..1; process Main { loop { spawn W; } } process W on spawn { assert(x == 1); }";
    for model in Model::ALL {
        let outcome = ask(text, model, EngineChoice::Auto);
        assert_eq!(outcome.word(), "unsafe", "{}: {outcome:?}", model.name());
    }
}
