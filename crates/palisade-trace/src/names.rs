//! Names of threads.

use palisade_base::Id;
use palisade_memory::State;
use palisade_program::running::{System, ThreadId};

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
