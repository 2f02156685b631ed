//! Well-known bugs of machines with store buffers: found under TSO, repeated by their schedules, and not
//! reported without store buffers or with the missing fence. Algorithms that need no fence are fine.

use palisade_sync::sync::atomic::{AtomicUsize, Ordering, Ordering::*, fence};
use palisade_sync::sync::{Arc, Mutex};
use palisade_sync::{Checker, Coverage, Exhaustive, Failure, Machines, Model, Pct, Random, hint, thread};

/// A test with or without its fence.
type Test = fn(bool);

fn full_fence(fenced: bool) {
    if fenced {
        fence(SeqCst);
    }
}

fn words<const N: usize>() -> [AtomicUsize; N] {
    [(); N].map(|()| AtomicUsize::new(0))
}

/// Runs the code in two threads, each with its index.
fn two(code: impl Fn(usize) + Send + Sync + 'static) {
    let code = Arc::new(code);
    let threads = [0, 1].map(|me| {
        let code = code.clone();
        thread::spawn(move || code(me))
    });
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
}

/// A critical section.
fn enter(inside: &AtomicUsize) {
    assert_eq!(inside.fetch_add(1, Relaxed), 0, "two threads are inside");
    inside.fetch_sub(1, Relaxed);
}

fn spin_while(condition: impl Fn() -> bool) {
    while condition() {
        hint::spin_loop();
    }
}

fn dekker(fenced: bool) {
    let ([first, second, turn], inside) = (words(), AtomicUsize::new(0));
    let wants = [first, second];
    two(move |me| {
        let other = 1 - me;
        wants[me].store(1, Release);
        full_fence(fenced);
        while wants[other].load(Acquire) == 1 {
            if turn.load(Acquire) != me {
                wants[me].store(0, Release);
                spin_while(|| turn.load(Acquire) != me);
                wants[me].store(1, Release);
                full_fence(fenced);
            }
        }
        enter(&inside);
        turn.store(other, Release);
        wants[me].store(0, Release);
    });
}

fn peterson(fenced: bool) {
    let ([first, second, turn], inside) = (words(), AtomicUsize::new(0));
    let wants = [first, second];
    two(move |me| {
        let other = 1 - me;
        wants[me].store(1, Release);
        turn.store(other, Release);
        full_fence(fenced);
        spin_while(|| wants[other].load(Acquire) == 1 && turn.load(Acquire) == other);
        enter(&inside);
        wants[me].store(0, Release);
    });
}

fn bakery(fenced: bool) {
    let (choosing, number, inside) = (words::<2>(), words::<2>(), AtomicUsize::new(0));
    two(move |me| {
        let other = 1 - me;
        choosing[me].store(1, Release);
        full_fence(fenced);
        let own = 1 + number[other].load(Acquire);
        number[me].store(own, Release);
        choosing[me].store(0, Release);
        full_fence(fenced);
        spin_while(|| choosing[other].load(Acquire) == 1);
        spin_while(|| {
            let theirs = number[other].load(Acquire);
            theirs != 0 && (theirs, other) < (own, me)
        });
        enter(&inside);
        number[me].store(0, Release);
    });
}

fn szymanski(fenced: bool) {
    let (flags, inside) = (words::<2>(), AtomicUsize::new(0));
    two(move |me| {
        let (mine, theirs) = (&flags[me], &flags[1 - me]);
        mine.store(1, Release);
        full_fence(fenced);
        spin_while(|| theirs.load(Acquire) >= 3);
        mine.store(3, Release);
        full_fence(fenced);
        if theirs.load(Acquire) == 1 {
            mine.store(2, Release);
            full_fence(fenced);
            spin_while(|| theirs.load(Acquire) != 4);
        }
        mine.store(4, Release);
        full_fence(fenced);
        if me == 1 {
            spin_while(|| theirs.load(Acquire) >= 2);
        }
        enter(&inside);
        if me == 0 {
            spin_while(|| [2, 3].contains(&theirs.load(Acquire)));
        }
        mine.store(0, Release);
    });
}

