//! Algorithms from the literature: what the monitors find in them, with and without fences, and how many
//! partial orders small tests of them have.

use crate::algorithms::{MORE, Program, SEVEN, Variant};
use palisade_sync::{Checker, Coverage, Exhaustive, Interlocked, Model};

fn all() -> impl Iterator<Item = (&'static str, Program)> {
    SEVEN.into_iter().chain(MORE)
}

/// The number of random executions in which the monitors find a violation.
fn violating(program: Program, variant: Variant, model: Model, interlocked: Interlocked) -> u64 {
    let checker = Checker::new().robust().schedules(120).model(model).interlocked(interlocked);
    let outcome = checker.check(move || program(variant));
    assert!(outcome.failed.is_none(), "{variant:?}: {outcome}");
    outcome.violating
}

#[test]
fn without_fences() {
    // The algorithms in which a load must not overtake an earlier store of its thread.
    let tso = ["dekker", "bakery", "chase_lev", "treiber", "spsc"];
    for (name, program) in all() {
        for threads in [2, 3] {
            let variant = Variant { threads, ops: 4, fenced: false };
            let found = violating(program, variant, Model::Tso, Interlocked::WholeBuffer);
            assert_eq!(found > 0, tso.contains(&name), "{name} under TSO: {found}");
            let found = violating(program, variant, Model::Pso, Interlocked::OwnAddress);
            assert!(found > 0, "{name} under PSO");
        }
    }
}

#[test]
fn with_fences() {
    for (name, program) in all() {
        for (threads, ops) in [(2, 4), (3, 2)] {
            let variant = Variant { threads, ops, fenced: true };
            for interlocked in [Interlocked::WholeBuffer, Interlocked::OwnAddress] {
                let found = violating(program, variant, Model::Pso, interlocked);
                assert_eq!(found, 0, "{name}, {interlocked:?}");
            }
            assert_eq!(violating(program, variant, Model::Tso, Interlocked::WholeBuffer), 0, "{name}");
        }
    }
}

#[test]
fn all_partial_orders() {
    let check = |name: &str, ops: usize, expected: u64| {
        let (_, program) = all().find(|(other, _)| *other == name).expect("the program is in the list");
        for fenced in [false, true] {
            let checker = Checker::new().robust().strategy(Exhaustive).schedules(u64::MAX).model(Model::Pso);
            let outcome = checker
                .interlocked(Interlocked::OwnAddress)
                .check(move || program(Variant { threads: 2, ops, fenced }));
            assert!(outcome.failed.is_none(), "{name}: {outcome}");
            assert_eq!(outcome.coverage, Coverage::Complete, "{name}");
            assert_eq!(outcome.executions, expected, "{name}");
            assert_eq!(outcome.violations.is_empty(), fenced, "{name}: {outcome}");
        }
    };
    check("dekker", 1, 51);
    check("bakery", 1, 60);
    check("msn", 2, 82);
    check("ms2", 2, 27);
    check("harris", 2, 128);
    check("lazylist", 2, 221);
    check("snark", 1, 24);
    check("chase_lev", 2, 23);
    check("seqlock", 1, 163);
    check("treiber", 2, 476);
    check("spsc", 2, 15);
    check("ticket", 2, 48);
    check("mcs", 1, 22);
    check("dcl", 2, 10);
}

#[test]
fn few_preemptions_show_the_same_partial_orders() {
    let check = |name: &str, ops: usize, preemptions: usize, expected: u64| {
        let (_, program) = all().find(|(other, _)| *other == name).expect("the program is in the list");
        let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX).preemptions(preemptions);
        let outcome =
            checker.model(Model::Sc).check(move || program(Variant { threads: 2, ops, fenced: false }));
        assert_eq!(outcome.partial_orders, Some(expected), "{name}: {outcome}");
    };
    check("bakery", 1, 4, 60);
    check("ms2", 2, 3, 27);
    check("spsc", 2, 3, 15);
    check("mcs", 1, 4, 22);
    check("dcl", 2, 2, 10);
    check("snark", 1, 2, 24);
}
