//! Robustness by attacks against brute force: the suite every engine for robustness must pass.

use palisade_base::Source;
use palisade_conformance::robust::ask;
use palisade_conformance::robust_suite::{Config, check_robustness};
use palisade_engine::{Options, Question, Robustness, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_robust::Attacks;
use palisade_syntax::{Language, parse};

#[test]
fn random_programs() {
    check_robustness(&Attacks, &Config::default());
}

/// A thread that is about to fail may stop there, and the others go on: what it has read before counts.
#[test]
fn a_failing_assertion_does_not_hide_a_cycle() {
    let text = "shared x, z: 0..1; shared y: 0..2;
        process P0 { z = 1; x = 1; }
        process P1 { assert(x); y = 1; }
        process P2 { y = 2; let r = z; assert(r != 0); }";
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is valid").program;
    let task = Task {
        program: &program,
        threads: Threads::Declared,
        model: Model::Tso,
        interlocked: Interlocked::default(),
        options: Options::default(),
    };
    assert_eq!(Robustness::word(&ask(&Attacks, &task)), "not-robust");
}
