//! One execution per trace: programs whose numbers of traces are known, and random programs compared with all
//! interleavings.

use crate::common::random::{Shape, random_program, test_each_shape};
use crate::common::{self, Instr, Machine, all_traces, trace_of};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_dpor::{Limits, Summary, explore};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Explores a machine and checks that no trace is seen twice.
fn explored(machine: &mut Machine) -> (BTreeSet<common::Trace>, Summary) {
    let mut seen = BTreeSet::new();
    let summary = explore(machine, Limits::default(), |_, execution| {
        assert!(seen.insert(trace_of(execution.steps)), "a trace is seen twice");
        ControlFlow::Continue(())
    });
    assert!(summary.is_complete());
    (seen, summary)
}

/// Checks a program with a known number of traces. Small ones are also counted by brute force.
fn check(mut machine: Machine, expected: u64, brute: bool) {
    let (seen, summary) = explored(&mut machine);
    assert_eq!((summary.executions, summary.broken_off), (expected, 0));
    if brute {
        assert_eq!(seen, all_traces(&mut machine));
    }
}

/// For n stores to one address, all orders are tried and have equal weight.
#[test]
fn progress_grows_to_the_last_order() {
    let store = || Instr::Store(|_| 0, |_| 1);
    for (n, orders) in [(2, 2.0), (3, 6.0), (4, 24.0)] {
        let mut progress = Vec::new();
        explore(&mut Machine::new(vec![vec![store()]; n], n, 1, 0), Limits::default(), |_, execution| {
            progress.push(execution.progress());
            ControlFlow::Continue(())
        });
        assert_eq!(progress[0], 0.0, "nothing else is known yet");
        assert!(progress.iter().all(|share| (0.0..1.0).contains(share)), "{progress:?}");
        let last = progress.last().expect("there are executions");
        assert!((last - (1.0 - 1.0 / orders)).abs() < 1e-9, "all but the last one: {progress:?}");
    }
}

macro_rules! at {
    ($address:expr) => {
        |_| $address
    };
}

