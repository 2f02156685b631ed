//! Facts about the program that are computed before the search: edges by target, the writers of each value,
//! and two invariants from forward data flow.
//!
//! *Invariants used for pruning*, both over the paths of a single process and therefore true in every run:
//! 1. [`ProcessKind::pending`]: which values can be the newest pending own store to a cell at a state;
//! 2. [`Held`]: if only one process ever writes a cell, which values memory can hold there at each of its
//!    states.

use super::process::ProcessTable;
use crate::edges::{Act, Merging, Places, SetEdge};
use crate::facts::{Held, Sole, adapt, is_at_most, writes};
use crate::spawns::Spawning;
use crate::start::roots;
use crate::values::{SetId, ValueSets};
use palisade_automata::{Edge, Letter, Merged, Population, StateId, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_memory::Model;
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// One automaton, indexed for backward steps.
#[derive(Clone, Debug)]
pub(crate) struct ProcessKind {
    /// The number of processes that are followed.
    pub population: Population,
    /// How many of them are there at the start.
    pub initially: Population,
    /// The edges, one for each value.
    pub single: Rc<[Edge]>,
    /// What properties see of each state.
    looks: IdVec<StateId, u32>,
    /// The cells that only this process writes, with the values that they can have at each state.
    held: FxHashMap<CellId, IdVec<StateId, Vec<ValueId>>>,
    /// The edges with sets of values.
    pub edges: Vec<SetEdge>,
    /// The edges that start processes.
    pub spawns: Vec<usize>,
    /// For each state, the edges that lead to it, without silent and idle ones.
    pub incoming: IdVec<StateId, Vec<usize>>,
    /// For each state, the states from which silent edges alone lead to it (itself included) and at which a
    /// process can start or arrive by a non-silent edge.
    pub roots: IdVec<StateId, Vec<StateId>>,
    /// Whether processes start here.
    pub is_start: IdVec<StateId, bool>,
    /// Whether every edge to the state is a read, or is a read or fence.
    pub only_reads: IdVec<StateId, bool>,
    pub only_reads_and_fences: IdVec<StateId, bool>,
    pending: FxHashMap<(StateId, CellId), SetId>,
    /// For each state, the filters of all sets that cells written by this process alone have there.
    pub filters: IdVec<StateId, u64>,
    /// Whether the invariants rule a state out.
    pub impossible: IdVec<StateId, bool>,
}

impl ProcessKind {
    /// The values that can be the newest pending own store to the cell at the state. `None` if there are
    /// none.
    pub fn pending(&self, state: StateId, cell: CellId) -> Option<SetId> {
        self.pending.get(&(state, cell)).copied()
    }

    /// Everything that [`ProcessKind::pending`] allows.
    pub fn all_pending(&self) -> impl Iterator<Item = (StateId, CellId, SetId)> {
        self.pending.iter().map(|(&(state, cell), &set)| (state, cell, set))
    }

    /// Whether there may be this many processes of this kind.
    pub fn allows(&self, processes: usize) -> bool {
        is_at_most(processes, self.population)
    }

    /// Whether there may be this many processes of this kind at the start.
    pub fn allows_initially(&self, processes: usize) -> bool {
        is_at_most(processes, self.initially)
    }
}

/// All facts about the program.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub kinds: Vec<ProcessKind>,
    /// For each cell, the set of its initial values.
    pub initial: IdVec<CellId, SetId>,
    /// For each cell, its only writer, if there is one.
    pub sole: IdVec<CellId, Sole>,
    pub held: IdVec<CellId, Held>,
    /// The filters of the sets that cells always have.
    pub always: u64,
    /// For each cell, the edges (value, kind, edge) that leave a value in memory.
    pub writers: IdVec<CellId, Vec<(ValueId, u32, usize)>>,
    pub cells: usize,
    /// The sets of values that occur.
    pub sets: Rc<ValueSets>,
    /// The processes that occur in elements.
    pub processes: Rc<ProcessTable>,
    /// Cells whose values are not merged into sets.
    pub apart: FxHashSet<CellId>,
    /// Values that processes which are not followed may write, at any time. See [`super::tracked`].
    pub free: FxHashSet<(CellId, ValueId)>,
    /// The same by cell.
    pub free_sets: IdVec<CellId, Option<SetId>>,
    /// Where some processes are absent, the values that the others and initial memory can give to each cell. See
    /// [`super::lifted`].
    pub present: Option<IdVec<CellId, SetId>>,
    /// Whether every initial element is real.
    pub exact: bool,
}

