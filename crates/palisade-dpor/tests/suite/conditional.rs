//! Steps that write only under a condition: one execution per trace, compared with all interleavings.

use crate::buffers::{check, load, random_program, store};
use crate::common::buffered::{Machine, Model, Op, Place, Value, all_traces};
use crate::executions::Rerun;
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_dpor::{Limits, explore, explore_executions};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// A random program with steps that write only under a condition.
fn conditional_program(random: &mut Random) -> Vec<Vec<Op>> {
    let locks = random.percent(30);
    let mut codes = random_program(random, locks);
    for code in &mut codes {
        for at in 0..code.len() {
            let follows_skip = at > 0 && matches!(code[at - 1], Op::Skip(_));
            if matches!(code[at], Op::Skip(_) | Op::Lock(_) | Op::Unlock(_)) || !random.percent(45) {
                continue;
            }
            let register = random.below(2);
            code[at] = if locks && random.percent(60) {
                Op::TryLock(register, random.below(2))
            } else {
                let size = if random.percent(10) { 2 } else { 1 };
                let (place, expected) = (Place(random.below(2) as u64, None), random.below(3) as i64);
                let value = Value(random.below(3) as i64, random.percent(20).then(|| random.below(2)));
                Op::Cas(register, place, size, expected, value)
            };
            if matches!(code[at], Op::TryLock(..)) && !follows_skip && random.percent(50) {
                code.push(Op::Unlock(random.below(2)));
            }
        }
    }
    codes
}

fn is_wide(op: &Op) -> bool {
    matches!(op, Op::Load(_, _, 2) | Op::Store(_, 2, _) | Op::Swap(_, _, 2, _) | Op::Cas(_, _, 2, ..))
}

/// Compare-and-swap instructions and attempts to take a lock, which only read if they fail: every trace is seen, and no
/// execution is begun in vain. No trace is seen twice, unless parts of what is compared are accessed.
fn check_conditional(model: Model) {
    let (mut runs, mut executions) = (0, 0);
    for seed in seeds(150) {
        let codes = conditional_program(&mut Random::new(seed));
        let is_mixed = codes.iter().flatten().any(is_wide);
        let what = format!("{model:?}, seed {seed}: {codes:?}");
        let mut machine = Machine::new(codes, model, 3, 2);
        let mut seen = BTreeSet::new();
        let summary = explore(&mut machine, Limits::default(), |machine, _| {
            assert!(seen.insert(machine.trace()) || is_mixed, "{what}: a trace is seen twice");
            ControlFlow::Continue(())
        });
        let all = all_traces(&mut machine);
        assert_eq!(seen.len(), all.len(), "{what}: traces seen, and all traces");
        assert_eq!(seen, all, "{what}");
        assert!(summary.is_complete() && summary.broken_off == 0, "{what}: {summary:?}");
        let mut rerun = Rerun::new(machine, true);
        rerun.held = Machine::held;
        rerun.free = Some(Machine::free);
        let mut again = BTreeSet::new();
        let (summary, _) = explore_executions(&mut rerun, Limits::default(), |rerun, _| {
            assert!(again.insert(rerun.machine.trace()) || is_mixed, "{what}: a trace is seen twice");
            ControlFlow::Continue(())
        });
        assert!(summary.is_complete() && summary.broken_off == 0, "{what}: {summary:?}");
        assert_eq!(again, all, "{what}");
        runs += rerun.runs;
        executions += summary.executions;
    }
    println!("{model:?}: {runs} runs for {executions} executions");
    assert!(runs <= executions + executions / 2, "{model:?}: {runs} runs for {executions} executions");
}

#[test]
fn differential_conditional_sc() {
    check_conditional(Model::Sc);
}

#[test]
fn differential_conditional_tso() {
    check_conditional(Model::Tso);
}

#[test]
fn differential_conditional_pso() {
    check_conditional(Model::Pso);
}

#[test]
fn steps_that_fail() {
    let (x, y) = (0, 1);
    let cas = |expected: i64, value: i64| Op::Cas(0, Place(y, None), 1, expected, Value(value, None));
    let attempts = |writer: Vec<Op>| vec![writer, vec![cas(2, 3)], vec![cas(1, 2)], vec![load(0, y)]];
    // The numbers of GenMC and Nidhugg for MPU2+rel+acqf and MPU2+rels+acqf under SC and TSO.
    check("one store", attempts(vec![store(x, 1), store(y, 1)]), [14; 3]);
    check("two stores", attempts(vec![store(x, 1), store(y, 0), store(y, 1)]), [35; 3]);
    check("only failing", vec![vec![cas(5, 6)], vec![cas(7, 8)], vec![load(0, y)]], [1; 3]);
}