#[test]
fn litmus_tests() {
    let store = |x: common::Expr| Instr::Store(x, |_| 1);
    let load = |r: usize, x: common::Expr| Instr::Load(r, x);
    // Store buffering and message passing: one of four combinations is not sequentially consistent.
    let sb = vec![vec![store(at!(0)), load(0, at!(1))], vec![store(at!(1)), load(0, at!(0))]];
    check(Machine::new(sb, 2, 2, 0), 3, true);
    let mp = vec![vec![store(at!(0)), store(at!(1))], vec![load(0, at!(1)), load(1, at!(0))]];
    check(Machine::new(mp, 2, 2, 0), 3, true);
    // Independent reads of independent writes: one of 16 combinations is not sequentially consistent.
    let iriw = vec![
        vec![store(at!(0))],
        vec![store(at!(1))],
        vec![load(0, at!(0)), load(1, at!(1))],
        vec![load(0, at!(1)), load(1, at!(0))],
    ];
    check(Machine::new(iriw, 4, 2, 0), 15, true);
    // n stores to one address: all orders.
    for (n, factorial) in [(2, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
        check(Machine::new(vec![vec![store(at!(0))]; n], n, 1, 0), factorial, n <= 5);
    }
}

/// `readers` of Abdulla et al. (POPL 2014, Table 1): one writer and n readers, 2ⁿ traces.
#[test]
fn readers() {
    for n in 1..=10 {
        let mut codes = vec![vec![Instr::Store(at!(0), |_| 1)]];
        codes.extend((0..n).map(|_| vec![Instr::Load(0, at!(0))]));
        check(Machine::new(codes, n + 1, 1, 0), 1 << n, n <= 5);
    }
}

/// `lastzero` of Abdulla et al. (POPL 2014, Table 1): 64, 3328 and 147456 traces for n = 5, 10 and 15; (n +
/// 3) · 2ⁿ⁻² in general.
#[test]
fn last_zero() {
    for n in 2..=10i64 {
        let search = vec![
            Instr::Load(1, |r| r[0]),
            Instr::Set(0, |r| if r[1] == 0 { r[0] } else { r[0] - 1 }),
            Instr::Jump(|r| i64::from(r[1] != 0), 0),
        ];
        // The searcher starts at n: a process that knows n sets its register.
        let mut code = vec![Instr::Set(0, NUMBERS[n as usize])];
        code.extend(search.into_iter().map(|instr| match instr {
            Instr::Jump(condition, _) => Instr::Jump(condition, 1),
            other => other,
        }));
        let mut codes = vec![code];
        for j in 1..=n as usize {
            codes.push(vec![Instr::Load(0, NUMBERS[j - 1]), Instr::Store(NUMBERS[j], |r| r[0] + 1)]);
        }
        let expected = (n as u64 + 3) << (n - 2);
        check(Machine::new(codes, n as usize + 1, n as usize + 1, 0), expected, n <= 3);
    }
}

/// The numbers 0 to 19 as expressions.
const NUMBERS: [common::Expr; 20] = [
    |_| 0,
    |_| 1,
    |_| 2,
    |_| 3,
    |_| 4,
    |_| 5,
    |_| 6,
    |_| 7,
    |_| 8,
    |_| 9,
    |_| 10,
    |_| 11,
    |_| 12,
    |_| 13,
    |_| 14,
    |_| 15,
    |_| 16,
    |_| 17,
    |_| 18,
    |_| 19,
];

/// `indexer` of Flanagan and Godefroid (POPL 2005, Figure 1): threads that put messages into a hash table. It
/// has 8, 64 and 512 traces for 12, 13 and 14 threads (Abdulla et al., POPL 2014, Table 1).
#[test]
fn indexer() {
    for (n, expected) in [(11, 1), (12, 8), (13, 64), (14, 512)] {
        let code = |thread: usize| {
            vec![
                Instr::Set(4, NUMBERS[thread]),
                Instr::Set(0, |r| r[0] + 1),
                Instr::Jump(|r| i64::from(r[0] > 4), 9),
                Instr::Set(1, |r| r[0] * 11 + r[4]),
                Instr::Set(2, |r| r[1] * 7 % 128),
                Instr::Cas(3, |r| r[2], |_| 0, |r| r[1]),
                Instr::Jump(|r| r[3], 1),
                Instr::Set(2, |r| (r[2] + 1) % 128),
                Instr::Jump(|_| 1, 5),
            ]
        };
        check(Machine::new((0..n).map(code).collect(), n, 128, 0), expected, false);
    }
}

/// `filesystem` of Flanagan and Godefroid (POPL 2005, Figure 2): threads that look for free blocks under
/// locks. It has 2, 8, 32 and 64 traces for 14, 16, 18 and 19 threads (Abdulla et al., POPL 2014, Table 1).
#[test]
fn file_system() {
    for (n, expected) in [(13, 1), (14, 2), (16, 8), (18, 32), (19, 64)] {
        let code = |thread: usize| {
            vec![
                Instr::Set(0, NUMBERS[thread]),
                Instr::Lock(|r| r[0]),
                Instr::Load(1, |r| r[0]),
                Instr::Jump(|r| r[1], 14),
                Instr::Set(2, |r| r[0] * 2 % 26),
                Instr::Lock(|r| 32 + r[2]),
                Instr::Load(3, |r| 32 + r[2]),
                Instr::Jump(|r| i64::from(r[3] == 0), 11),
                Instr::Unlock(|r| 32 + r[2]),
                Instr::Set(2, |r| (r[2] + 1) % 26),
                Instr::Jump(|_| 1, 5),
                Instr::Store(|r| 32 + r[2], |_| 1),
                Instr::Store(|r| r[0], |r| r[2] + 1),
                Instr::Unlock(|r| 32 + r[2]),
                Instr::Unlock(|r| r[0]),
            ]
        };
        check(Machine::new((0..n).map(code).collect(), n, 58, 58), expected, false);
    }
}

/// Adding n numbers under a lock: all orders of the critical sections, and nothing else. A deadlock is a
/// separate trace.
#[test]
fn locks() {
    let section = || {
        vec![
            Instr::Lock(at!(0)),
            Instr::Load(0, at!(0)),
            Instr::Store(at!(0), |r| r[0] + 1),
            Instr::Unlock(at!(0)),
        ]
    };
    for (n, factorial) in [(2, 2), (3, 6), (4, 24)] {
        check(Machine::new(vec![section(); n], n, 1, 1), factorial, n <= 3);
    }
    let both = |first: common::Expr, second: common::Expr| {
        vec![Instr::Lock(first), Instr::Lock(second), Instr::Unlock(second), Instr::Unlock(first)]
    };
    for order in [[0, 1], [1, 0]] {
        let codes = [both(at!(0), at!(1)), both(at!(1), at!(0))];
        let codes = order.map(|index: usize| codes[index].clone()).to_vec();
        let mut machine = Machine::new(codes, 2, 0, 2);
        let (seen, _) = explored(&mut machine);
        assert_eq!(seen.len(), 3, "one order, the other order, and the deadlock");
        assert_eq!(seen, all_traces(&mut machine));
    }
}

/// Limits cut executions, and the summary says so.
#[test]
fn endless_programs_are_cut() {
    let spin = vec![Instr::Load(0, at!(0)), Instr::Jump(|r| i64::from(r[0] == 0), 0)];
    let mut machine = Machine::new(vec![spin, vec![Instr::Store(at!(0), |_| 1)]], 2, 1, 0);
    let summary = explore(&mut machine, Limits { steps: 6, ..Limits::default() }, |_, execution| {
        assert!(execution.steps.len() <= 6);
        ControlFlow::Continue(())
    });
    assert!(summary.cut > 0 && !summary.is_complete(), "{summary:?}");
    let summary =
        explore(&mut machine, Limits { steps: 6, ..Limits::default() }, |_, _| ControlFlow::Break(()));
    assert!(summary.stopped && summary.executions == 1);
}

/// Trees are as deep as executions are long. That must not overflow the stack.
#[test]
fn long_executions() {
    // Each process has its own memory and touches the shared cell now and then, so reversing a race moves
    // nearly all of the execution.
    let spin = |own: common::Expr| {
        vec![
            Instr::Store(own, |_| 1),
            Instr::Set(0, |r| (r[0] + 1) % 400),
            Instr::Jump(|r| r[0], 0),
            Instr::Store(at!(2), |_| 1),
            Instr::Jump(|_| 1, 0),
        ]
    };
    let mut machine = Machine::new(vec![spin(at!(0)), spin(at!(1))], 2, 3, 0);
    let mut executions = 0;
    let summary = explore(&mut machine, Limits { steps: 4000, ..Limits::default() }, |_, _| {
        executions += 1;
        if executions < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!((summary.executions, summary.cut), (4, 4));
}

fn check_random(shape: Shape) {
    let mut broken_off = 0;
    for seed in seeds(600) {
        let mut machine = random_program(shape, &mut Random::new(seed));
        let mut seen = BTreeSet::new();
        let summary = explore(&mut machine, Limits::default(), |_, execution| {
            assert!(seen.insert(trace_of(execution.steps)), "{shape:?}, seed {seed}: a trace is seen twice");
            ControlFlow::Continue(())
        });
        let all = all_traces(&mut machine);
        assert_eq!(seen.len(), all.len(), "{shape:?}, seed {seed}: traces seen, and all traces");
        assert_eq!(seen, all, "{shape:?}, seed {seed}");
        broken_off += summary.broken_off;
    }
    assert_eq!(broken_off, 0, "{shape:?}: the search is optimal");
}

test_each_shape!(check_random);