/// Chase and Lev's deque: the owner takes one of two items while a thief steals.
fn chase_lev(fenced: bool) {
    let ([top, bottom], taken) = (words(), words::<2>());
    bottom.store(2, Relaxed);
    let take = move |taken: &[AtomicUsize; 2], item: usize| {
        assert_eq!(taken[item].fetch_add(1, Relaxed), 0, "an item is taken twice");
    };
    let steal = |top: &AtomicUsize, bottom: &AtomicUsize| {
        let oldest = top.load(Acquire);
        let found = oldest < bottom.load(Acquire);
        (found && top.compare_exchange(oldest, oldest + 1, SeqCst, Relaxed).is_ok()).then_some(oldest)
    };
    two(move |me| match me {
        0 => {
            let newest = bottom.load(Relaxed) - 1;
            bottom.store(newest, Relaxed);
            full_fence(fenced);
            let oldest = top.load(Acquire);
            if oldest < newest {
                take(&taken, newest);
            } else if oldest == newest {
                if top.compare_exchange(oldest, oldest + 1, SeqCst, Relaxed).is_ok() {
                    take(&taken, newest);
                }
                bottom.store(newest + 1, Relaxed);
            } else {
                bottom.store(newest + 1, Relaxed);
            }
        }
        _ => {
            for _ in 0..2 {
                if let Some(item) = steal(&top, &bottom) {
                    take(&taken, item);
                }
            }
        }
    });
}

/// A lost wake-up: a thread announces that it sleeps, and looks once more.
fn parker(fenced: bool) {
    let [sleeps, ready] = words();
    let state = Arc::new((sleeps, ready));
    let shared = state.clone();
    let sleeper = thread::spawn(move || {
        shared.0.store(1, Release);
        full_fence(fenced);
        if shared.1.load(Acquire) == 0 {
            thread::park();
        }
    });
    state.1.store(1, Release);
    full_fence(fenced);
    if state.0.load(Acquire) == 1 {
        sleeper.thread().unpark();
    }
    sleeper.join().expect("no thread panics");
}

const BUGS: [(&str, Test); 6] = [
    ("dekker", dekker),
    ("peterson", peterson),
    ("bakery", bakery),
    ("szymanski", szymanski),
    ("chase_lev", chase_lev),
    ("parker", parker),
];

fn is_expected(name: &str, failure: &Failure) -> bool {
    match failure {
        Failure::Panic { message, .. } => message.contains("two threads") || message.contains("taken twice"),
        Failure::Deadlock(threads) => name == "parker" && threads.len() == 2,
        // A thread may also wait for a flag that the other one has already taken back.
        Failure::Spin(_) => name == "szymanski",
        _ => false,
    }
}

#[test]
fn are_found_by_random_schedules() {
    for (name, test) in BUGS {
        for strategy in [Random, Pct { depth: 3 }] {
            let checker = Checker::new().strategy(strategy);
            let outcome = checker.check(move || test(false));
            let failed = outcome.failed.clone().unwrap_or_else(|| panic!("{name}, {strategy:?}: {outcome}"));
            assert!(is_expected(name, &failed.failure), "{name}: {outcome}");
            assert_eq!(failed.machines, Some(Machines::Buffered { without: 1000 }), "{name}: {outcome}");
            let again = checker.replay(&failed.schedule, move || test(false)).failed.expect("it fails again");
            assert!(is_expected(name, &again.failure), "{name}");
        }
    }
}

#[test]
fn are_found_by_the_search_and_only_with_store_buffers() {
    for (name, test) in BUGS {
        let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX);
        let outcome = checker.check(move || test(false));
        let failed = outcome.failed.clone().unwrap_or_else(|| panic!("{name}: {outcome}"));
        assert!(is_expected(name, &failed.failure), "{name}: {outcome}");
        assert_eq!(failed.machines, Some(Machines::OnlyBuffered), "{name}: {outcome}");
        assert!(outcome.to_string().contains("only with store buffers (TSO)"), "{name}: {outcome}");
        let again = checker.replay(&failed.schedule, move || test(false)).failed.expect("it fails again");
        assert!(is_expected(name, &again.failure), "{name}");
    }
}

