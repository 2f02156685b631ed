//! Failures in tests are reported with a schedule that leads there again, and nothing hangs.

use palisade_sync::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*, fence};
use palisade_sync::sync::{Arc, Mutex, mpsc};
use palisade_sync::{Checker, Exhaustive, Failure, Model, Outcome, Pct, Random, Schedules, hint, thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const ALL: [Schedules; 3] = [Random, Pct { depth: 3 }, Exhaustive];

/// Checks that the test fails with all strategies, and fails in the same way when its schedule is run again.
fn fails(
    code: impl Fn() + Send + Sync + Clone + 'static,
    expected: impl Fn(&Failure) -> bool,
) -> Vec<Outcome> {
    ALL.map(|strategy| {
        let checker = Checker::new().strategy(strategy).schedules(3000).steps(2000);
        let outcome = checker.check(code.clone());
        let failed = outcome.failed.clone().unwrap_or_else(|| panic!("{strategy:?}: {outcome}"));
        assert!(expected(&failed.failure), "{strategy:?}: {outcome}");
        let again = checker.replay(&failed.schedule, code.clone());
        let again = again.failed.expect("it fails again");
        assert_eq!((&again.failure, &again.schedule), (&failed.failure, &failed.schedule), "{strategy:?}");
        if let Some(seed) = failed.seed {
            let again = checker.clone().seed(seed).schedules(1).check(code.clone());
            assert!(again.failed.is_some(), "{strategy:?}, seed {seed}");
        }
        outcome
    })
    .into()
}

#[test]
fn a_lost_update() {
    let code = || {
        let x = Arc::new(AtomicUsize::new(0));
        let add = |x: &AtomicUsize| x.store(x.load(Relaxed) + 1, Relaxed);
        let other = {
            let x = x.clone();
            thread::spawn(move || add(&x))
        };
        add(&x);
        other.join().unwrap();
        assert_eq!(x.load(Relaxed), 2, "an update is lost");
    };
    let outcomes = fails(code, |failure| {
        matches!(failure, Failure::Panic { thread, message, place: Some(place) }
            if thread == "thread 0 (main)" && message.contains("an update is lost") && place.contains("failures.rs"))
    });
    for outcome in outcomes {
        // One switch to the other thread, one back, and one for its end.
        let schedule = &outcome.failed.as_ref().expect("it fails").schedule;
        assert!(schedule.switches() <= 3, "{schedule}");
        assert!(outcome.to_string().contains("PALISADE_SCHEDULE="), "{outcome}");
    }
}

#[test]
fn a_panic_in_a_thread() {
    let code = || {
        let handle =
            thread::Builder::new().name("reader".to_owned()).spawn(|| panic!("oh {}", "no")).unwrap();
        let _ = handle.join();
    };
    fails(
        code,
        |failure| matches!(failure, Failure::Panic { thread, message, .. } if thread == "thread 1 (reader)" && message == "oh no"),
    );
}

#[test]
fn an_endless_loop() {
    for hint in [true, false] {
        let code = move || {
            let flag = AtomicBool::new(false);
            while !flag.load(Acquire) {
                if hint {
                    hint::spin_loop();
                }
            }
        };
        fails(
            code,
            |failure| matches!(failure, Failure::Spin(threads) if threads.len() == 1 && threads[0].1.operation == "load"),
        );
    }
}

#[test]
fn two_threads_that_wait_for_each_other_in_loops() {
    let code = || {
        let flags = Arc::new([(); 2].map(|()| AtomicBool::new(true)));
        let other = {
            let flags = flags.clone();
            thread::spawn(move || while flags[0].load(Acquire) {})
        };
        while flags[1].load(Acquire) {}
        flags[0].store(false, Release);
        other.join().unwrap();
    };
    fails(code, |failure| matches!(failure, Failure::Spin(threads) if threads.len() == 2));
}

#[test]
fn a_thread_that_outlives_the_test() {
    let code = || {
        let (send, receive) = mpsc::channel::<()>();
        std::mem::forget(send);
        thread::spawn(move || receive.recv());
    };
    fails(
        code,
        |failure| matches!(failure, Failure::Leak(threads) if threads.len() == 1 && threads[0].1.operation == "recv"),
    );
}

#[test]
fn a_mutex_taken_twice() {
    let code = || {
        let lock = Mutex::new(());
        let _first = lock.lock();
        let _second = lock.lock();
    };
    fails(code, |failure| matches!(failure, Failure::Deadlock(threads) if threads.len() == 1));
}

#[test]
fn too_many_steps() {
    let code = || {
        let x = AtomicUsize::new(0);
        loop {
            x.fetch_add(1, Relaxed);
        }
    };
    let outcome = Checker::new().steps(500).check(code);
    assert!(matches!(outcome.failed.map(|failed| failed.failure), Some(Failure::Long { steps: 500, .. })));
}

/// No schedule ends this: each thread waits for a value that nobody stores, and stores on the way.
fn livelock() {
    let turn = Arc::new(AtomicUsize::new(0));
    let repeat = |turn: &AtomicUsize, me: usize| {
        while turn.load(Acquire) != 2 {
            turn.store(me, Release);
        }
    };
    let other = {
        let turn = turn.clone();
        thread::spawn(move || repeat(&turn, 1))
    };
    repeat(&turn, 0);
    other.join().unwrap();
}

#[test]
fn threads_that_repeat_the_same_steps() {
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        for strategy in [Random, Pct { depth: 3 }] {
            let checker = Checker::new().model(model).strategy(strategy).steps(300);
            let failed = checker.check(livelock).failed.expect("it never ends");
            let both = |failure: &Failure| matches!(failure, Failure::Livelock { repeating, waiting } if (repeating.len(), waiting.len()) == (2, 0));
            assert!(both(&failed.failure), "{:?}", failed.failure);
            let again = checker.replay(&failed.schedule, livelock).failed.expect("it fails again");
            assert_eq!(again.failure, failed.failure);
        }
    }
}

