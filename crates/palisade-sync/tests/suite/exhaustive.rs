//! Searches: one execution per partial order, for all synchronisation objects. The numbers are those of a
//! search through all schedules.

use palisade_sync::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use palisade_sync::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock, mpsc};
use palisade_sync::{Checker, Coverage, Exhaustive, Failure, Model, Outcome, hint, thread};
use std::time::Duration;

fn exhaustive() -> Checker {
    Checker::new().strategy(Exhaustive).schedules(u64::MAX).model(Model::Sc)
}

/// Checks the number of partial orders, where there are too many schedules to try them all. Store buffers add
/// none here.
fn count(name: &str, code: impl Fn() + Send + Sync + Clone + 'static, expected: u64) -> Outcome {
    for model in [Model::Tso, Model::Pso] {
        count_under(model, name, code.clone(), expected);
    }
    count_under(Model::Sc, name, code, expected)
}

fn count_under(model: Model, name: &str, code: impl Fn() + Send + Sync + 'static, expected: u64) -> Outcome {
    let outcome = exhaustive().model(model).check(code);
    assert!(outcome.failed.is_none(), "{name}: {outcome}");
    assert_eq!(outcome.coverage, Coverage::Complete, "{name}");
    assert_eq!(outcome.executions, expected, "{name}, {model:?}: {outcome}");
    assert!(outcome.relaxed.is_none(), "{name}, {model:?}: {outcome}");
    outcome
}

/// Checks the number of partial orders, also by trying all schedules.
fn check(name: &str, code: impl Fn() + Send + Sync + Clone + 'static, expected: u64) -> Outcome {
    let outcome = count(name, code.clone(), expected);
    let all = exhaustive().preemptions(usize::MAX).check(code);
    assert_eq!(all.coverage, Coverage::Complete, "{name}");
    assert_eq!(outcome.partial_orders, all.partial_orders, "{name}: partial orders, from all schedules");
    outcome
}

