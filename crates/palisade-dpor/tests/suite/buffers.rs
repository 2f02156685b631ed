//! Store buffers: one execution per trace of Shasha and Snir, on programs with known numbers of traces and on
//! random programs compared with all interleavings.

use crate::common::buffered::{Machine, Model, Op, Place, Trace, Value, all_traces};
use crate::executions::Rerun;
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_dpor::{Limits, Next, Subject, Summary, explore, explore_executions, explore_preemptions};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Explores a machine and checks that no trace is seen twice.
pub fn explored(machine: &mut Machine, what: &str) -> (BTreeSet<Trace>, Summary) {
    let mut seen = BTreeSet::new();
    let summary = explore(machine, Limits::default(), |machine, _| {
        assert!(seen.insert(machine.trace()), "{what}: a trace is seen twice");
        ControlFlow::Continue(())
    });
    assert!(summary.is_complete());
    (seen, summary)
}

pub fn load(register: usize, address: u64) -> Op {
    Op::Load(register, Place(address, None), 1)
}

pub fn store(address: u64, value: i64) -> Op {
    Op::Store(Place(address, None), 1, Value(value, None))
}

fn swap(address: u64, value: i64) -> Op {
    Op::Swap(0, Place(address, None), 1, Value(value, None))
}

/// The numbers of traces under SC, TSO and PSO; small ones are also counted by brute force.
pub fn check(name: &str, codes: Vec<Vec<Op>>, expected: [usize; 3]) {
    for (model, expected) in [Model::Sc, Model::Tso, Model::Pso].into_iter().zip(expected) {
        let mut machine = Machine::new(codes.clone(), model, 4, 1);
        let (seen, summary) = explored(&mut machine, name);
        assert_eq!((seen.len(), summary.broken_off), (expected, 0), "{name}, {model:?}");
        assert_eq!(seen, all_traces(&mut machine), "{name}, {model:?}");
    }
}

/// The numbers for SC and TSO are those of Nidhugg and GenMC for the programs of the same names.
#[test]
fn litmus_tests() {
    let (x, y) = (0, 1);
    check("SB", vec![vec![store(x, 1), load(0, y)], vec![store(y, 1), load(0, x)]], [3, 4, 4]);
    check(
        "SB with fences",
        vec![vec![store(x, 1), Op::Fence, load(0, y)], vec![store(y, 1), Op::Fence, load(0, x)]],
        [3, 3, 3],
    );
    check(
        "SB with locked instructions",
        vec![vec![swap(x, 1), load(0, y)], vec![swap(y, 1), load(0, x)]],
        [3, 3, 3],
    );
    check(
        "SB+rfis",
        vec![vec![store(x, 1), load(1, x), load(0, y)], vec![store(y, 1), load(1, y), load(0, x)]],
        [3, 4, 4],
    );
    check("MP", vec![vec![store(x, 1), store(y, 1)], vec![load(0, y), load(1, x)]], [3, 3, 4]);
    check(
        "MP with a store fence",
        vec![vec![store(x, 1), Op::StoreFence, store(y, 1)], vec![load(0, y), load(1, x)]],
        [3, 3, 3],
    );
    check("2+2W", vec![vec![store(x, 1), store(y, 2)], vec![store(y, 1), store(x, 2)]], [3, 3, 4]);
    check("LB", vec![vec![load(0, x), store(y, 1)], vec![load(0, y), store(x, 1)]], [3, 3, 3]);
    check("CoWR", vec![vec![store(x, 1), load(0, x)], vec![store(x, 2)]], [3, 3, 3]);
    let reader = || vec![load(0, x), load(1, x)];
    check("CoRR2", vec![vec![store(x, 1)], vec![store(x, 2)], reader(), reader()], [72, 72, 72]);
    let reader = |first: u64, second: u64| vec![load(0, first), load(1, second)];
    check("IRIW", vec![vec![store(x, 1)], vec![store(y, 1)], reader(x, y), reader(y, x)], [15, 15, 15]);
}

/// A load that reads its own pending store, another thread's write, and both orders of the two stores.
#[test]
fn forwarded_loads() {
    let x = 0;
    let own = vec![store(x, 1), load(0, x), load(1, x)];
    // The other store comes first, or after none, one or both of the loads.
    check("forwarded twice", vec![own.clone(), vec![store(x, 2)]], [4, 4, 4]);
    check("forwarded and locked", vec![own, vec![swap(x, 2)]], [4, 4, 4]);
}

/// Loads that are wider than the stores before them read some bytes from the buffer and others from memory.
#[test]
fn mixed_sizes() {
    let wide = |register: usize| Op::Load(register, Place(0, None), 2);
    let narrow = |address: u64, value: i64| store(address, value);
    let wide_store = Op::Store(Place(0, None), 2, Value(3, None));
    for codes in [
        vec![vec![narrow(0, 1), wide(0)], vec![narrow(1, 1), wide(0)]],
        vec![vec![wide_store, narrow(1, 1), wide(0)], vec![wide_store, load(0, 1)]],
        vec![vec![narrow(0, 1), wide_store, load(0, 0), load(1, 1)], vec![narrow(1, 5), wide(0)]],
    ] {
        for model in [Model::Sc, Model::Tso, Model::Pso] {
            let mut machine = Machine::new(codes.clone(), model, 2, 0);
            let (seen, summary) = explored(&mut machine, "mixed sizes");
            assert_eq!(seen, all_traces(&mut machine), "{codes:?} {model:?}");
            assert_eq!(summary.broken_off, 0, "{codes:?} {model:?}");
        }
    }
}

