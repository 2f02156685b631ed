//! Facts about the program that are computed before the search: edges by target, the writers of each value,
//! and two invariants from forward data flow.
//!
//! *Invariants used for pruning*, both over the paths of a single process and therefore true in every run:
//! 1. [`ProcessKind::may_be_pending`]: which values can be the newest pending own store to a cell at a state;
//! 2. [`Sole`]: if only one process ever writes a cell, which values memory can hold there at each of its
//!    states.

use crate::facts::{Sole, adapt, writes};
use crate::start::roots;
use crate::symbol::Symbol;
use palisade_automata::{Automata, Edge, Letter, Population, StateId, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};

/// One automaton, indexed for backward steps.
#[derive(Clone, Debug)]
pub(crate) struct ProcessKind {
    /// The number of processes that are followed.
    pub population: Population,
    pub edges: Vec<Edge>,
    /// For each state, the edges that lead to it, without silent ones.
    pub incoming: IdVec<StateId, Vec<usize>>,
    /// For each state, the states from which silent edges alone lead to it (itself included) and at which a
    /// process can start or arrive by a non-silent edge.
    pub roots: IdVec<StateId, Vec<StateId>>,
    /// Whether processes start here.
    pub is_start: IdVec<StateId, bool>,
    /// Whether every edge to the state is a read, or is a read or fence.
    pub only_reads: IdVec<StateId, bool>,
    pub only_reads_and_fences: IdVec<StateId, bool>,
    pending: FxHashSet<(StateId, Symbol)>,
}

impl ProcessKind {
    /// Whether the value can be the newest pending own store to the cell at the state.
    pub fn may_be_pending(&self, state: StateId, symbol: Symbol) -> bool {
        self.pending.contains(&(state, symbol))
    }

    /// Everything that [`ProcessKind::may_be_pending`] allows.
    pub fn pending(&self) -> impl Iterator<Item = (StateId, Symbol)> {
        self.pending.iter().copied()
    }

    /// Whether there may be this many processes of this kind.
    pub fn allows(&self, processes: usize) -> bool {
        match self.population {
            Population::Fixed(most) => processes <= most as usize,
            Population::Any => true,
        }
    }
}

/// All facts about the program.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub kinds: Vec<ProcessKind>,
    /// For each cell, the number of its values that are initial.
    pub initial: IdVec<CellId, usize>,
    pub sole: IdVec<CellId, Sole>,
    /// For each cell and value, the edges (kind, edge) that leave it in memory.
    pub writers: FxHashMap<(CellId, ValueId), Vec<(u32, usize)>>,
    pub cells: usize,
    /// Values that processes which are not followed may write, at any time. See [`super::tracked`].
    pub free: FxHashSet<(CellId, ValueId)>,
}

impl Setup {
    pub fn new(automata: &Automata, model: Model) -> Setup {
        let mut kinds: Vec<ProcessKind> = automata
            .automata
            .iter()
            .map(|automaton| {
                let edges = automaton.edges.iter().map(|edge| adapt(edge, model)).collect();
                let starts = automaton.starts.iter().map(|start| start.0).collect();
                kind(automaton.population, edges, starts, automaton.states.len())
            })
            .collect();
        let mut writers: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (index, kind) in kinds.iter().enumerate() {
            for (number, edge) in kind.edges.iter().enumerate() {
                for written in writes(&edge.letter) {
                    limits::checkpoint();
                    writers.entry(written).or_default().push((index as u32, number));
                }
            }
        }
        let edges = || kinds.iter().map(|kind| (kind.population, &kind.edges[..]));
        let held = |cell, writer: usize| held(&kinds[writer], cell, automata.initial[cell]);
        let sole = |cell| Sole::new(automata, cell, edges(), |writer| held(cell, writer));
        let sole = automata.values.ids().map(sole).collect();
        for kind in &mut kinds {
            kind.pending = pending(kind);
        }
        Setup {
            kinds,
            initial: automata.initial.clone(),
            sole,
            writers,
            cells: automata.values.len(),
            free: FxHashSet::default(),
        }
    }
}

