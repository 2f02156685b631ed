//! Edges with sets of values.
//!
//! `x != i`, `level >= f` or `flag in {0, 1}` is one edge per value in an automaton. Edges that differ only in
//! the value of one cell that they look at do the same for each of these values. They are one edge here, with
//! the set of the values. A locked instruction that looks at several cells is merged cell by cell: edges that
//! agree in all other cells become one.
//!
//! # Two rewrites
//! - *A store and a fence* become one locked store, if nothing can happen in between: the state m between them is
//!   not a start, all edges into it are stores, all edges out of it are fences, and properties do not
//!   distinguish it from the states after the fence.
//!   - *Load buffers.* In a run, let p store and later take the fence. At the fence p's buffer is empty. So p can
//!     delete everything and take the fence immediately after the store, without the messages propagated to it in
//!     between. The others do not see p's state or its buffer. That is a locked store: memory changes, and p's
//!     buffer is empty. If a run ends with p at m, it can end with p after the fence as well, and properties do
//!     not see the difference.
//!   - *A single buffer, TSO.* At the fence p's pointer is at the end of the buffer. Pointers may advance at any
//!     time, and the others do not see p's pointer. So p can have its pointer at the end before the store and
//!     immediately after it, and take the fence there. That is a locked store.
//!   - *A single buffer, PSO.* Here there is one more condition: before the store, no store of p to another cell
//!     can be pending. At the fence p's queues are empty, so its store has taken effect since, and after p's older
//!     stores to the same cell. Between the store and the fence p does nothing else, so both can be moved to the
//!     moment of that effect. Then p's queues are empty before and after it, and p's pointer can be at the end.
//!     If a run ends with p at m, the store and the fence can be added at its end. Properties read only cells with
//!     nothing pending, so a cell of a store that is added is not read.
//! - *A read by the only writer of a cell* is a local step where the invariant leaves one value: the writer sees
//!   its last store.
//!   - *Load buffers.* While its own message is in its buffer, it reads that; all messages on the cell that are
//!     newer have the same value. Afterwards older messages are gone as well.
//!   - *A single buffer.* The newest entry of its queue, its newest store after its pointer, or memory at its
//!     pointer, whichever it reads, is its last store, since no other process stores to the cell.
//!
//!   So the read neither depends on buffers nor moves the process in time. A read of another value is never taken
//!   there.
//!
//! Both are repeated by the checker, which finds the places by itself.
//!
//! # Idle edges
//! Edges that lead from a state to itself and leave memory as it is are *idle*. They need not be undone, since a
//! run stays a run without them.

use crate::facts::writes;
use crate::values::{SetId, ValueSets};
use palisade_automata::{Edge, Letter, StateId, ValueId};
use palisade_base::{IdVec, limits};
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};

/// The effect of an edge on memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// Nothing.
    Silent,
    /// Starts a process of this kind. See [`crate::spawns`].
    Spawn(u32),
    /// Reads one of these values.
    Read(CellId, SetId),
    /// Writes this value.
    Write(CellId, ValueId),
    /// Waits until the buffer is empty.
    Fence,
    /// Separates earlier from later stores (PSO).
    StoreFence,
    /// With an empty buffer: memory holds one of the values of each set of `guard` before, and the values of
    /// `effect` afterwards.
    Locked { guard: Vec<(CellId, SetId)>, effect: Vec<(CellId, ValueId)> },
}

impl SetEdge {
    /// The edges as they are, with sets of one value.
    pub fn of_each(edges: &[Edge], sets: &ValueSets) -> Vec<SetEdge> {
        let of = |(number, edge): (usize, &Edge)| {
            let act = match &edge.letter {
                Letter::Silent => Act::Silent,
                Letter::Spawn(child) => Act::Spawn(*child),
                Letter::Read(cell, value) => Act::Read(*cell, sets.single(*cell, *value)),
                Letter::Write(cell, value) => Act::Write(*cell, *value),
                Letter::Fence => Act::Fence,
                Letter::StoreFence => Act::StoreFence,
                Letter::Locked { guard, effect } => {
                    let guard = guard.iter().map(|&(cell, value)| (cell, sets.single(cell, value)));
                    Act::Locked { guard: guard.collect(), effect: effect.clone() }
                }
            };
            let Edge { source, target, .. } = *edge;
            SetEdge { source, target, act, stands_for: vec![number], fence: None }
        };
        edges.iter().enumerate().map(of).collect()
    }

    /// Whether a run stays a run without this step.
    pub fn is_idle(&self) -> bool {
        self.source == self.target && !self.act.changes_anything()
    }
}

