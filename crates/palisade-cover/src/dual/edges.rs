//! Edges with sets of values.
//!
//! `x != i`, `level >= f` or `flag in {0, 1}` is one edge per value in an automaton. Edges that differ only in
//! the value of one cell that they look at do the same for each of these values. They are one edge here, with
//! the set of the values. A locked instruction that looks at several cells is merged cell by cell: edges that
//! agree in all other cells become one.
//!
//! Edges that lead from a state to itself and leave memory as it is are *idle*. They need not be undone, since a
//! run stays a run without them.

use crate::values::{SetId, ValueSets};
use palisade_automata::{Edge, Letter, StateId, ValueId};
use palisade_base::limits;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The effect of an edge on memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// Nothing.
    Silent,
    /// Reads one of these values.
    Read(CellId, SetId),
    /// Writes this value.
    Write(CellId, ValueId),
    /// Waits until the buffer is empty.
    Fence,
    /// With an empty buffer: memory holds one of the values of each set of `guard` before, and the values of
    /// `effect` afterwards.
    Locked { guard: Vec<(CellId, SetId)>, effect: Vec<(CellId, ValueId)> },
}

impl SetEdge {
    /// Whether a run stays a run without this step.
    pub fn is_idle(&self) -> bool {
        self.source == self.target && !self.act.changes_memory()
    }
}

impl Act {
    fn changes_memory(&self) -> bool {
        match self {
            Act::Write(..) => true,
            Act::Locked { effect, .. } => !effect.is_empty(),
            Act::Silent | Act::Read(..) | Act::Fence => false,
        }
    }
}

/// An edge with sets of values.
#[derive(Clone, Debug)]
pub(crate) struct SetEdge {
    pub source: StateId,
    pub target: StateId,
    pub act: Act,
    /// The edges that it stands for, by their numbers.
    pub stands_for: Vec<usize>,
}

/// The values of one cell, and what every edge with one of them has in common.
type Alike = (StateId, StateId, bool, Vec<(CellId, SetId)>, Vec<(CellId, ValueId)>, bool);

/// An edge that looks at cells, before its values are merged with those of others.
struct Looking {
    source: StateId,
    target: StateId,
    /// Whether it is locked.
    locked: bool,
    guard: Vec<(CellId, SetId)>,
    effect: Vec<(CellId, ValueId)>,
    stands_for: Vec<usize>,
}

/// How values are merged.
pub(crate) struct Merging<'a> {
    pub sets: &'a ValueSets,
    /// Cells whose values stay apart.
    pub apart: &'a FxHashSet<CellId>,
    /// Values that processes which are not followed may write. They are not merged with others.
    pub free: &'a FxHashSet<(CellId, ValueId)>,
}

impl Merging<'_> {
    /// The edges, as the memory model interprets them, with sets of values.
    pub fn merge(&self, edges: &[Edge]) -> Vec<SetEdge> {
        let mut merged = Vec::new();
        let mut looking: Vec<Looking> = Vec::new();
        let mut cells: Vec<CellId> = Vec::new();
        for (number, edge) in edges.iter().enumerate() {
            limits::checkpoint();
            let single = |&(cell, value): &(CellId, ValueId)| (cell, self.sets.single(cell, value));
            let mut look = |locked, guard: &[(CellId, ValueId)], effect: &[(CellId, ValueId)]| {
                cells.extend(guard.iter().map(|(cell, _)| *cell));
                looking.push(Looking {
                    source: edge.source,
                    target: edge.target,
                    locked,
                    guard: guard.iter().map(single).collect(),
                    effect: effect.to_vec(),
                    stands_for: vec![number],
                });
            };
            let act = match &edge.letter {
                Letter::Read(cell, value) => {
                    look(false, &[(*cell, *value)], &[]);
                    continue;
                }
                Letter::Locked { guard, effect } => {
                    look(true, guard, effect);
                    continue;
                }
                Letter::Write(cell, value) => Act::Write(*cell, *value),
                Letter::Fence => Act::Fence,
                Letter::Silent | Letter::StoreFence => Act::Silent,
            };
            merged.push(SetEdge { source: edge.source, target: edge.target, act, stands_for: vec![number] });
        }
        cells.sort_unstable();
        cells.dedup();
        for cell in cells.into_iter().filter(|cell| !self.apart.contains(cell)) {
            looking = self.merge_values(looking, cell);
        }
        merged.extend(looking.into_iter().map(|edge| {
            let act = match edge.locked {
                false => Act::Read(edge.guard[0].0, edge.guard[0].1),
                true => {
                    let guard = edge.guard.into_iter().filter(|&(_, set)| set != SetId::ALL).collect();
                    Act::Locked { guard, effect: edge.effect }
                }
            };
            SetEdge { source: edge.source, target: edge.target, act, stands_for: edge.stands_for }
        }));
        merged
    }

    /// Merges edges that differ only in their values of one cell.
    fn merge_values(&self, edges: Vec<Looking>, cell: CellId) -> Vec<Looking> {
        let mut places: FxHashMap<Alike, usize> = FxHashMap::default();
        let mut merged: Vec<Looking> = Vec::new();
        let mut values: Vec<Vec<ValueId>> = Vec::new();
        for edge in edges {
            limits::checkpoint();
            let Some(&(_, set)) = edge.guard.iter().find(|(other, _)| *other == cell) else {
                merged.push(edge);
                values.push(Vec::new());
                continue;
            };
            let of_edge = self.sets.values(cell, set);
            let free = of_edge.iter().all(|&value| self.free.contains(&(cell, value)));
            let others = edge.guard.iter().copied().filter(|(other, _)| *other != cell).collect();
            let alike = (edge.source, edge.target, edge.locked, others, edge.effect.clone(), free);
            match places.get(&alike) {
                Some(&place) => {
                    values[place].extend(of_edge);
                    merged[place].stands_for.extend(edge.stands_for);
                }
                None => {
                    places.insert(alike, merged.len());
                    merged.push(edge);
                    values.push(of_edge);
                }
            }
        }
        for (edge, values) in merged.iter_mut().zip(values) {
            if let Some(guard) = edge.guard.iter_mut().find(|(other, _)| *other == cell) {
                guard.1 = self.sets.of(cell, values).expect("an edge has a value");
            }
        }
        merged
    }
}