/// `fib_bench` of SV-COMP with n iterations: each of two threads adds the other's variable to its own, and a
/// third one reads both.
fn fib_bench(n: usize, model: Model) -> Machine {
    let add = |mine: u64, other: u64| {
        let sum = Op::Store(Place(mine, None), 1, Value(0, Some(0)));
        [load(0, mine), load(1, other), sum].repeat(n)
    };
    Machine::new(vec![add(0, 1), add(1, 0), vec![load(0, 0), load(1, 1)]], model, 2, 0)
}

#[test]
fn fib_bench_by_brute_force() {
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        for n in 1..=2 {
            let mut machine = fib_bench(n, model);
            let (seen, summary) = explored(&mut machine, "fib_bench");
            assert_eq!(summary.broken_off, 0);
            assert_eq!(seen, all_traces(&mut machine), "{n} {model:?}");
        }
    }
}

/// The numbers that Nidhugg and GenMC give for 5 iterations.
fn check_fib_bench(model: Model, expected: u64) {
    let mut machine = fib_bench(5, model);
    let summary = explore(&mut machine, Limits::default(), |_, _| ControlFlow::Continue(()));
    assert_eq!((summary.executions, summary.broken_off), (expected, 0), "{model:?}");
}

#[test]
fn fib_bench_as_published_sc() {
    check_fib_bench(Model::Sc, 218_243);
}

#[test]
fn fib_bench_as_published_tso() {
    check_fib_bench(Model::Tso, 525_630);
}

/// A random program.
pub fn random_program(random: &mut Random, locks: bool) -> Vec<Vec<Op>> {
    let threads = 2 + random.below(2);
    let place = |random: &mut Random, size: u64| match random.below(5) {
        0 if size == 1 => Place(random.below(2) as u64, Some(random.below(2))),
        _ => Place(random.below(if size == 1 { 3 } else { 2 }) as u64, None),
    };
    let value = |random: &mut Random| match random.below(3) {
        0 => Value(1, Some(random.below(2))),
        _ => Value(1 + random.below(2) as i64, None),
    };
    let mixed = random.percent(30);
    let code = |random: &mut Random| {
        let length = if threads == 2 { 2 + random.below(4) } else { 1 + random.below(3) };
        let mut code = Vec::new();
        for _ in 0..length {
            let size = if mixed && random.percent(40) { 2 } else { 1 };
            code.push(match random.below(12) {
                0..5 => Op::Load(random.below(2), place(random, size), size),
                5..10 => Op::Store(place(random, size), size, value(random)),
                10 => Op::Swap(random.below(2), place(random, size), size, value(random)),
                _ if random.percent(50) => Op::Fence,
                _ => Op::StoreFence,
            });
            if !locks && random.percent(15) {
                code.push(Op::Skip(random.below(2)));
            }
        }
        if locks && random.percent(80) {
            let lock = random.below(2);
            code.insert(random.below(code.len()), Op::Lock(lock));
            if random.percent(30) {
                code.insert(1 + random.below(code.len() - 1), Op::Lock(1 - lock));
            }
            let first = code.iter().position(|op| matches!(op, Op::Lock(of) if *of == lock)).unwrap_or(0);
            let at = first + 1 + random.below(code.len() - first);
            code.insert(at, Op::Unlock(lock));
        }
        code
    };
    (0..threads).map(|_| code(random)).collect()
}

fn check_random(model: Model, locks: bool) {
    let seeds = seeds(400);
    let (mut traces, mut broken_off) = (0, 0);
    for seed in &seeds {
        let codes = random_program(&mut Random::new(seed), locks);
        let what = format!("{model:?}, seed {seed}: {codes:?}");
        let mut machine = Machine::new(codes, model, 3, 2);
        let (seen, summary) = explored(&mut machine, &what);
        let all = all_traces(&mut machine);
        assert_eq!(seen.len(), all.len(), "{what}: traces seen, and all traces");
        assert_eq!(seen, all, "{what}");
        traces += all.len();
        broken_off += summary.broken_off;
    }
    println!("{model:?}: {traces} traces, {broken_off} executions broken off");
    assert_eq!(broken_off, 0, "{model:?}: the search is optimal");
}

#[test]
fn differential_sc() {
    check_random(Model::Sc, false);
}

#[test]
fn differential_tso() {
    check_random(Model::Tso, false);
}

#[test]
fn differential_pso() {
    check_random(Model::Pso, false);
}

#[test]
fn differential_tso_with_locks() {
    check_random(Model::Tso, true);
}

#[test]
fn differential_pso_with_locks() {
    check_random(Model::Pso, true);
}

