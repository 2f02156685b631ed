//! Reorderings are found where they occur, and only there.

use crate::common;

use common::{shortest, system};
use palisade_memory::{Interlocked, Machine, Model};
use palisade_trace::{links, replay};

/// Lists the reorderings of a shortest run as text: which process overtakes which steps, counted from 1.
#[track_caller]
fn check(text: &str, model: Model, interlocked: Interlocked, expected: &[&str]) {
    let system = system(text);
    let machine = Machine { system: &system, model, interlocked };
    let run = shortest(machine);
    let replay = replay(machine, &run).expect("a shortest run replays");
    let links = links(&run, &replay);
    let mut found = Vec::new();
    for (index, overtaken) in links.overtakes.iter().enumerate() {
        if !overtaken.is_empty() {
            let steps: Vec<String> = overtaken.iter().map(|step| (step + 1).to_string()).collect();
            let process = &system.instances[run.steps[index].thread].name;
            found.push(format!("{process} overtakes {}: {:?}", steps.join(" and "), replay.effects[index]));
        }
    }
    assert_eq!(found, expected, "{text}");
    for (index, store) in links.store_of.iter().enumerate() {
        if let Some(store) = *store {
            assert!(store < index && run.steps[store].thread == run.steps[index].thread);
        }
    }
}

#[test]
fn loads_overtake_pending_stores() {
    let one = "shared x, y, z: 0..1;
        process P { x = 1; z = 1; let s = z; let r = y; }
        process Q { y = 1; fence; let r = x; }
        final P.r == 1 || Q.r == 1;";
    // The load of z is served by the buffer, which is not a reordering.
    check(one, Model::Tso, Interlocked::WholeBuffer, &["P overtakes 1 and 2: ReadMemory(CellId(1), 0)"]);
}

#[test]
fn updates_overtake_older_stores_under_pso() {
    let mp = "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { let r = y; let s = x; assert(!(r == 1 && s == 0)); }";
    check(mp, Model::Pso, Interlocked::WholeBuffer, &["P overtakes 1: Updated(CellId(1), 1)"]);
}

#[test]
fn locked_instructions_overtake_stores_to_other_cells_if_they_may() {
    let mp = "shared x, y: 0..1; process P { x = 1; xchg(y, 1); }
        process Q { let r = y; let s = x; assert(!(r == 1 && s == 0)); }";
    let expected = ["P overtakes 1: Locked { cell: CellId(1), read: 0, wrote: Some(1) }"];
    check(mp, Model::Pso, Interlocked::OwnAddress, &expected);
}

#[test]
fn barriers_are_not_stores() {
    let text = "shared x, y, z: 0..1; process P { x = 1; sfence; y = 1; let r = z; l: skip; } forbid P@l && P.r == 0;";
    check(text, Model::Pso, Interlocked::WholeBuffer, &["P overtakes 1 and 3: ReadMemory(CellId(2), 0)"]);
}