impl Setup {
    /// The facts with sets of all values.
    #[cfg(test)]
    pub fn new(merged: &Merged, model: Model) -> Setup {
        let sets = ValueSets::new(merged.automata.values.iter().map(IdVec::len));
        Setup::with_sets(merged, model, Spawning::Anytime, FxHashSet::default(), sets)
    }

    /// The facts. Values of the cells in `apart` are not merged into sets.
    pub fn with_sets(
        merged: &Merged,
        model: Model,
        spawning: Spawning,
        apart: FxHashSet<CellId>,
        sets: ValueSets,
    ) -> Setup {
        let automata = &merged.automata;
        let free = FxHashSet::default();
        let merging = Merging { sets: &sets, apart: &apart, free: &free };
        let mut kinds: Vec<ProcessKind> = automata
            .automata
            .iter()
            .zip(&merged.looks)
            .map(|(automaton, looks)| {
                let edges = automaton.edges.iter().map(|edge| adapt(edge, model)).collect();
                let starts = automaton.starts.iter().map(|start| start.0).collect();
                kind((automaton.population, automaton.initially), edges, starts, looks)
            })
            .collect();
        let edges = || kinds.iter().map(|kind| (kind.population, &kind.single[..]));
        let held = |cell, writer: usize| held(&kinds[writer], cell, automata.initial[cell]);
        let sole = |cell| Sole::new(automata, cell, edges(), |writer| held(cell, writer));
        let sole: IdVec<CellId, Sole> = automata.values.ids().map(sole).collect();
        for (cell, sole) in sole.iter_enumerated() {
            if let Sole::Writer(writer, values) = sole {
                kinds[*writer as usize].held.insert(cell, values.clone());
            }
        }
        let mut free_starts = FxHashSet::default();
        for kind in &mut kinds {
            let mut values: FxHashMap<(StateId, CellId), Vec<ValueId>> = FxHashMap::default();
            for (state, cell, value) in pending(kind) {
                values.entry((state, cell)).or_default().push(value);
            }
            let set = |((state, cell), values)| Some(((state, cell), sets.of(cell, values)?));
            kind.pending = values.into_iter().filter_map(set).collect();
            let pending: FxHashSet<StateId> = kind.pending.keys().map(|&(state, _)| state).collect();
            let mut single = kind.single.to_vec();
            spawning.apply(&mut single, |state| pending.contains(&state), &mut free_starts);
            kind.single = single.into();
            kind.merge(&merging);
        }
        free_starts.iter().for_each(|&kind| kinds[kind as usize].initially = Population::Any);
        let holds = |cell: CellId| Held::new(&sole[cell], cell, &sets);
        let held: IdVec<CellId, Held> = automata.values.ids().map(holds).collect();
        let mut always = 0;
        for (cell, held) in held.iter_enumerated() {
            match held {
                Held::Anything => {}
                Held::Always(set) => always |= sets.filter(cell, *set),
                Held::ByWriter(kind, by_state) => {
                    let kind = &mut kinds[*kind as usize];
                    for (state, set) in by_state.iter_enumerated() {
                        match set {
                            Some(set) => kind.filters[state] |= sets.filter(cell, *set),
                            None => kind.impossible[state] = true,
                        }
                    }
                }
            }
        }
        let initial = |cell: CellId| {
            let values = (0..automata.initial[cell]).map(ValueId::from_index);
            sets.of(cell, values).expect("a cell has an initial value")
        };
        Setup {
            held,
            always,
            initial: automata.values.ids().map(initial).collect(),
            writers: writers(&kinds, automata.values.len()),
            kinds,
            sole,
            cells: automata.values.len(),
            sets: Rc::new(sets),
            processes: Rc::default(),
            apart,
            free,
            free_sets: vec![None; automata.values.len()].into(),
            present: None,
            exact: free_starts.is_empty(),
        }
    }