/// Programs that are run again from their start: the same traces, with about one run per trace.
#[test]
fn differential_executions() {
    let (mut runs, mut executions) = (0, 0);
    for seed in seeds(300) {
        let codes = random_program(&mut Random::new(seed), seed % 2 == 0);
        for (model, helpful) in [(Model::Tso, true), (Model::Tso, false), (Model::Pso, true)] {
            let what = format!("{model:?}, seed {seed}: {codes:?}");
            let mut rerun = Rerun::new(Machine::new(codes.clone(), model, 3, 2), helpful);
            let mut seen = BTreeSet::new();
            let (summary, _) = explore_executions(&mut rerun, Limits::default(), |rerun, _| {
                assert!(seen.insert(rerun.machine.trace()), "{what}: a trace is seen twice");
                ControlFlow::Continue(())
            });
            assert!(summary.is_complete() && summary.broken_off == 0, "{what}: {summary:?}");
            rerun.machine.rewind(0);
            assert_eq!(seen, all_traces(&mut rerun.machine), "{what}");
            if helpful {
                runs += rerun.runs;
                executions += summary.executions;
            }
        }
    }
    println!("{runs} runs for {executions} executions");
    assert!(runs <= executions + executions / 4, "{runs} runs for {executions} executions");
}

/// All schedules within a number of preemptions and delays, by brute force: their number and their traces.
fn all_within(machine: &mut Machine, most: usize) -> (u64, BTreeSet<Trace>) {
    /// The thread that runs, and the buffers whose delay is paid for.
    type Turn = (Option<usize>, BTreeSet<usize>);
    fn go(machine: &mut Machine, left: usize, turn: Turn, found: &mut (u64, BTreeSet<Trace>)) {
        let (running, delayed) = turn;
        let all = 0..machine.processes();
        let ready: Vec<usize> =
            all.filter(|&process| matches!(machine.next(process), Next::Ready(_))).collect();
        if ready.is_empty() {
            found.0 += 1;
            found.1.insert(machine.trace());
        }
        let at = machine.position();
        let late: BTreeSet<usize> =
            ready.iter().copied().filter(|&process| machine.owner(process).is_some()).collect();
        for &process in &ready {
            let mut next = (running, delayed.clone());
            let mut cost = 0;
            if machine.owner(process).is_none() {
                let is_running = |other: &usize| {
                    running.is_some_and(|running| *other == running || machine.owner(*other) == Some(running))
                };
                cost += usize::from(running != Some(process) && ready.iter().any(is_running));
                cost += late.difference(&delayed).count();
                next = (Some(process), &delayed | &late);
            }
            if cost > left {
                continue;
            }
            machine.step(process, 0);
            next.1.retain(|&buffer| machine.next(buffer) != Next::Nothing);
            go(machine, left - cost, next, found);
            machine.rewind(at);
        }
    }
    let mut found = (0, BTreeSet::new());
    machine.rewind(0);
    go(machine, most, (None, BTreeSet::new()), &mut found);
    found
}

#[test]
fn differential_preemptions() {
    for seed in seeds(60) {
        let mut codes = random_program(&mut Random::new(seed), seed % 2 == 0);
        codes.truncate(2);
        codes.iter_mut().for_each(|code| code.truncate(4));
        for (model, most) in [(Model::Tso, 0), (Model::Tso, 1), (Model::Tso, 2), (Model::Pso, 1)] {
            for helpful in [true, false] {
                let what = format!("{model:?}, {most}, seed {seed}: {codes:?}");
                let machine = Machine::new(codes.clone(), model, 3, 2);
                let mut rerun = Rerun::new(machine, helpful);
                rerun.buffers = Machine::owner;
                let mut seen = BTreeSet::new();
                let (summary, _) = explore_preemptions(&mut rerun, most, Limits::default(), |rerun, _| {
                    seen.insert(rerun.machine.trace());
                    ControlFlow::Continue(())
                });
                let (schedules, traces) = all_within(&mut rerun.machine, most);
                assert_eq!(summary.executions, schedules, "{what}");
                assert_eq!(summary.traces, traces.len() as u64, "{what}");
                assert_eq!(seen, traces, "{what}");
                assert!(!helpful || rerun.runs <= schedules + 1, "{what}: {} runs", rerun.runs);
                if most == 0 {
                    let mut sc = Machine::new(codes.clone(), Model::Sc, 3, 2);
                    assert!(seen.is_subset(&all_traces(&mut sc)), "{what}: within 0, nothing is delayed");
                }
            }
        }
    }
}

/// Executions that are cut may leave stores in buffers, and threads that wait for them.
#[test]
fn cut_executions() {
    let code = || vec![store(0, 1), load(0, 1), store(1, 1), Op::Lock(0), load(1, 0), Op::Unlock(0)];
    for steps in 1..14 {
        let mut machine = Machine::new(vec![code(), code()], Model::Tso, 2, 1);
        let summary = explore(&mut machine, Limits { steps, ..Limits::default() }, |_, execution| {
            assert!(execution.steps.len() <= steps);
            ControlFlow::Continue(())
        });
        assert!(summary.executions > 0 && !summary.is_complete(), "{steps}: {summary:?}");
    }
}
