//! Compares the streaming monitors with the paper's algorithm, on random executions.
//!
//! For every event, the paper's monitors run on the events that happen before it. The streaming monitors must
//! report the same about this event. They must also report everything that the paper's monitors report on the
//! execution as it ran.

use crate::common::{Execution, Report};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_memory::{Interlocked, Model};
use palisade_monitor::{Access, Action, Bytes, Event, Instruction, Monitor, Process};
use std::collections::BTreeSet;

/// Which events occur.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    /// Loads, stores, locked instructions and fences, all accesses of the same size.
    Plain,
    /// Accesses of several sizes that overlap.
    Sizes,
    /// Processes that start and join others, and memory that is freed.
    Threads,
}

fn execution(shape: Shape, seed: u64) -> Vec<Event> {
    let mut random = Random::new(seed);
    let address = |random: &mut Random, addresses| 64 + random.below(addresses) as u64;
    let processes = 2 + random.below(3);
    let addresses = 1 + random.below(3);
    let length = 4 + random.below(14);
    let mut alive: Vec<u32> = (0..processes as u32).collect();
    let mut next = processes as u32;
    let mut ended: Vec<u32> = Vec::new();
    let mut events = Vec::new();
    for _ in 0..length {
        let process = Process(*random.pick(&alive));
        let kind = random.below(100);
        let mut action = None;
        if shape == Shape::Threads && kind >= 80 {
            if kind < 87 && next < 12 {
                let child = if ended.is_empty() || random.below(2) == 0 {
                    next += 1;
                    next - 1
                } else {
                    ended.swap_remove(0)
                };
                alive.push(child);
                action = Some(if kind < 83 {
                    Action::Spawn(Process(child))
                } else {
                    Action::Start(Process(child))
                });
            } else if kind < 94 && alive.len() > 2 {
                let others: Vec<u32> = alive.iter().copied().filter(|&other| other != process.0).collect();
                let child = *random.pick(&others);
                alive.retain(|&other| other != child);
                ended.push(child);
                action = Some(Action::Join(Process(child)));
            } else if kind >= 94 {
                action = Some(Action::Free {
                    address: address(&mut random, addresses),
                    size: 1 + random.below(2) as u64,
                });
            }
        }
        let action = action.unwrap_or_else(|| {
            let (address, size) = match shape {
                Shape::Sizes => {
                    let start = 64 + 3 * random.below(addresses) + random.below(4);
                    (start as u64, 1 + random.below(6) as u32)
                }
                _ => (address(&mut random, addresses), 1),
            };
            let bytes = Bytes::new(address, size).expect("a small range");
            match random.below(20) {
                0..8 => Action::Access(Access::Load, bytes),
                8..16 => Action::Access(Access::Store, bytes),
                16 => Action::Access(Access::Locked, bytes),
                17 => Action::Access(Access::LockedLoad, bytes),
                18 => Action::Fence,
                _ => Action::StoreFence,
            }
        });
        events.push(Event { process, instruction: Instruction(0), action });
    }
    events
}

fn check(shape: Shape, seed: u64) -> usize {
    let events = execution(shape, seed);
    let execution = Execution::new(&events);
    let mut found = 0;
    for interlocked in [Interlocked::WholeBuffer, Interlocked::OwnAddress] {
        let mut monitor = Monitor::new(interlocked);
        let number =
            |(index, event): (usize, &Event)| Event { instruction: Instruction(index as u32), ..*event };
        let numbered: Vec<Event> = events.iter().enumerate().map(number).collect();
        if seed.is_multiple_of(2) {
            monitor.take_all(&numbered);
        } else {
            numbered.iter().for_each(|event| monitor.take(event));
        }
        let seen: BTreeSet<(Model, u32, u32, u32)> = monitor
            .violations()
            .sorted()
            .iter()
            .map(|(v, seen)| {
                assert_eq!(seen.count, 1, "{shape:?}, seed {seed}: one report per pair of events");
                (v.model, v.store.0, v.previous.0, v.access.0)
            })
            .collect();
        for model in [Model::Tso, Model::Pso] {
            let mut expected = BTreeSet::new();
            for event in 0..execution.events.len() {
                for report in execution.monitor(model, interlocked, &execution.past(event)) {
                    if report.access == event {
                        let previous = if report.by_prev { execution.previous(event) } else { Some(event) };
                        let previous = previous.expect("an event with a report has a predecessor") as u32;
                        expected.insert((model, report.store as u32, previous, event as u32));
                    }
                }
            }
            let seen: BTreeSet<_> = seen.iter().copied().filter(|v| v.0 == model).collect();
            let context = || {
                let list: Vec<String> = execution
                    .events
                    .iter()
                    .enumerate()
                    .map(|(i, e)| format!("{i}: {:?} {:?}", e.process, e.action))
                    .collect();
                format!("{shape:?}, seed {seed}, {model:?}, {interlocked:?}\n{}", list.join("\n"))
            };
            assert_eq!(seen, expected, "{}", context());
            let all: Vec<usize> = (0..execution.events.len()).collect();
            for Report { store, access, .. } in execution.monitor(model, interlocked, &all) {
                let as_it_ran = |v: &&(Model, u32, u32, u32)| (v.1, v.3) == (store as u32, access as u32);
                assert!(seen.iter().any(|v| as_it_ran(&v)), "{store} {access}\n{}", context());
            }
            found += seen.len();
        }
    }
    found
}

fn check_many(shape: Shape) {
    let seeds = seeds(20_000);
    let found: usize = seeds.range().map(|seed| check(shape, seed)).sum();
    assert!(found as u64 > seeds.count() / 10 || !seeds.suffice(), "the executions show violations: {found}");
}

#[test]
fn oracle_plain() {
    check_many(Shape::Plain);
}

#[test]
fn oracle_sizes() {
    check_many(Shape::Sizes);
}

#[test]
fn oracle_threads() {
    check_many(Shape::Threads);
}
