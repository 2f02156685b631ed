//! Names of threads, and what they are about to do.

use crate::{Replay, Run};
use palisade_base::{Id, Span};
use palisade_memory::{Action, Machine, NextAccess, State};
use palisade_program::running::{CellId, EdgeId, System, ThreadId};

/// The name of a thread in a state. An initial thread has the name of its instance (`P(0)`, `Worker[2]`). A
/// spawned thread has the name of its role; the second, third, … spawned thread of that role gets the suffix
/// `#2`, `#3`, …
///
/// # Panics
/// If the state has no such thread.
pub fn process_name(system: &System, state: &State, thread: ThreadId) -> String {
    if let Some(instance) = system.instances.get(thread) {
        return instance.name.clone();
    }
    let role = state.threads[thread].role;
    let spawned = &state.threads.as_slice()[system.instances.len()..thread.index()];
    let name = &system.roles[role].name;
    match spawned.iter().filter(|other| other.role == role).count() {
        0 => name.clone(),
        earlier => format!("{name}#{}", earlier + 1),
    }
}

/// The source text of what a thread is about to access.
pub fn next_span(machine: Machine<'_>, state: &State, thread: ThreadId) -> Span {
    let top = state.threads[thread].top();
    let code = &machine.system.codes[top.code];
    let mut edges = code.edges_from(top.location).map(EdgeId);
    let access = edges.find(|&edge| NextAccess::of(&machine, code, edge, &top.registers).is_some());
    access.map_or(Span::NONE, |edge| code.edges()[edge].span)
}

/// If a data race at the end of a run is one with a pending store of the second thread: the source text of that store.
pub fn pending_in_race(
    machine: Machine<'_>,
    run: &Run,
    replay: &Replay,
    (first, second): (ThreadId, ThreadId),
    cell: CellId,
) -> Option<Span> {
    let last = replay.states.last()?;
    let next = |thread: ThreadId| {
        let top = last.threads[thread].top();
        let code = &machine.system.codes[top.code];
        let edges = code.edges_from(top.location).map(EdgeId);
        edges.filter_map(|edge| NextAccess::of(&machine, code, edge, &top.registers)).collect::<Vec<_>>()
    };
    let others = next(second);
    if next(first).iter().any(|access| others.iter().any(|other| access.races_with(*other))) {
        return None;
    }
    let stores = run.steps.iter().zip(&replay.states).rev().filter(|(step, _)| step.thread == second);
    let mut spans = stores.filter_map(|(step, state)| {
        let Action::Execute { edge, .. } = step.action else { return None };
        let top = state.threads[second].top();
        let code = &machine.system.codes[top.code];
        let access = NextAccess::of(&machine, code, edge, &top.registers)?;
        (access.writes && access.cell == cell).then(|| code.edges()[edge].span)
    });
    Some(spans.next().unwrap_or(Span::NONE))
}
