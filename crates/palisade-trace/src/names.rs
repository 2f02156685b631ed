//! What threads are called.

use palisade_base::Id;
use palisade_memory::State;
use palisade_program::running::{System, ThreadId};

/// The name of a thread in a state: that of its instance (`P(0)`, `Worker[2]`), or for a spawned thread that
/// of its role, with `#2`, `#3`, … behind it for the second, third, … spawned thread of that role.
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
