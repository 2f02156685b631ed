//! The markings found by a search from above, as a proof.

use super::ANY;
use super::search::Search;
use crate::proof::{activation, stops};
use crate::rules::MemoryId;
use palisade_automata::on_demand::LocalId;
use palisade_automata::{Hold, Local};
use palisade_engine::proof::{Crowd, Crowds, Number, ThreadState};
use rustc_hash::FxHashMap;

impl Search<'_, '_, '_> {
    /// The markings that were found and not dropped. Where more threads can only make a state worse, a
    /// marking also represents those with fewer threads, except that the holder of a section is always
    /// present.
    pub fn proof(&self) -> Crowds {
        let tokens = &self.population.tokens;
        let mut proof = Crowds { stops: stops(tokens.system(), &tokens.policy.heads), ..Crowds::default() };
        let mut memories: FxHashMap<MemoryId, u32> = FxHashMap::default();
        let mut threads: FxHashMap<LocalId, u32> = FxHashMap::default();
        let mut thread = |id: LocalId| {
            *threads.entry(id).or_insert_with(|| {
                proof.threads.push(thread_state(tokens.local(id)));
                proof.threads.len() as u32 - 1
            })
        };
        for met in self.met.iter().filter(|met| !met.dropped) {
            let memory = *memories.entry(met.marking.memory).or_insert_with(|| {
                proof.memories.push(self.population.memories.get(met.marking.memory).to_vec());
                proof.memories.len() as u32 - 1
            });
            let number = |&(local, count): &(LocalId, u32)| {
                let exact = !self.population.monotone || tokens.local(local).hold != Hold::Outside;
                let least = if exact && count != ANY { count } else { 0 };
                Number { thread: thread(local), least, most: (count != ANY).then_some(count) }
            };
            let started = met.marking.started.iter().map(number).collect();
            let named = met.marking.named.iter().map(|&local| thread(local)).collect();
            proof.elements.push(Crowd { memory, named, started });
        }
        proof
    }
}

fn thread_state(local: &Local) -> ThreadState {
    let depth = match local.hold {
        Hold::Outside => 0,
        Hold::Armed(depth) | Hold::Entered(depth) => depth,
    };
    let frames = local.thread.frames.iter().map(activation).collect();
    ThreadState { role: local.thread.role.0, frames, depth }
}