impl Act {
    /// Whether it changes memory or starts a process.
    fn changes_anything(&self) -> bool {
        match self {
            Act::Write(..) | Act::Spawn(_) => true,
            Act::Locked { effect, .. } => !effect.is_empty(),
            Act::Silent | Act::Read(..) | Act::Fence | Act::StoreFence => false,
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
    /// The fence that follows a store, for both together.
    pub fence: Option<usize>,
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

/// What is known about one automaton before its edges are merged.
pub(crate) struct Places<'a> {
    pub is_start: &'a IdVec<StateId, bool>,
    /// What properties see of each state.
    pub looks: &'a IdVec<StateId, u32>,
    /// The cells that only this process writes, with the values that it can have stored last at each state.
    pub held: &'a FxHashMap<CellId, IdVec<StateId, Vec<ValueId>>>,
    /// The cells to which stores can be pending at each state, if these may take effect in another order (PSO).
    pub queued: &'a FxHashSet<(StateId, CellId)>,
}

impl Places<'_> {
    /// Pairs of edges, a store and a fence, that become one. And for each edge whether it is part of a pair.
    fn pairs(&self, edges: &[Edge]) -> (Vec<(usize, usize)>, Vec<bool>) {
        let states = self.is_start.len();
        let mut into: IdVec<StateId, Vec<usize>> = vec![Vec::new(); states].into();
        let mut out: IdVec<StateId, Vec<usize>> = vec![Vec::new(); states].into();
        let idle = |edge: &Edge| edge.source == edge.target && edge.letter == Letter::Silent;
        for (number, edge) in edges.iter().enumerate().filter(|(_, edge)| !idle(edge)) {
            into[edge.target].push(number);
            out[edge.source].push(number);
        }
        let mut pairs = Vec::new();
        let mut paired = vec![false; edges.len()];
        for middle in self.is_start.ids().filter(|&state| !self.is_start[state]) {
            let stores = into[middle].iter().all(|&store| self.is_first_store(&edges[store]));
            let fences = out[middle].iter().all(|&fence| {
                let Edge { letter, target, .. } = &edges[fence];
                *letter == Letter::Fence && *target != middle && self.looks[*target] == self.looks[middle]
            });
            if stores && fences && !out[middle].is_empty() {
                let both = |&store: &usize| out[middle].iter().map(move |&fence| (store, fence));
                pairs.extend(into[middle].iter().flat_map(both));
                into[middle].iter().chain(&out[middle]).for_each(|&number| paired[number] = true);
            }
        }
        (pairs, paired)
    }

    /// Whether an edge stores while no store to another cell is pending that could take effect later.
    fn is_first_store(&self, edge: &Edge) -> bool {
        let Letter::Write(cell, _) = edge.letter else { return false };
        !self.queued.iter().any(|&(state, other)| state == edge.source && other != cell)
    }

    /// The only value that a read of its own cell can see, if the process is the only writer.
    fn own_value(&self, edge: &Edge) -> Option<(ValueId, ValueId)> {
        let Letter::Read(cell, value) = edge.letter else { return None };
        match self.held.get(&cell)?[edge.source][..] {
            [only] => Some((value, only)),
            _ => None,
        }
    }
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
    pub fn merge(&self, edges: &[Edge], places: &Places<'_>) -> Vec<SetEdge> {
        let (pairs, paired) = places.pairs(edges);
        let locked_store = |(store, fence): (usize, usize)| SetEdge {
            source: edges[store].source,
            target: edges[fence].target,
            act: Act::Locked { guard: Vec::new(), effect: writes(&edges[store].letter) },
            stands_for: vec![store],
            fence: Some(fence),
        };
        let mut merged: Vec<SetEdge> = pairs.into_iter().map(locked_store).collect();
        let mut looking: Vec<Looking> = Vec::new();
        let mut cells: Vec<CellId> = Vec::new();
        for (number, edge) in edges.iter().enumerate() {
            limits::checkpoint();
            if paired[number] {
                continue;
            }
            let silent = match places.own_value(edge) {
                Some((value, only)) if value != only => continue,
                own => own.is_some(),
            };
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
                Letter::Read(..) if silent => Act::Silent,
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
                Letter::StoreFence => Act::StoreFence,
                Letter::Spawn(child) => Act::Spawn(*child),
                Letter::Silent => Act::Silent,
            };
            let stands_for = vec![number];
            merged.push(SetEdge { source: edge.source, target: edge.target, act, stands_for, fence: None });
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
                    let guard = edge.guard.iter().copied().filter(|&(_, set)| set != SetId::ALL).collect();
                    Act::Locked { guard, effect: edge.effect.clone() }
                }
            };
            let Looking { source, target, stands_for, .. } = edge;
            SetEdge { source, target, act, stands_for, fence: None }
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
