//! Names of threads, and what they are about to do.

use palisade_base::{Id, Span};
use palisade_memory::{Machine, NextAccess, State};
use palisade_program::running::{EdgeId, System, ThreadId};

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