/// Runs the closure in this many threads, each with its index, and waits for them.
fn threads(count: usize, code: impl Fn(usize) + Send + Sync + 'static) {
    let code = Arc::new(code);
    let handles: Vec<_> = (0..count)
        .map(|number| {
            let code = code.clone();
            thread::spawn(move || code(number))
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
}

#[test]
fn atomics() {
    let buffering = || {
        let cells = [(); 2].map(|()| AtomicUsize::new(0));
        threads(2, move |me| {
            cells[me].store(1, Relaxed);
            cells[1 - me].load(Relaxed);
        });
    };
    for (model, expected) in [(Model::Sc, 3), (Model::Tso, 4), (Model::Pso, 4)] {
        let outcome = exhaustive().model(model).check(buffering);
        assert_eq!((outcome.executions, outcome.is_fine()), (expected, true), "{outcome}");
    }
    let writers = || {
        let x = AtomicUsize::new(0);
        threads(3, move |me| x.store(me, Relaxed));
    };
    check("writers", writers, 6);
    let adders = || {
        let x = AtomicUsize::new(0);
        threads(2, move |_| {
            x.fetch_add(1, Relaxed);
            x.fetch_add(1, Relaxed);
        });
    };
    check("adders", adders, 6);
    let cas = || {
        let x = AtomicUsize::new(0);
        threads(2, move |me| {
            while let Err(_changed) = x.compare_exchange(me, me + 1, AcqRel, Relaxed) {
                if x.load(Relaxed) > 0 {
                    break;
                }
            }
        });
    };
    check("compare and swap", cas, 7);
}

#[test]
fn locks() {
    let mutex = || {
        let (lock, x) = (Mutex::new(0), AtomicUsize::new(0));
        threads(3, move |_| {
            *lock.lock().unwrap() += 1;
            x.load(Relaxed);
        });
    };
    count("mutex", mutex, 6);
    let twice = || {
        let (a, b) = (Mutex::new(0), Mutex::new(0));
        threads(2, move |me| {
            let both = if me == 0 { [&a, &b] } else { [&b, &a] };
            both.into_iter().for_each(|lock| *lock.lock().unwrap() += 1);
        });
    };
    check("two mutexes", twice, 3);
    let try_lock = || {
        let lock = Mutex::new(());
        threads(2, move |_| drop(lock.try_lock()));
    };
    check("try", try_lock, 4);
    let readers = || {
        let lock = RwLock::new(0);
        threads(3, move |me| match me {
            0 => *lock.write().unwrap() += 1,
            _ => assert!(*lock.read().unwrap() < 2),
        });
    };
    count("readers and a writer", readers, 4);
}

#[test]
fn deadlock() {
    let code = || {
        let (a, b) = (Mutex::new(0), Mutex::new(0));
        threads(2, move |me| {
            let (first, second) = if me == 0 { (&a, &b) } else { (&b, &a) };
            let _first = first.lock().unwrap();
            let _second = second.lock().unwrap();
        });
    };
    for checker in [exhaustive(), Checker::new()] {
        let outcome = checker.check(code);
        let failed = outcome.failed.expect("there is a deadlock");
        let Failure::Deadlock(threads) = &failed.failure else { panic!("{:?}", failed.failure) };
        assert_eq!(threads.len(), 3, "both threads, and the one that waits for them");
        assert!(
            threads
                .iter()
                .any(|(_, place)| place.operation == "lock" && place.file.ends_with("exhaustive.rs"))
        );
        let again = Checker::new().replay(&failed.schedule, code).failed.expect("it fails again");
        assert_eq!(again.failure, failed.failure);
        assert_eq!(again.schedule, failed.schedule);
    }
}

#[test]
fn condition_variables() {
    let code = || {
        let shared = (Mutex::new(false), Condvar::new());
        threads(2, move |me| {
            let (lock, condvar) = &shared;
            if me == 0 {
                let ready = condvar.wait_while(lock.lock().unwrap(), |ready| !*ready).unwrap();
                assert!(*ready);
            } else {
                *lock.lock().unwrap() = true;
                condvar.notify_one();
            }
        });
    };
    check("condition variable", code, 2);
    // The notification can come before the wait and is then lost.
    let lost = || {
        let shared = (Mutex::new(()), Condvar::new());
        threads(2, move |me| match me {
            0 => drop(shared.1.wait(shared.0.lock().unwrap()).unwrap()),
            _ => shared.1.notify_all(),
        });
    };
    let outcome = exhaustive().check(lost);
    assert!(matches!(outcome.failed.map(|failed| failed.failure), Some(Failure::Deadlock(_))));
    // One of two waiting threads is notified, either of them; then the other.
    let one = || {
        let shared = (Mutex::new(0), Condvar::new());
        threads(3, move |me| {
            let (lock, condvar) = &shared;
            if me < 2 {
                let mut left = lock.lock().unwrap();
                while *left == 0 {
                    left = condvar.wait(left).unwrap();
                }
                *left -= 1;
            } else {
                *lock.lock().unwrap() = 1;
                condvar.notify_one();
                *lock.lock().unwrap() += 1;
                condvar.notify_one();
            }
        });
    };
    count("one of two", one, 46);
    assert_eq!(
        exhaustive().preemptions(2).check(one).partial_orders,
        Some(46),
        "two preemptions show all of them"
    );
    let timeout = || {
        let shared = (Mutex::new(false), Condvar::new());
        threads(2, move |me| {
            let (lock, condvar) = &shared;
            if me == 0 {
                let hour = Duration::from_secs(3600);
                let (ready, result) = condvar.wait_timeout(lock.lock().unwrap(), hour).unwrap();
                assert!(*ready || result.timed_out());
            } else {
                *lock.lock().unwrap() = true;
                condvar.notify_one();
            }
        });
    };
    check("timeout", timeout, 6);
}

#[test]
fn once_barriers_and_channels() {
    let once = || {
        let (once, x) = (Once::new(), AtomicUsize::new(0));
        threads(2, move |_| {
            once.call_once(|| x.store(1, Relaxed));
            assert_eq!(x.load(Relaxed), 1);
        });
    };
    check("once", once, 2);
    let cell = || {
        let cell = OnceLock::new();
        threads(2, move |me| assert!(*cell.get_or_init(|| me) < 2));
    };
    check("once cell", cell, 2);
    let barrier = || {
        let (barrier, leaders) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        let counted = leaders.clone();
        threads(2, move |_| {
            if barrier.wait().is_leader() {
                leaders.fetch_add(1, Relaxed);
            }
        });
        assert_eq!(counted.load(Relaxed), 1);
    };
    check("barrier", barrier, 2);
    let channel = || {
        let (send, receive) = mpsc::channel();
        for number in 0..2 {
            let send = send.clone();
            thread::spawn(move || send.send(number).unwrap());
        }
        drop(send);
        assert_eq!(receive.iter().sum::<usize>(), 1);
    };
    let outcome = exhaustive().check(channel);
    assert!(outcome.is_fine() && outcome.coverage == Coverage::Complete, "{outcome}");
    let bounded = || {
        let (send, receive) = mpsc::sync_channel(1);
        let sender = thread::spawn(move || (0..2).for_each(|number| send.send(number).unwrap()));
        assert_eq!(receive.recv(), Ok(0));
        assert_eq!(receive.recv(), Ok(1));
        sender.join().unwrap();
        assert_eq!(receive.recv(), Err(mpsc::RecvError));
    };
    check("bounded channel", bounded, 2);
    let park = || {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = flag.clone();
        let waiter = thread::spawn(move || {
            while !seen.load(Acquire) {
                thread::park();
            }
        });
        flag.store(true, Release);
        waiter.thread().unpark();
        waiter.join().unwrap();
    };
    check("park", park, 2);
}

#[test]
fn nested_threads() {
    let nested = || {
        let x = Arc::new(AtomicUsize::new(0));
        let outer = {
            let x = x.clone();
            thread::spawn(move || {
                let inner = {
                    let x = x.clone();
                    thread::spawn(move || x.fetch_add(1, Relaxed))
                };
                x.fetch_add(2, Relaxed);
                inner.join().unwrap()
            })
        };
        x.fetch_add(4, Relaxed);
        outer.join().unwrap();
        assert_eq!(x.load(Relaxed), 7);
    };
    check("nested threads", nested, 6);
    let scoped = || {
        let x = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| x.fetch_add(1, Relaxed));
            let second = scope.spawn(|| x.fetch_add(2, Relaxed));
            assert!(second.join().unwrap() < 2);
        });
        assert_eq!(x.load(Relaxed), 3);
    };
    check("scope", scoped, 2);
}