#[test]
fn are_gone_with_fences() {
    for (name, test) in BUGS {
        let outcome = Checker::new().check(move || test(true));
        assert!(outcome.is_fine(), "{name}: {outcome}");
        let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX);
        let outcome = checker.check(move || test(true));
        assert!(outcome.is_fine() && outcome.coverage == Coverage::Complete, "{name}: {outcome}");
        let outcome = checker.model(Model::Sc).check(move || test(false));
        assert!(outcome.is_fine() && outcome.coverage == Coverage::Complete, "{name}: {outcome}");
    }
}

/// A failure that does not need store buffers is found to be possible on any machine, also if the first
/// execution that fails is not sequentially consistent.
#[test]
fn on_any_machine() {
    let lost_update = || {
        let (count, [x, y]) = (AtomicUsize::new(0), words());
        let count = Arc::new(count);
        let shared = count.clone();
        two(move |me| {
            let (mine, theirs) = if me == 0 { (&x, &y) } else { (&y, &x) };
            mine.store(1, Relaxed);
            theirs.load(Relaxed);
            shared.store(shared.load(Relaxed) + 1, Relaxed);
        });
        assert_eq!(count.load(Relaxed), 2, "an update is lost");
    };
    for strategy in [Random, Pct { depth: 3 }, Exhaustive] {
        for seed in 0..5 {
            let checker = Checker::new().strategy(strategy).seed(seed * 1000);
            let outcome = checker.check(lost_update);
            let failed = outcome.failed.clone().expect("it fails");
            assert_eq!(failed.machines, Some(Machines::Any), "{strategy:?}: {outcome}");
            assert!(outcome.to_string().contains("on any machine"), "{outcome}");
            let again = checker.replay(&failed.schedule, lost_update).failed.expect("it fails again");
            assert_eq!(again.failure, failed.failure);
            assert_eq!(again.machines, Some(Machines::Any), "the schedule needs no store buffers");
        }
    }
}

/// Algorithms that are right on x86 without any fence. That they are not robust is only information.
#[test]
fn harmless_reordering_is_not_a_failure() {
    /// A queue with one producer and one consumer.
    fn queue() {
        let (slots, [head, tail]) = (words::<2>(), words());
        two(move |me| {
            for item in 0..3 {
                if me == 0 {
                    spin_while(|| tail.load(Relaxed) - head.load(Acquire) == 2);
                    slots[item % 2].store(item + 1, Relaxed);
                    tail.store(item + 1, Release);
                } else {
                    spin_while(|| tail.load(Acquire) == item);
                    assert_eq!(slots[item % 2].load(Relaxed), item + 1);
                    head.store(item + 1, Release);
                }
            }
        });
    }
    fn seqlock() {
        let ([version], data) = (words(), words::<2>());
        two(move |me| {
            if me == 0 {
                version.store(1, Relaxed);
                data.iter().for_each(|word| word.store(7, Release));
                version.store(2, Release);
            } else {
                let before = version.load(Acquire);
                let seen = [0, 1].map(|word: usize| data[word].load(Acquire));
                if before % 2 == 0 && version.load(Acquire) == before {
                    assert_eq!(seen[0], seen[1], "torn");
                }
            }
        });
    }
    fn publish() {
        let [data, ready] = words();
        two(move |me| {
            if me == 0 {
                data.store(42, Relaxed);
                ready.store(1, Release);
            } else if ready.load(Acquire) == 1 {
                assert_eq!(data.load(Relaxed), 42);
            }
        });
    }
    fn spinlock() {
        let ([lock], count) = (words(), Arc::new(AtomicUsize::new(0)));
        let shared = count.clone();
        two(move |_| {
            while lock.swap(1, Acquire) == 1 {
                spin_while(|| lock.load(Relaxed) == 1);
            }
            shared.store(shared.load(Relaxed) + 1, Relaxed);
            lock.store(0, Release);
        });
        assert_eq!(count.load(Relaxed), 2);
    }
    fn mutex() {
        let count = Arc::new(Mutex::new(0));
        let shared = count.clone();
        two(move |_| *shared.lock().unwrap() += 1);
        assert_eq!(*count.lock().unwrap(), 2);
    }
    let tests: [(&str, fn()); 5] = [
        ("queue", queue),
        ("seqlock", seqlock),
        ("publish", publish),
        ("spinlock", spinlock),
        ("mutex", mutex),
    ];
    for (name, test) in tests {
        for model in [Model::Tso, Model::Pso] {
            for strategy in [Random, Pct { depth: 3 }, Exhaustive] {
                let schedules = if strategy == Exhaustive { u64::MAX } else { 500 };
                let outcome = Checker::new().model(model).strategy(strategy).schedules(schedules).check(test);
                assert!(outcome.is_fine(), "{name}, {model:?}, {strategy:?}: {outcome}");
                assert!(!matches!(outcome.coverage, Coverage::Bounded(_)), "{name}: {outcome}");
            }
        }
    }
}