    /// Whether some processes are started by others.
    pub fn spawns(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.spawns.is_empty())
    }

    /// The same program with at most this many processes of each kind. The others do nothing.
    pub fn only(&self, present: &[u32]) -> Setup {
        let mut setup = self.clone();
        let mut values: IdVec<CellId, Vec<ValueId>> =
            self.initial.iter_enumerated().map(|(cell, &set)| self.sets.values(cell, set)).collect();
        for (kind, &present) in setup.kinds.iter_mut().zip(present) {
            kind.population = Population::Fixed(present);
            if present > 0 {
                let written = kind.single.iter().flat_map(|edge| writes(&edge.letter));
                written.for_each(|(cell, value)| values[cell].push(value));
            }
        }
        let set = |(cell, values): (CellId, &Vec<ValueId>)| {
            self.sets.of(cell, values.iter().copied()).expect("a cell has an initial value")
        };
        setup.present = Some(values.iter_enumerated().map(set).collect());
        setup
    }

    /// The same program with only this many processes of each kind followed.
    pub fn following(&self, tracked: &[u32]) -> Setup {
        let mut setup = self.clone();
        for (kind, &tracked) in setup.kinds.iter_mut().zip(tracked) {
            let all = match kind.population {
                Population::Fixed(all) => all <= tracked,
                Population::Any => false,
            };
            if !all {
                kind.population = Population::Fixed(tracked);
                setup.free.extend(kind.single.iter().flat_map(|edge| writes(&edge.letter)));
            }
        }
        let merging = Merging { sets: &setup.sets, apart: &setup.apart, free: &setup.free };
        setup.kinds.iter_mut().for_each(|kind| kind.merge(&merging));
        setup.writers = writers(&setup.kinds, setup.cells);
        let mut free: IdVec<CellId, Vec<ValueId>> = vec![Vec::new(); setup.cells].into();
        setup.free.iter().for_each(|&(cell, value)| free[cell].push(value));
        let set = |(cell, values): (CellId, &Vec<ValueId>)| setup.sets.of(cell, values.iter().copied());
        setup.free_sets = free.iter_enumerated().map(set).collect();
        setup
    }
}

/// For each cell, the edges that leave a value in it.
fn writers(kinds: &[ProcessKind], cells: usize) -> IdVec<CellId, Vec<(ValueId, u32, usize)>> {
    let mut writers: IdVec<CellId, Vec<_>> = vec![Vec::new(); cells].into();
    for (index, kind) in kinds.iter().enumerate() {
        for (number, edge) in kind.edges.iter().enumerate() {
            limits::checkpoint();
            match &edge.act {
                Act::Write(cell, value) => writers[*cell].push((*value, index as u32, number)),
                Act::Locked { effect, .. } => {
                    effect
                        .iter()
                        .for_each(|&(cell, value)| writers[cell].push((value, index as u32, number)));
                }
                Act::Silent | Act::Spawn(_) | Act::Read(..) | Act::Fence | Act::StoreFence => {}
            }
        }
    }
    writers
}

fn kind(
    (population, initially): (Population, Population),
    single: Vec<Edge>,
    starts: Vec<StateId>,
    looks: &IdVec<StateId, u32>,
) -> ProcessKind {
    let mut is_start: IdVec<StateId, bool> = vec![false; looks.len()].into();
    starts.into_iter().for_each(|state| is_start[state] = true);
    ProcessKind {
        population,
        initially,
        single: single.into(),
        looks: looks.clone(),
        held: FxHashMap::default(),
        edges: Vec::new(),
        spawns: Vec::new(),
        incoming: IdVec::new(),
        roots: IdVec::new(),
        is_start,
        only_reads: IdVec::new(),
        only_reads_and_fences: IdVec::new(),
        pending: FxHashMap::default(),
        filters: vec![0; looks.len()].into(),
        impossible: vec![false; looks.len()].into(),
    }
}

