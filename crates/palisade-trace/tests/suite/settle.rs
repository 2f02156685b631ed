//! Runs whose updates come early, and runs with other fences.

use crate::common;

use common::{STORE_BUFFERING, shortest, system, tso};
use palisade_conformance::brute::{self, Answer, Scope};
use palisade_conformance::{Profile, generate};
use palisade_memory::{Machine, Model};
use palisade_program::{Instantiation, lower};
use palisade_trace::{Priority, Run, links, replay, settle, transfer};

/// How many loads of a run overtook a store.
fn overtakings(machine: Machine<'_>, run: &Run) -> usize {
    let replay = replay(machine, run).expect("the run is a witness");
    links(run, &replay).overtakes.iter().filter(|overtaken| !overtaken.is_empty()).count()
}

#[test]
fn only_the_necessary_waits_remain() {
    let system = system(STORE_BUFFERING);
    let machine = tso(&system);
    let run = shortest(machine);
    for priority in [Priority::First, Priority::Last] {
        let settled = settle(machine, run.clone(), priority, &|run| replay(machine, run).is_ok());
        assert_eq!(overtakings(machine, &settled), 1, "one store has to wait, the other does not");
    }
}

#[test]
fn settled_runs_are_still_witnesses() {
    let mut settled_runs = 0;
    for seed in 0..60 {
        let program = generate(Profile::Acyclic, seed);
        let system = lower(&program, Instantiation::declared(2));
        for model in Model::ALL {
            let machine = Machine::new(&system, model);
            let Answer::Unsafe(run) = brute::check(machine, Scope::states(5_000)) else { continue };
            for priority in [Priority::First, Priority::Last] {
                let settled = settle(machine, run.clone(), priority, &|run| replay(machine, run).is_ok());
                assert!(replay(machine, &settled).is_ok(), "seed {seed}, {model:?}");
                // Under PSO a store that reaches memory earlier may overtake another store.
                let fewer = overtakings(machine, &settled) <= overtakings(machine, &run);
                assert!(fewer || model == Model::Pso, "seed {seed}, {model:?}");
                assert_eq!(transfer(machine, machine, &settled), Some(settled));
                settled_runs += 1;
            }
        }
    }
    assert!(settled_runs > 30, "{settled_runs}");
}

/// A run transfers to the program with a fence if it passes the fence with an empty buffer, and does not if a
/// store is pending there.
#[test]
fn runs_with_other_fences() {
    let text = |p: &str, q: &str| {
        let p = format!("x = 1; {p} let r = y;");
        let q = format!("y = 1; {q} let r = x;");
        format!("shared x, y: 0..1; process P {{ {p} }} process Q {{ {q} }} final P.r == 1 || Q.r == 1;")
    };
    // The labelled step exists with and without a fence, so that the edges are the same.
    let (none, fence) = ("m: skip;", "m: fence;");
    let plain = system(&text(none, none));
    let run =
        settle(tso(&plain), shortest(tso(&plain)), Priority::First, &|run| replay(tso(&plain), run).is_ok());
    let fenced: Vec<bool> = [(fence, none), (none, fence), (fence, fence), (none, none)]
        .map(|(p, q)| {
            let other = system(&text(p, q));
            let there = transfer(tso(&plain), tso(&other), &run);
            assert!(there.as_ref().is_none_or(|run| replay(tso(&other), run).is_ok()));
            there.is_some()
        })
        .to_vec();
    // One of the two stores is pending when its thread reaches the fence.
    assert_eq!(fenced.iter().filter(|&&taken| taken).count(), 2, "{fenced:?}");
    assert_eq!((fenced[2], fenced[3]), (false, true));
}
