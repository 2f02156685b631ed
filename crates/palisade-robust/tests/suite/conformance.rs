//! Robustness by attacks against brute force: the suite every engine for robustness must pass.

use palisade_base::Source;
use palisade_conformance::robust::ask;
use palisade_conformance::robust_suite::{Config, check_robustness};
use palisade_engine::{Question, Robustness, Task};
use palisade_memory::Model;
use palisade_robust::Attacks;
use palisade_syntax::{Language, parse};

#[test]
fn random_programs() {
    check_robustness(&Attacks, &Config::default());
}

/// A thread that is about to fail may stop there while the others continue. What it has read before counts.
#[test]
fn a_failing_assertion_does_not_hide_a_cycle() {
    let text = "shared x, z: 0..1; shared y: 0..2;
        process P0 { z = 1; x = 1; }
        process P1 { assert(x); y = 1; }
        process P2 { y = 2; let r = z; assert(r != 0); }";
    let program = parse(Language::Pal, &Source::new("test.pal", text)).expect("it is valid").program;
    let task = Task::new(&program, Model::Tso);
    assert_eq!(Robustness::word(&ask(&Attacks, &task)), "not-robust");
}