impl ProcessKind {
    /// Merges the edges, and indexes them.
    fn merge(&mut self, merging: &Merging<'_>) {
        let states = self.is_start.len();
        let queued = FxHashSet::default();
        let places =
            Places { is_start: &self.is_start, looks: &self.looks, held: &self.held, queued: &queued };
        let edges = merging.merge(&self.single, &places);
        let mut incoming: IdVec<StateId, Vec<usize>> = vec![Vec::new(); states].into();
        let mut silent: IdVec<StateId, Vec<StateId>> = vec![Vec::new(); states].into();
        for (number, edge) in edges.iter().enumerate() {
            match edge.act {
                Act::Silent => silent[edge.target].push(edge.source),
                _ if edge.is_idle() => {}
                _ => incoming[edge.target].push(number),
            }
        }
        let matters = |state: StateId| self.is_start[state] || !incoming[state].is_empty();
        self.roots = incoming.ids().map(|state| roots(state, &silent, matters)).collect();
        self.only_reads = vec![true; states].into();
        self.only_reads_and_fences = vec![true; states].into();
        for edge in &edges {
            let (read, fence) = match edge.act {
                Act::Silent => continue,
                Act::Read(..) => (true, true),
                Act::Fence => (false, true),
                Act::Spawn(_) | Act::Write(..) | Act::StoreFence | Act::Locked { .. } => (false, false),
            };
            self.only_reads[edge.target] &= read;
            self.only_reads_and_fences[edge.target] &= fence;
        }
        self.spawns = (0..edges.len()).filter(|&number| matches!(edges[number].act, Act::Spawn(_))).collect();
        self.edges = edges;
        self.incoming = incoming;
    }

    /// The edges of each state, one for each value.
    pub fn outgoing(&self) -> IdVec<StateId, Vec<usize>> {
        let mut outgoing: IdVec<StateId, Vec<usize>> = vec![Vec::new(); self.is_start.len()].into();
        for (number, edge) in self.single.iter().enumerate() {
            outgoing[edge.source].push(number);
        }
        outgoing
    }
}

/// Forward data flow: the newest pending own stores. A write sets them. Fences and locked instructions clear
/// them. A read of another value shows that no such store is pending.
fn pending(kind: &ProcessKind) -> FxHashSet<(StateId, CellId, ValueId)> {
    let outgoing = kind.outgoing();
    let mut found = FxHashSet::default();
    let mut work = Vec::new();
    for edge in &*kind.single {
        if let Letter::Write(cell, value) = edge.letter {
            work.push((edge.target, cell, value));
        }
    }
    while let Some((state, cell, value)) = work.pop() {
        limits::checkpoint();
        if !found.insert((state, cell, value)) {
            continue;
        }
        for &number in &outgoing[state] {
            let edge = &kind.single[number];
            let survives = match edge.letter {
                Letter::Silent | Letter::Spawn(_) | Letter::StoreFence => true,
                Letter::Read(read, seen) => read != cell || seen == value,
                Letter::Write(written, _) => written != cell,
                Letter::Fence | Letter::Locked { .. } => false,
            };
            if survives {
                work.push((edge.target, cell, value));
            }
        }
    }
    found
}

/// Forward data flow: the values memory holds in a cell at each state of its only writer.
fn held(kind: &ProcessKind, cell: CellId, initial: usize) -> IdVec<StateId, Vec<ValueId>> {
    let mut values: IdVec<StateId, Vec<ValueId>> = vec![Vec::new(); kind.is_start.len()].into();
    let mut work: Vec<(StateId, ValueId)> = kind
        .is_start
        .iter_enumerated()
        .filter(|(_, is_start)| **is_start)
        .flat_map(|(state, _)| (0..initial).map(move |value| (state, ValueId::from_index(value))))
        .collect();
    let outgoing = kind.outgoing();
    while let Some((state, value)) = work.pop() {
        limits::checkpoint();
        if values[state].contains(&value) {
            continue;
        }
        values[state].push(value);
        for &number in &outgoing[state] {
            let edge = &kind.single[number];
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
