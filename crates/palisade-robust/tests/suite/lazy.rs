//! The lazy engine against the brute-force interpreter (the suite every engine must pass), and how its work
//! grows.

use palisade_base::Source;
use palisade_conformance::Profile;
use palisade_conformance::suite::{SuiteConfig, Unknown, check_classics, check_engine};
use palisade_engine::{Engine, Limits, Options, Stats, Task, Threads};
use palisade_explore::Explicit;
use palisade_memory::{Interlocked, Model};
use palisade_robust::Lazy;
use palisade_syntax::{Language, parse};

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

/// Figure 9 of the paper: a loop of `length` stores that has to be delayed twice.
fn delayed_loop(length: u32) -> String {
    format!(
        "shared x: 0..{length}; shared y: 0..1; \
         process T1 {{ let r: 0..{length}; again: while r < {length} {{ x = r; r = r + 1; }} \
         choose {{ r = 0; goto again; }} or {{ assume(y == 0); }} goal: skip; }} \
         process T2 {{ y = 1; assume(x == 1); assume(x == 0); goal: skip; }} \
         forbid T1@goal && T2@goal;"
    )
}

fn stats(text: &str, jobs: usize) -> Stats {
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is well formed").program;
    let interlocked = Interlocked::default();
    let options = Options::default();
    let task =
        Task { program: &program, threads: Threads::Declared, model: Model::Tso, interlocked, options };
    let outcome = LAZY.check(&task.analysis(), &Limits::unlimited(jobs));
    assert_eq!(outcome.word(), "unsafe", "{text}");
    outcome.stats
}

/// The number of states grows like the square of the length, and so must the work. Here chains of states with
/// one successor lead into long cycles, and each chain used to walk the whole cycle.
#[test]
fn work_on_delayed_loops_grows_like_the_states() {
    let per_state = |length| {
        let stats = stats(&delayed_loop(length), 1);
        let count = |name| stats.get(name).expect("it is counted") as f64;
        (count("chain_steps") + count("states")) / count("states")
    };
    let steps = [50, 100, 200].map(per_state);
    for pair in steps.windows(2) {
        assert!(pair[1] < 1.5 * pair[0], "twice the length takes more steps per state: {steps:?}");
    }
    assert!(steps[2] < 16.0, "{steps:?} steps per state");
    let text = delayed_loop(60);
    assert_eq!(stats(&text, 1), stats(&text, 3), "jobs make no difference");
}
