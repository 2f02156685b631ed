//! Forward data flow along the edges of single processes. The results are those that [`super::setup`] lists.

use super::setup::Wait;
use crate::edges::{Act, SetEdge};
use crate::values::ValueSets;
use palisade_automata::{StateId, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;
use rustc_hash::FxHashSet;

/// The edges of an automaton, by their sources.
pub(crate) struct Walk<'a> {
    edges: &'a [SetEdge],
    waits: &'a [Wait],
    is_start: &'a IdVec<StateId, bool>,
    sets: &'a ValueSets,
    outgoing: IdVec<StateId, Vec<usize>>,
}

impl<'a> Walk<'a> {
    pub fn new(
        edges: &'a [SetEdge],
        waits: &'a [Wait],
        is_start: &'a IdVec<StateId, bool>,
        sets: &'a ValueSets,
    ) -> Walk<'a> {
        let mut outgoing: IdVec<StateId, Vec<usize>> = vec![Vec::new(); is_start.len()].into();
        for (number, edge) in edges.iter().enumerate() {
            outgoing[edge.source].push(number);
        }
        Walk { edges, waits, is_start, sets, outgoing }
    }

    fn stores(&self) -> impl Iterator<Item = (StateId, CellId, ValueId)> {
        self.edges.iter().filter_map(|edge| match edge.act {
            Act::Write(cell, value) => Some((edge.target, cell, value)),
            _ => None,
        })
    }
}

/// Where a process's newest store to a cell can be, as long as the process's pointer has not passed it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// In its queue, or in the buffer ahead of the pointer.
    Free,
    /// In the buffer ahead of the pointer.
    Ahead,
}

/// The newest pending stores.
pub(crate) fn newest_stores(walk: &Walk<'_>, model: Model) -> FxHashSet<(StateId, CellId, ValueId, Stage)> {
    let first = if model == Model::Pso { Stage::Free } else { Stage::Ahead };
    let mut newest = FxHashSet::default();
    let mut work: Vec<_> = walk.stores().map(|(state, cell, value)| (state, cell, value, first)).collect();
    while let Some((state, cell, value, stage)) = work.pop() {
        limits::checkpoint();
        if !newest.insert((state, cell, value, stage)) {
            continue;
        }
        for &number in &walk.outgoing[state] {
            let edge = &walk.edges[number];
            let next = match edge.act {
                Act::Silent | Act::Spawn(_) => Some(stage),
                Act::Read(read, set) => {
                    (read != cell || walk.sets.contains(cell, set, value)).then_some(stage)
                }
                Act::Write(written, _) => (written != cell).then_some(stage),
                Act::StoreFence => Some(Stage::Ahead),
                Act::Fence => None,
                Act::Locked { .. } => {
                    (stage == Stage::Free && !walk.waits[number].is_for(cell)).then_some(stage)
                }
            };
            work.extend(next.map(|stage| (edge.target, cell, value, stage)));
        }
    }
    newest
}

/// All stores that can be in queues (PSO).
pub(crate) fn queued(walk: &Walk<'_>) -> FxHashSet<(StateId, CellId, ValueId)> {
    let mut queued = FxHashSet::default();
    let mut work: Vec<_> = walk.stores().collect();
    while let Some((state, cell, value)) = work.pop() {
        limits::checkpoint();
        if !queued.insert((state, cell, value)) {
            continue;
        }
        for &number in &walk.outgoing[state] {
            let edge = &walk.edges[number];
            let stays = match edge.act {
                Act::Silent | Act::Spawn(_) | Act::Read(..) | Act::Write(..) => true,
                Act::StoreFence | Act::Fence => false,
                Act::Locked { .. } => !walk.waits[number].is_for(cell),
            };
            if stays {
                work.push((edge.target, cell, value));
            }
        }
    }
    queued
}

/// For each state of the only writer of a cell.
type ByState = IdVec<StateId, Vec<ValueId>>;

/// At each state of a cell's only writer: the values it can have stored last, and those that the end of the buffer
/// can hold. The writer always reads the value it stored last. Under PSO the end may lag behind that store until
/// the writer waits for it.
pub(crate) fn held(walk: &Walk<'_>, cell: CellId, initial: usize, model: Model) -> (ByState, ByState) {
    // State, value stored last, value held.
    let starts = walk.is_start.iter_enumerated().filter(|(_, is_start)| **is_start);
    let mut work: Vec<(StateId, ValueId, ValueId)> = starts
        .flat_map(|(state, _)| {
            (0..initial).map(move |v| (state, ValueId::from_index(v), ValueId::from_index(v)))
        })
        .collect();
    let mut seen = FxHashSet::default();
    while let Some((state, last, held)) = work.pop() {
        limits::checkpoint();
        if !seen.insert((state, last, held)) {
            continue;
        }
        // All pending stores may take effect at any time.
        work.push((state, last, last));
        for &number in &walk.outgoing[state] {
            let edge = &walk.edges[number];
            let after = match &edge.act {
                Act::Write(written, new) if *written == cell => {
                    Some((*new, if model == Model::Pso { held } else { *new }))
                }
                Act::Read(read, set) if *read == cell => {
                    walk.sets.contains(cell, *set, last).then_some((last, held))
                }
                Act::Fence | Act::StoreFence => Some((last, last)),
                Act::Locked { guard, effect } => {
                    let guard = guard.iter().find(|(of, _)| *of == cell).map(|&(_, set)| set);
                    let effect = effect.iter().find(|(of, _)| *of == cell).map(|&(_, value)| value);
                    match (guard, effect) {
                        (Some(set), _) if !walk.sets.contains(cell, set, last) => None,
                        (_, Some(new)) => Some((new, new)),
                        _ if walk.waits[number].is_for(cell) => Some((last, last)),
                        _ => Some((last, held)),
                    }
                }
                _ => Some((last, held)),
            };
            work.extend(after.map(|(last, held)| (edge.target, last, held)));
        }
    }
    let mut values = [vec![Vec::new(); walk.is_start.len()], vec![Vec::new(); walk.is_start.len()]];
    for (state, last, held) in seen {
        limits::checkpoint();
        for (values, value) in values.iter_mut().zip([last, held]) {
            if !values[state.index()].contains(&value) {
                values[state.index()].push(value);
            }
        }
    }
    values.iter_mut().flatten().for_each(|values| values.sort_unstable());
    let [last, held] = values;
    (last.into(), held.into())
}
