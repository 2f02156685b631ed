//! Happens-before has a cycle exactly when no sequentially consistent run has the same relation.

use crate::common;

use common::system;
use palisade_base::Id;
use palisade_memory::{Action, Effect, Machine, Model, State, Step};
use palisade_program::running::{EdgeId, ThreadId};
use palisade_trace::{HappensBefore, NotViolating, Relation, ReplayError, Run, take, until_cycle, violating};

/// Executes a schedule. `P` executes the process's next instruction that accesses memory, and the local steps
/// before it. `P!` moves its oldest pending store to memory, `P!1` the second oldest.
fn run(machine: Machine<'_>, schedule: &str) -> Run {
    let memory: Vec<i64> = machine.system.cells.iter().map(|cell| cell.init.unwrap_or(0)).collect();
    let mut state = machine.initial_state(&memory).expect("the memory is an initial memory");
    let mut steps = Vec::new();
    for word in schedule.split_whitespace() {
        let (name, update) = match word.split_once('!') {
            Some((name, position)) => (name, Some(position.parse().unwrap_or(0))),
            None => (word, None),
        };
        let thread = (0..state.threads.len())
            .map(ThreadId::from_index)
            .find(|&thread| palisade_trace::process_name(machine.system, &state, thread) == name)
            .unwrap_or_else(|| panic!("there is no process {name}"));
        match update {
            Some(position) => {
                state = step(machine, &state, &mut steps, thread, Action::Update { position }).0
            }
            None => loop {
                let top = state.threads[thread].top();
                let edges = machine.system.codes[top.code].edges_from(top.location);
                let action = edges
                    .map(|edge| Action::Execute { edge: EdgeId(edge), choice: None })
                    .find(|&action| machine.step(&state, Step { thread, action }).is_ok())
                    .unwrap_or_else(|| panic!("{word}: the process is stuck"));
                let (next, effect) = step(machine, &state, &mut steps, thread, action);
                state = next;
                if effect != Effect::Local {
                    break;
                }
            },
        }
    }
    Run { memory, steps }
}

fn step(
    machine: Machine<'_>,
    state: &State,
    steps: &mut Vec<Step>,
    thread: ThreadId,
    action: Action,
) -> (State, Effect) {
    let step = Step { thread, action };
    steps.push(step);
    machine.step(state, step).unwrap_or_else(|refusal| panic!("{step:?}: {refusal}"))
}

/// The cycle of a run as `thread:relation` per arrow.
#[track_caller]
fn check(text: &str, model: Model, schedule: &str, expected: Option<&[(u32, Relation)]>) {
    let system = system(text);
    let machine = Machine::new(&system, model);
    let run = run(machine, schedule);
    let found = match violating(machine, &run) {
        Ok(found) => Some(found),
        Err(NotViolating::NoCycle) => None,
        Err(error) => panic!("{schedule}: {error}"),
    };
    let relations: Option<Vec<(u32, Relation)>> = found.map(|found| {
        let cycle = found.cycle.arrows;
        for (arrow, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
            assert_eq!(arrow.to, next.from);
        }
        cycle.iter().map(|arrow| (found.happens_before.events[arrow.from].thread.0, arrow.relation)).collect()
    });
    assert_eq!(relations.as_deref(), expected, "{schedule}");
}

const PO: Relation = Relation::ProgramOrder;
const FR: Relation = Relation::FromRead;
const CO: Relation = Relation::Coherence;
const RF: Relation = Relation::ReadsFrom;

#[test]
fn store_buffering() {
    let sb = "shared x, y: 0..1; process P { x = 1; let r = y; } process Q { y = 1; let r = x; }";
    let cycle: &[_] = &[(0, PO), (0, FR), (1, PO), (1, FR)];
    check(sb, Model::Tso, "P P Q Q P! Q!", Some(cycle));
    // The stores need not have reached memory.
    check(sb, Model::Tso, "P P Q Q", Some(cycle));
    check(sb, Model::Tso, "P P Q Q!  Q", Some(cycle));
    // In the other order there is no cycle, whenever the stores reach memory.
    check(sb, Model::Tso, "P P! P Q Q Q!", None);
    check(sb, Model::Tso, "P P Q P! Q Q!", None);
    check(sb, Model::Sc, "P Q P Q", None);
}

#[test]
fn coherence_and_reads_from() {
    let r = "shared x, y: 0..2; process P { x = 1; y = 1; } process Q { y = 2; let r = x; }";
    check(r, Model::Tso, "Q Q P P P! P! Q!", Some(&[(1, PO), (1, FR), (0, PO), (0, CO)]));
    check(r, Model::Tso, "Q Q P P Q! P! P!", None);
    let mp = "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { let a = y; let b = x; }";
    check(mp, Model::Pso, "P P P!1 Q Q", Some(&[(0, PO), (0, RF), (1, PO), (1, FR)]));
    check(mp, Model::Pso, "P P P! P! Q Q", None);
}

#[test]
fn own_stores_are_read_early() {
    let early = "shared x, y: 0..1; process P { x = 1; let a = x; let b = y; } process Q { y = 1; fence; let r = x; }";
    check(early, Model::Tso, "P P P Q Q! Q Q", Some(&[(0, PO), (0, FR), (1, PO), (1, FR)]));
    check(early, Model::Tso, "P P P Q P! Q! Q Q", None);
}

#[test]
fn sections_are_one_event() {
    // Each access alone is consistent; both together are not.
    let pair =
        "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { atomic { let a = x; let b = y; } }";
    check(pair, Model::Pso, "P P P!1 Q Q", Some(&[(0, PO), (0, RF), (1, FR)]));
    check(pair, Model::Pso, "P P P! Q Q", None);
}

#[test]
fn locked_instructions_read_the_previous_value() {
    let locks =
        "shared x: 0..2; process P { let a = fetch_add(x, 1); } process Q { let a = fetch_add(x, 1); }";
    check(locks, Model::Tso, "P Q", None);
    let late = "shared x, y: 0..2; process P { x = 1; let r = y; } process Q { let a = fetch_add(y, 1); let b = xchg(x, 2); }";
    check(late, Model::Tso, "P P Q Q", Some(&[(0, PO), (0, FR), (1, PO), (1, CO)]));
}

#[test]
fn started_threads_come_after_their_start() {
    let start = "shared x: 0..1; process P { x = 1; spawn C(); } process C() on spawn { let r = x; }";
    check(start, Model::Tso, "P P C", Some(&[(0, PO), (0, Relation::Starts), (1, FR)]));
    check(start, Model::Tso, "P P! P C", None);
}

#[test]
fn a_load_that_faults_is_a_read() {
    let fault = "shared x, y: 0..1; process P { x = 1; y = 1; } process Q { await y == 1; let r: 1..1 = x; }";
    check(fault, Model::Pso, "P P P!1 Q Q", Some(&[(0, PO), (0, RF), (1, PO), (1, FR)]));
}

#[test]
fn a_run_is_cut_where_the_cycle_closes() {
    let system = system("shared x, y: 0..1; process P { x = 1; let r = y; } process Q { y = 1; let r = x; }");
    let machine = Machine::new(&system, Model::Tso);
    let run = run(machine, "P P Q Q P! Q!");
    assert_eq!(until_cycle(machine, run.clone()).steps, run.steps[..4]);
    let broken = Run { steps: vec![run.steps[1]], ..run.clone() };
    assert!(matches!(violating(machine, &broken), Err(NotViolating::NoRun(ReplayError::Refused { .. }))));
    let taken = take(machine, &run).expect("it is a run");
    assert_eq!(HappensBefore::of(machine, &run, &taken).events.len(), 4);
}