/// Stores that are pending when their atomic is taken apart are not lost.
#[test]
fn exclusive_access() {
    for strategy in [Random, Exhaustive] {
        Checker::new().strategy(strategy).schedules(200).run(|| {
            let mut x = AtomicUsize::new(1);
            x.store(2, Relaxed);
            assert_eq!((*x.get_mut(), format!("{x:?}")), (2, "2".to_owned()));
            *x.get_mut() += 1;
            assert_eq!(x.load(Relaxed), 3);
            x.store(4, Relaxed);
            assert_eq!(format!("{x:?}"), "4");
            let shared = Arc::new(x);
            let other = shared.clone();
            let thread = thread::spawn(move || other.fetch_add(1, Relaxed));
            shared.fetch_add(1, Relaxed);
            thread.join().unwrap();
            assert_eq!(Arc::into_inner(shared).expect("the other owner is gone").into_inner(), 6);
        });
    }
}

/// The exact numbers of partial orders, as other tools count them.
#[test]
fn partial_orders() {
    let check = |name: &str, code: fn(usize, &[AtomicUsize; 3]), expected: [u64; 3]| {
        for (model, expected) in [Model::Sc, Model::Tso, Model::Pso].into_iter().zip(expected) {
            let checker = Checker::new().strategy(Exhaustive).schedules(u64::MAX).model(model);
            let outcome = checker.check(move || {
                let cells = words::<3>();
                two(move |me| code(me, &cells));
            });
            assert_eq!(outcome.executions, expected, "{name}, {model:?}: {outcome}");
            assert_eq!(outcome.coverage, Coverage::Complete, "{name}, {model:?}");
            if name != "SB" {
                continue;
            }
            let all = checker.preemptions(usize::MAX).check(move || {
                let cells = words::<3>();
                two(move |me| code(me, &cells));
            });
            assert_eq!(all.partial_orders, Some(expected), "{name}, {model:?}: from all schedules");
        }
    };
    const R: Ordering = Relaxed;
    check(
        "SB",
        |me, x| {
            x[me].store(1, R);
            x[1 - me].load(R);
        },
        [3, 4, 4],
    );
    check(
        "SB+rfis",
        |me, x| {
            x[me].store(1, R);
            x[me].load(R);
            x[1 - me].load(R);
        },
        [3, 4, 4],
    );
    check(
        "MP",
        |me, x| {
            if me == 0 {
                x[0].store(1, R);
                x[1].store(1, R);
            } else {
                x[1].load(R);
                x[0].load(R);
            }
        },
        [3, 3, 4],
    );
    check(
        "2+2W",
        |me, x| {
            x[me].store(1, R);
            x[1 - me].store(2, R);
        },
        [3, 3, 4],
    );
    check(
        "SB with SeqCst stores",
        |me, x| {
            x[me].store(1, SeqCst);
            x[1 - me].load(R);
        },
        [3, 3, 3],
    );
}
