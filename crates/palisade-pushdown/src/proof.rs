//! The results of a search, as a proof that can be checked.

use crate::contexts::Contexts;
use crate::language::{END, LanguageId};
use crate::rules::{MemoryId, SymbolId};
use palisade_base::Id;
use palisade_engine::proof::{Activation, Piece, StackFrame, StackSet, Stacks};
use palisade_memory::Frame;
use palisade_program::running::{EdgeId, Location, System};
use rustc_hash::{FxHashMap, FxHashSet};

/// A frame as it is written in proofs.
pub(crate) fn activation(frame: &Frame) -> Activation {
    Activation {
        code: frame.code.0,
        location: frame.location.0,
        registers: frame.registers.clone(),
        result: frame.result.map(|register| register.0),
    }
}

/// Where threads always wait, by code: at these places, and at all locations that control cannot reach.
pub(crate) fn stops(system: &System, places: &[FxHashSet<Location>]) -> Vec<Vec<u32>> {
    let codes = system.codes.iter().zip(places);
    codes
        .map(|(code, places)| {
            let mut reached = vec![false; code.location_count()];
            reached[code.entry.index()] = true;
            let mut open = vec![code.entry];
            while let Some(location) = open.pop() {
                for target in code.edges_from(location).map(|edge| code.edges()[EdgeId(edge)].target) {
                    if !std::mem::replace(&mut reached[target.index()], true) {
                        open.push(target);
                    }
                }
            }
            let locations = (0..code.location_count()).map(Location::from_index);
            let stops = locations.filter(|location| !reached[location.index()] || places.contains(location));
            stops.map(|location| location.0).collect()
        })
        .collect()
}

/// The sets of states that were found and not dropped.
pub(crate) fn stacks(contexts: &Contexts<'_, '_>) -> Stacks {
    let mut proof = Stacks { stops: contexts.stops(), ..Stacks::default() };
    let mut memories: FxHashMap<MemoryId, u32> = FxHashMap::default();
    let mut frames: FxHashMap<SymbolId, u32> = FxHashMap::default();
    let mut sets: FxHashMap<LanguageId, u32> = FxHashMap::default();
    let mut frame = |id: SymbolId| {
        *frames.entry(id).or_insert_with(|| {
            let symbol = contexts.rules.symbol(id);
            let (inherited, opened) = (symbol.inherited, symbol.opened);
            proof.frames.push(StackFrame { frame: activation(&symbol.frame), inherited, opened });
            proof.frames.len() as u32 - 1
        })
    };
    let mut set = |id: LanguageId| {
        *sets.entry(id).or_insert_with(|| {
            let mut edge = |&(symbol, to): &(SymbolId, u32)| (frame(symbol), (to != END).then_some(to));
            let rows = contexts.languages.get(id).edges.iter();
            proof
                .sets
                .push(StackSet { states: rows.map(|row| row.iter().map(&mut edge).collect()).collect() });
            proof.sets.len() as u32 - 1
        })
    };
    for met in contexts.met.iter().filter(|met| !met.dropped) {
        let memory = *memories.entry(met.global.memory).or_insert_with(|| {
            proof.memories.push(contexts.rules.memory(met.global.memory).to_vec());
            proof.memories.len() as u32 - 1
        });
        let threads = met.global.threads.iter().map(|&(role, stacks)| (role.0, set(stacks))).collect();
        proof.pieces.push(Piece { memory, threads });
    }
    proof
}