#[test]
fn waiting_loops() {
    let code = |hint: bool| {
        move || {
            let (flag, data) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
            let reader = {
                let (flag, data) = (flag.clone(), data.clone());
                thread::spawn(move || {
                    while !flag.load(Acquire) {
                        if hint {
                            hint::spin_loop();
                        }
                    }
                    assert_eq!(data.load(Relaxed), 7);
                })
            };
            data.store(7, Relaxed);
            flag.store(true, Release);
            reader.join().unwrap();
        }
    };
    // It looks once, twice, or three times before the store.
    let hinted = check("with a hint", code(true), 3);
    let plain = check("without", code(false), 4);
    for outcome in [hinted, plain] {
        assert_eq!(outcome.waits.len(), 1, "{outcome}");
        assert!(outcome.to_string().contains("loops treated as waiting"), "{outcome}");
    }
}

#[test]
fn loops_that_end_by_themselves_are_not_waits() {
    let code = || {
        let x = Arc::new(AtomicUsize::new(0));
        let seen = x.clone();
        let reader = thread::spawn(move || (0..5).map(|_| seen.load(Relaxed)).sum::<usize>());
        reader.join().unwrap();
        x.store(1, Relaxed);
    };
    let outcome = check("five looks", code, 1);
    assert!(outcome.waits.is_empty());
    // With a store at any time: before the first look, after one look, and so on.
    let racing = || {
        let x = Arc::new(AtomicUsize::new(0));
        let seen = x.clone();
        let reader = thread::spawn(move || (0..5).map(|_| seen.load(Relaxed)).sum::<usize>());
        x.store(1, Relaxed);
        reader.join().unwrap();
    };
    let outcome = exhaustive().check(racing);
    assert!(outcome.is_fine() && outcome.coverage == Coverage::Complete, "{outcome}");
}