fn kind(population: Population, edges: Vec<Edge>, starts: Vec<StateId>, states: usize) -> ProcessKind {
    let mut incoming: IdVec<StateId, Vec<usize>> = vec![Vec::new(); states].into();
    let mut silent: IdVec<StateId, Vec<StateId>> = vec![Vec::new(); states].into();
    for (number, edge) in edges.iter().enumerate() {
        match edge.letter {
            Letter::Silent => silent[edge.target].push(edge.source),
            _ => incoming[edge.target].push(number),
        }
    }
    let mut is_start: IdVec<StateId, bool> = vec![false; states].into();
    starts.into_iter().for_each(|state| is_start[state] = true);
    let roots = incoming
        .ids()
        .map(|state| roots(state, &silent, |s| is_start[s] || !incoming[s].is_empty()))
        .collect();
    let all = |state: StateId, test: fn(&Letter) -> bool| {
        incoming[state].iter().all(|&number| test(&edges[number].letter))
    };
    let only_reads = incoming.ids().map(|state| all(state, |l| matches!(l, Letter::Read(..)))).collect();
    let only_reads_and_fences =
        incoming.ids().map(|state| all(state, |l| matches!(l, Letter::Read(..) | Letter::Fence))).collect();
    ProcessKind {
        population,
        roots,
        is_start,
        only_reads,
        only_reads_and_fences,
        incoming,
        edges,
        pending: FxHashSet::default(),
    }
}

/// Forward data flow: the newest pending own stores. A write sets them. Fences and locked instructions clear
/// them. A read of another value shows that no such store is pending.
fn pending(kind: &ProcessKind) -> FxHashSet<(StateId, Symbol)> {
    let mut outgoing: IdVec<StateId, Vec<usize>> = vec![Vec::new(); kind.incoming.len()].into();
    for (number, edge) in kind.edges.iter().enumerate() {
        outgoing[edge.source].push(number);
    }
    let mut found = FxHashSet::default();
    let mut work = Vec::new();
    for edge in &kind.edges {
        if let Letter::Write(cell, value) = edge.letter {
            work.push((edge.target, Symbol::own(cell, value)));
        }
    }
    while let Some((state, symbol)) = work.pop() {
        limits::checkpoint();
        if !found.insert((state, symbol)) {
            continue;
        }
        for &number in &outgoing[state] {
            let edge = &kind.edges[number];
            let survives = match edge.letter {
                Letter::Silent | Letter::StoreFence => true,
                Letter::Read(cell, value) => cell != symbol.cell() || value == symbol.value(),
                Letter::Write(cell, _) => cell != symbol.cell(),
                Letter::Fence | Letter::Locked { .. } => false,
            };
            if survives {
                work.push((edge.target, symbol));
            }
        }
    }
    found
}

/// Forward data flow: the values memory holds in a cell at each state of its only writer.
fn held(kind: &ProcessKind, cell: CellId, initial: usize) -> IdVec<StateId, Vec<ValueId>> {
    let mut values: IdVec<StateId, Vec<ValueId>> = vec![Vec::new(); kind.incoming.len()].into();
    let mut work: Vec<(StateId, ValueId)> = kind
        .is_start
        .iter_enumerated()
        .filter(|(_, is_start)| **is_start)
        .flat_map(|(state, _)| (0..initial).map(move |value| (state, ValueId::from_index(value))))
        .collect();
    let mut outgoing: IdVec<StateId, Vec<usize>> = vec![Vec::new(); kind.incoming.len()].into();
    for (number, edge) in kind.edges.iter().enumerate() {
        outgoing[edge.source].push(number);
    }
    while let Some((state, value)) = work.pop() {
        limits::checkpoint();
        if values[state].contains(&value) {
            continue;
        }
        values[state].push(value);
        for &number in &outgoing[state] {
            let edge = &kind.edges[number];
            let of_cell = |list: &[(CellId, ValueId)]| list.iter().find(|(c, _)| *c == cell).map(|&(_, v)| v);
            let after = match &edge.letter {
                Letter::Write(written, new) if *written == cell => Some(*new),
                // The only writer reads what it wrote last.
                Letter::Read(read, seen) if *read == cell => (*seen == value).then_some(value),
                Letter::Locked { guard, effect } => match of_cell(guard) {
                    Some(seen) if seen != value => None,
                    _ => Some(of_cell(effect).unwrap_or(value)),
                },
                _ => Some(value),
            };
            if let Some(after) = after {
                work.push((edge.target, after));
            }
        }
    }
    values
}