#[test]
fn one_repeats_and_one_waits() {
    let code = || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = {
            let flag = flag.clone();
            thread::spawn(move || {
                loop {
                    flag.store(!flag.load(Relaxed), Relaxed);
                }
            })
        };
        other.join().unwrap();
    };
    let failed = Checker::new().steps(300).check(code).failed.expect("it never ends");
    assert!(
        matches!(&failed.failure, Failure::Livelock { repeating, waiting } if (repeating.len(), waiting.len()) == (1, 1)),
        "{:?}",
        failed.failure
    );
    let text = failed.failure.to_string();
    assert!(
        text.starts_with("livelock:\n  thread 1") && text.contains("\n  thread 0 (main) waits at"),
        "{text}"
    );
}

/// A loop of more looks than a waiting loop may have. Nobody changes anything.
#[test]
fn a_long_loop_that_changes_nothing() {
    let code = || {
        let flags: Vec<AtomicBool> = (0..100).map(|_| AtomicBool::new(false)).collect();
        while !flags.iter().any(|flag| flag.load(Acquire)) {}
    };
    let failed = Checker::new().steps(300).check(code).failed.expect("it never ends");
    assert!(matches!(failed.failure, Failure::Spin(_)), "{:?}", failed.failure);
}

/// Memory that counts does not return to what it was, and the loops end.
#[test]
fn long_runs_are_not_livelocks() {
    let count_to = |end: usize| {
        let code = move || {
            let count = AtomicUsize::new(0);
            while count.fetch_add(1, Relaxed) < end {}
        };
        Checker::new().steps(300).schedules(3).check(code).failed.map(|failed| failed.failure)
    };
    assert_eq!(count_to(5_000), None);
    assert!(matches!(count_to(50_000), Some(Failure::Long { .. })));
}

#[test]
fn a_thread_without_operations() {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = stop.clone();
    let checker = Checker::new().patience(Duration::from_millis(200));
    let outcome = checker.check(move || {
        while !seen.load(Relaxed) {
            std::thread::yield_now()
        }
    });
    stop.store(true, Relaxed);
    let failed = outcome.failed.expect("it does not end");
    assert_eq!(failed.failure, Failure::Silent("thread 0 (main)".to_owned()));
}

#[test]
fn objects_from_outside_are_refused() {
    let outside = Arc::new(AtomicUsize::new(0));
    let outcome = Checker::new().check(move || {
        outside.load(Relaxed);
    });
    let Some(Failure::Panic { message, .. }) = outcome.failed.map(|failed| failed.failure) else {
        panic!("it fails")
    };
    assert!(message.contains("create everything that threads share inside the closure"), "{message}");
}

#[test]
fn statics_are_reset_for_every_execution() {
    static X: AtomicUsize = AtomicUsize::const_new(3);
    for strategy in ALL {
        Checker::new().strategy(strategy).schedules(50).run(|| {
            let other = thread::spawn(|| X.fetch_add(1, Relaxed));
            X.fetch_add(1, Relaxed);
            other.join().unwrap();
            assert_eq!(X.load(Relaxed), 5);
        });
    }
}

