//! Which steps overtook which stores.
//!
//! On a machine with store buffers, a run breaks a program because some access took effect before an older
//! store of the same thread did. This file finds these accesses in a replayed run:
//! - loads and locked instructions that accessed memory while older stores of their thread were pending;
//! - under PSO, stores that reached memory before older ones.
//!
//! *Invariant*: the shadow of a buffer, which holds the step of each pending store, has the same length as
//! the buffer after every step.

use crate::{Replay, Run};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect};

/// How the steps of a run are connected. Steps are counted from 0 here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    /// For each step, the earlier store steps of the same thread that it overtook. For a load or locked
    /// instruction, these are the stores that were pending when it accessed memory. For an update, these are
    /// the older stores that were still pending.
    pub overtakes: Vec<Vec<usize>>,
    /// For each update, the step that put the store into the buffer.
    pub store_of: Vec<Option<usize>>,
}

/// Finds how the steps of a replayed run are connected.
pub fn links(run: &Run, replay: &Replay) -> Links {
    let mut links = Links { overtakes: Vec::new(), store_of: Vec::new() };
    // For each thread, the step of each entry of its buffer; `None` for barriers.
    let mut shadows: Vec<Vec<Option<usize>>> = Vec::new();
    for (index, (step, effect)) in run.steps.iter().zip(&replay.effects).enumerate() {
        limits::checkpoint();
        let (before, after) = (&replay.states[index], &replay.states[index + 1]);
        shadows.resize(after.threads.len(), Vec::new());
        let shadow = &mut shadows[step.thread.index()];
        let mut overtakes = Vec::new();
        let mut store_of = None;
        match (step.action, effect) {
            (Action::Update { position }, _) => {
                overtakes = shadow[..position].iter().flatten().copied().collect();
                store_of = shadow.remove(position);
                let barriers = shadow.iter().take_while(|entry| entry.is_none()).count();
                shadow.drain(..barriers);
            }
            (_, Effect::ReadMemory(..) | Effect::Locked { .. }) => {
                overtakes = shadow.iter().flatten().copied().collect();
            }
            (_, Effect::Buffered(..)) => shadow.push(Some(index)),
            (_, Effect::StoreFenced) => {
                let entries = |state: &palisade_memory::State| state.threads[step.thread].buffer.len();
                if entries(after) > entries(before) {
                    shadow.push(None);
                }
            }
            _ => {}
        }
        debug_assert_eq!(shadow.len(), after.threads[step.thread].buffer.len(), "shadow and buffer differ");
        links.overtakes.push(overtakes);
        links.store_of.push(store_of);
    }
    links
}
