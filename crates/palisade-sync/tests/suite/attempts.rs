//! Attempts to take a lock: those that fail only read, and nothing is missed.

use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_sync::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use palisade_sync::{Checker, Coverage, Exhaustive, Model, thread};
use std::collections::{BTreeSet, HashSet};

fn executions(model: Model, test: impl Fn() + Send + Sync + 'static) -> u64 {
    let outcome = Checker::new().strategy(Exhaustive).schedules(u64::MAX).model(model).check(test);
    assert!(outcome.is_fine() && outcome.coverage == Coverage::Complete, "{outcome}");
    outcome.executions
}

/// Three threads do this at the same time.
fn all_three(other: impl Fn(usize) + Clone + Send + 'static) {
    let started: Vec<_> = (0..3)
        .map(|me| {
            let other = other.clone();
            thread::spawn(move || other(me))
        })
        .collect();
    started.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
}

#[test]
fn attempts_that_fail_are_not_ordered() {
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        let mutex = || {
            let lock = Arc::new(Mutex::new(()));
            let _held = lock.lock().unwrap();
            let other = lock.clone();
            all_three(move |_| assert!(other.try_lock().is_err()));
        };
        assert_eq!(executions(model, mutex), 1, "{model:?}");
        let read = || {
            let lock = Arc::new(RwLock::new(()));
            let _held = lock.read().unwrap();
            let other = lock.clone();
            all_three(move |_| assert!(other.try_write().is_err()));
        };
        assert_eq!(executions(model, read), 1, "{model:?}");
        // An attempt to read is ordered with attempts to write, because it makes them fail where it succeeds.
        let written = || {
            let lock = Arc::new(RwLock::new(()));
            let _held = lock.write().unwrap();
            let other = lock.clone();
            all_three(move |me| {
                assert!(other.try_write().is_err());
                assert!(me > 0 || other.try_read().is_err());
            });
        };
        assert_eq!(executions(model, written), 4, "{model:?}");
    }
}

/// What a thread does. It holds at most one lock, and releases it before it takes another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    Lock,
    TryLock,
    Read,
    Write,
    TryRead,
    TryWrite,
    Release,
}

const OPS: [Op; 9] = [
    Op::Lock,
    Op::TryLock,
    Op::TryLock,
    Op::Read,
    Op::Write,
    Op::TryRead,
    Op::TryWrite,
    Op::TryWrite,
    Op::Release,
];

/// Carries out the code of a thread. Returns which attempts succeeded.
fn run(code: &[Op], mutex: &Mutex<()>, shared: &RwLock<()>) -> Vec<bool> {
    let mut got = Vec::new();
    let mut held = None;
    let mut read: Option<RwLockReadGuard<'_, ()>> = None;
    let mut written: Option<RwLockWriteGuard<'_, ()>> = None;
    for op in code {
        (held, read, written) = match (held, read, written) {
            (None, None, None) => (None, None, None),
            guards => {
                drop(guards);
                (None, None, None)
            }
        };
        match op {
            Op::Lock => held = Some(mutex.lock().unwrap()),
            Op::TryLock => held = mutex.try_lock().ok(),
            Op::Read => read = Some(shared.read().unwrap()),
            Op::Write => written = Some(shared.write().unwrap()),
            Op::TryRead => read = shared.try_read().ok(),
            Op::TryWrite => written = shared.try_write().ok(),
            Op::Release => {}
        }
        if matches!(op, Op::TryLock | Op::TryRead | Op::TryWrite) {
            got.push(held.is_some() || read.is_some() || written.is_some());
        }
    }
    got
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Holds {
    Nothing,
    Mutex,
    Reads,
    Writes,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    at: Vec<usize>,
    holds: Vec<Holds>,
    got: Vec<Vec<bool>>,
}

impl State {
    /// The state after the next step of a thread; `None` if it waits or has ended.
    fn step(&self, thread: usize, code: &[Op]) -> Option<State> {
        let mut next = self.clone();
        let op = code.get(self.at[thread]);
        if self.holds[thread] != Holds::Nothing {
            // Guards are released before the next operation, and at the end.
            next.holds[thread] = Holds::Nothing;
            return Some(next);
        }
        let op = op?;
        next.at[thread] += 1;
        let held = |what: Holds| self.holds.contains(&what);
        let (wanted, free) = match op {
            Op::Lock | Op::TryLock => (Holds::Mutex, !held(Holds::Mutex)),
            Op::Read | Op::TryRead => (Holds::Reads, !held(Holds::Writes)),
            Op::Write | Op::TryWrite => (Holds::Writes, !held(Holds::Writes) && !held(Holds::Reads)),
            Op::Release => (Holds::Nothing, true),
        };
        if free {
            next.holds[thread] = wanted;
        }
        match op {
            Op::TryLock | Op::TryRead | Op::TryWrite => next.got[thread].push(free),
            _ if !free => return None,
            _ => {}
        }
        Some(next)
    }
}

/// The outcomes of all interleavings.
fn brute(program: &[Vec<Op>]) -> BTreeSet<Vec<Vec<bool>>> {
    let count = program.len();
    let start =
        State { at: vec![0; count], holds: vec![Holds::Nothing; count], got: vec![Vec::new(); count] };
    let (mut seen, mut open, mut ends) = (HashSet::from([start.clone()]), vec![start], BTreeSet::new());
    while let Some(state) = open.pop() {
        let steps: Vec<State> =
            program.iter().enumerate().filter_map(|(thread, code)| state.step(thread, code)).collect();
        if steps.is_empty() {
            ends.insert(state.got.clone());
        }
        open.extend(steps.into_iter().filter(|next| seen.insert(next.clone())));
    }
    ends
}

#[test]
fn differential_attempts() {
    for seed in &seeds(150) {
        let mut random = Random::new(seed);
        let threads = 2 + random.below(2);
        let program: Vec<Vec<Op>> = (0..threads)
            .map(|_| {
                (0..1 + random.below(if threads == 2 { 4 } else { 2 }))
                    .map(|_| OPS[random.below(OPS.len())])
                    .collect()
            })
            .collect();
        let seen: Arc<std::sync::Mutex<BTreeSet<Vec<Vec<bool>>>>> = Arc::default();
        let (into, code) = (seen.clone(), program.clone());
        let model = [Model::Sc, Model::Tso, Model::Pso][seed as usize % 3];
        let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX).model(model);
        let outcome = checker.check(move || {
            let (mutex, shared) = (Arc::new(Mutex::new(())), Arc::new(RwLock::new(())));
            let started: Vec<_> = code
                .iter()
                .map(|code| {
                    let (code, mutex, shared) = (code.clone(), mutex.clone(), shared.clone());
                    thread::spawn(move || run(&code, &mutex, &shared))
                })
                .collect();
            let got = started.into_iter().map(|thread| thread.join().expect("no thread panics")).collect();
            into.lock().unwrap().insert(got);
        });
        assert!(
            outcome.is_fine() && outcome.coverage == Coverage::Complete,
            "seed {seed} {program:?}: {outcome}"
        );
        assert_eq!(*seen.lock().unwrap(), brute(&program), "seed {seed} {model:?}: {program:?}");
    }
}