#[test]
fn seeds_repeat_schedules() {
    let schedules = |seed: u64, strategy: Schedules| -> Vec<String> {
        let checker = Checker::new().robust().seed(seed).schedules(40).strategy(strategy);
        let outcome = checker.check(|| {
            let cells = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
            let handles = [0, 1].map(|me| {
                let cells = cells.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        cells[me].store(1, Relaxed);
                        cells[1 - me].load(Relaxed);
                    }
                })
            });
            handles.into_iter().for_each(|handle| handle.join().unwrap());
        });
        outcome
            .violations
            .iter()
            .map(|found| format!("{} {} {:?}", found.schedule, found.executions, found.seed))
            .collect()
    };
    for strategy in [Random, Pct { depth: 3 }] {
        assert_eq!(schedules(5, strategy), schedules(5, strategy));
        assert!(!schedules(5, strategy).is_empty());
    }
    assert_ne!(schedules(5, Random), schedules(1_000_000, Random));
}

#[test]
fn the_report() {
    let code = |order| {
        move || {
            let cells = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
            let handles = [0, 1].map(|me| {
                let cells = cells.clone();
                thread::spawn(move || {
                    cells[me].store(1, Relaxed);
                    fence(order);
                    cells[1 - me].load(Relaxed)
                })
            });
            handles.into_iter().for_each(|handle| drop(handle.join()));
        }
    };
    let checker = Checker::new().robust();
    checker.run(code(SeqCst));
    let report =
        catch_unwind(AssertUnwindSafe(|| checker.run(code(AcqRel)))).expect_err("there is a violation");
    let report = report.downcast_ref::<String>().expect("the panic contains the report");
    for part in [
        "palisade: 1 violation of sequential consistency under TSO (1000 schedules)",
        "cells[me].store(1, Relaxed);\n      this store can still be buffered",
        "failures.rs:",
        "cells[1 - me].load(Relaxed)\n      makes this access before the store reaches memory",
        "PALISADE_SEED=",
    ] {
        assert!(report.contains(part), "{part:?} in\n{report}");
    }
}

#[test]
fn outside_a_run_it_is_the_standard_library() {
    let x = Arc::new(AtomicUsize::new(0));
    let lock = Arc::new(Mutex::new(0));
    let (send, receive) = mpsc::sync_channel(1);
    thread::scope(|scope| {
        for number in 0..4 {
            let (x, lock, send) = (x.clone(), lock.clone(), send.clone());
            scope.spawn(move || {
                x.fetch_add(number, Relaxed);
                *lock.lock().unwrap() += number;
                send.send(number).unwrap();
            });
        }
        drop(send);
        assert_eq!(receive.iter().sum::<usize>(), 6);
    });
    assert_eq!((x.load(Relaxed), *lock.lock().unwrap()), (6, 6));
}

/// A test that depends on more than its schedule: the failure does not repeat, and is not reported as one.
#[test]
fn what_does_not_repeat_is_not_a_failure() {
    for strategy in ALL {
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let outcome = Checker::new().strategy(strategy).check(move || {
            let flag = Arc::new(AtomicBool::new(false));
            let other = flag.clone();
            let setter = thread::spawn(move || other.store(true, SeqCst));
            flag.load(SeqCst);
            setter.join().expect("it does not panic");
            assert!(count.fetch_add(1, SeqCst) > 0, "only once");
        });
        assert!(outcome.failed.is_none() && !outcome.is_fine(), "{strategy:?}: {outcome}");
        assert_eq!(outcome.unrepeated.len(), 1, "{strategy:?}: {outcome}");
        let text = outcome.to_string();
        assert!(text.contains("does not depend on its schedule alone"), "{text}");
        assert!(text.contains("only once") && text.contains("ended without a failure"), "{text}");
    }
}

/// The same place reads the same value three times, as a loop that waits would. The schedule repeats all the same.
#[test]
fn schedules_through_loops_that_are_not_waits_repeat() {
    let code = || {
        let (x, y) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (a, b) = (x.clone(), y.clone());
        let first = thread::spawn(move || {
            a.store(1, Relaxed);
            b.load(Relaxed)
        });
        let second = thread::spawn(move || {
            y.store(1, Relaxed);
            (0..4).map(|_| x.load(Relaxed)).sum::<usize>()
        });
        let (seen, sum) = (first.join().expect("no panic"), second.join().expect("no panic"));
        assert!(seen + sum > 0, "nobody is seen");
    };
    let checker = Checker::new().strategy(Exhaustive);
    let outcome = checker.check(code);
    let failed = outcome.failed.unwrap_or_else(|| panic!("{:?}", outcome.unrepeated));
    let again = checker.replay(&failed.schedule, code).failed.expect("it fails again");
    assert_eq!(again.failure, failed.failure);
}