#[test]
fn bounds_are_reported() {
    let code = || {
        let x = AtomicUsize::new(0);
        threads(3, move |me| x.store(me, Relaxed));
    };
    let check = |checker: Checker, expected: &str| {
        let outcome = checker.strategy(Exhaustive).check(code);
        assert_eq!(outcome.coverage, Coverage::Bounded(expected.to_owned()), "{outcome}");
    };
    check(Checker::new().schedules(4), "the first 4 executions");
    check(Checker::new().steps(5), "executions of up to 5 steps");
    let preemptions = Checker::new().schedules(u64::MAX).preemptions(0);
    check(preemptions.clone(), "schedules with at most 0 preemptions and delayed stores");
    check(preemptions.model(Model::Sc), "schedules with at most 0 preemptions");
    // A loop in which something changes all the time.
    let outcome = exhaustive().steps(12).check(|| {
        let (x, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        threads(2, move |me| match me {
            0 => {
                while !stop.load(Relaxed) {
                    x.fetch_add(1, Relaxed);
                }
            }
            _ => stop.store(true, Relaxed),
        });
    });
    assert!(
        outcome.cut > 0 && outcome.coverage == Coverage::Bounded("executions of up to 12 steps".to_owned())
    );
}

#[test]
fn models() {
    let code = || {
        let (data, flag) = (AtomicUsize::new(0), AtomicUsize::new(0));
        threads(2, move |me| {
            if me == 0 {
                data.store(1, Relaxed);
                flag.store(1, Relaxed);
            } else {
                flag.load(Relaxed);
                data.load(Relaxed);
            }
        });
    };
    for (model, violations) in [(Model::Sc, 0), (Model::Tso, 0), (Model::Pso, 1)] {
        let outcome = exhaustive().model(model).robust().check(code);
        assert_eq!(outcome.violations.len(), violations, "{outcome}");
        let outcome = exhaustive().model(model).check(code);
        assert_eq!(outcome.relaxed.is_some(), violations > 0, "{outcome}");
        assert!(outcome.violations.is_empty() && outcome.is_fine(), "{outcome}");
    }
}

/// Stores that are pending while a thread uses synchronisation objects: the search sees the same partial orders
/// as all schedules.
#[test]
fn store_buffers_and_synchronisation() {
    struct Shared {
        x: AtomicUsize,
        y: AtomicUsize,
        lock: Mutex<usize>,
        rwlock: RwLock<usize>,
        once: Once,
    }
    let check = |name: &str, code: fn(usize, &Shared)| {
        for model in [Model::Tso, Model::Pso] {
            let run = move || {
                let shared = Arc::new(Shared {
                    x: AtomicUsize::new(0),
                    y: AtomicUsize::new(0),
                    lock: Mutex::new(0),
                    rwlock: RwLock::new(0),
                    once: Once::new(),
                });
                let other = shared.clone();
                let thread = thread::spawn(move || code(0, &other));
                code(1, &shared);
                thread.join().unwrap();
            };
            let outcome = exhaustive().model(model).check(run);
            assert!(outcome.is_fine() && outcome.coverage == Coverage::Complete, "{name}: {outcome}");
            let all = exhaustive().model(model).preemptions(usize::MAX).check(run);
            assert_eq!(all.coverage, Coverage::Complete, "{name}");
            assert_eq!(outcome.partial_orders, all.partial_orders, "{name}, {model:?}");
        }
    };
    check("a store before a lock", |me, shared| {
        if me == 0 {
            shared.x.store(1, Relaxed);
            *shared.lock.lock().unwrap() += shared.y.load(Relaxed);
        } else {
            shared.y.store(1, Relaxed);
            drop(shared.lock.try_lock());
            shared.x.load(Relaxed);
        }
    });
    check("a store inside a lock", |me, shared| {
        let guard = shared.lock.lock().unwrap();
        let (mine, theirs) = if me == 0 { (&shared.x, &shared.y) } else { (&shared.y, &shared.x) };
        mine.store(1, Relaxed);
        theirs.load(Relaxed);
        drop(guard);
    });
    check("readers and a writer", |me, shared| {
        if me == 0 {
            shared.x.store(1, Relaxed);
            drop(shared.rwlock.read());
            shared.y.load(Relaxed);
        } else {
            *shared.rwlock.write().unwrap() += 1;
            shared.y.store(1, Relaxed);
            shared.x.load(Relaxed);
        }
    });
    check("once", |me, shared| {
        if me == 0 {
            shared.x.store(1, Relaxed);
            shared.once.is_completed();
            shared.y.load(Relaxed);
        } else {
            shared.y.store(1, Relaxed);
            shared.once.call_once(|| assert!(shared.x.load(Relaxed) < 2));
        }
    });
    check("a thread that is started and waited for", |me, shared| {
        if me == 0 {
            shared.x.store(1, Relaxed);
            shared.y.load(Relaxed);
        } else {
            shared.y.store(1, Relaxed);
            thread::spawn(|| ()).join().unwrap();
            shared.x.load(Relaxed);
            shared.x.store(2, Relaxed);
        }
    });
}
