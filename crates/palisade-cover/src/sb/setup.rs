//! Facts about the program that are computed before the search: edges by target, the kinds that store each
//! value, and invariants from a forward analysis.
//!
//! The forward analysis looks at single processes, with their pending stores as sets. Its results hold in
//! every run:
//! 1. [`ProcessKind::may_be_newest`]: which value can be the newest of a process's stores to a cell that have
//!    not taken effect (PSO);
//! 2. [`ProcessKind::may_be_queued`]: which values can be among these at all (PSO);
//! 3. [`ProcessKind::may_be_own`]: which value can be the newest own store that has taken effect, but not yet
//!    for the process itself; and [`ProcessKind::may_read_own`]: where a process may read it, which under PSO
//!    requires a store-store fence after it;
//! 4. [`Sole`]: if only one process ever writes a cell, which values the end of the buffer can hold there at
//!    each of its states.

use crate::facts::{Sole, adapt, writes};
use crate::start::roots;
use palisade_automata::{Automata, Automaton, Edge, Hold, Letter, Population, StateId, ValueId};
use palisade_base::{Id, IdVec, limits};
use palisade_memory::{Interlocked, Model};
use palisade_program::running::CellId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether letters of different processes are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    /// The letters of all processes are in one buffer.
    One,
    /// Each process's letters are ordered. Letters of different processes are not.
    PerProcess,
}

/// What a locked instruction waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// All pending stores of its process.
    All,
    /// Its pending stores to this cell, and those before a store-store fence.
    Cell(CellId),
}

impl Wait {
    /// Whether stores to the cell must have taken effect.
    pub fn is_for(self, cell: CellId) -> bool {
        match self {
            Wait::All => true,
            Wait::Cell(own) => own == cell,
        }
    }
}

type Facts = FxHashSet<(StateId, CellId, ValueId)>;

/// One automaton, indexed for backward steps.
#[derive(Debug)]
pub(crate) struct ProcessKind {
    pub population: Population,
    pub edges: Vec<Edge>,
    /// For each edge, what it waits for if it is locked.
    pub waits: Vec<Wait>,
    /// For each state, the edges that lead to it, without silent ones.
    pub incoming: IdVec<StateId, Vec<usize>>,
    /// For each state, the states from which silent edges alone lead to it (itself included) and at which a
    /// process can start or arrive by a non-silent edge.
    pub roots: IdVec<StateId, Vec<StateId>>,
    /// Whether processes start here.
    pub is_start: IdVec<StateId, bool>,
    /// The edges that store a value.
    pub stores: FxHashMap<(CellId, ValueId), Vec<usize>>,
    /// For each cell, whether some edge stores to it.
    pub stores_to: IdVec<CellId, bool>,
    newest: Facts,
    queued: Facts,
    queued_cells: FxHashSet<(StateId, CellId)>,
    own: Facts,
    fenced: Facts,
}

impl ProcessKind {
    pub fn may_be_newest(&self, state: StateId, cell: CellId, value: ValueId) -> bool {
        self.newest.contains(&(state, cell, value))
    }

    pub fn may_be_queued(&self, state: StateId, cell: CellId, value: ValueId) -> bool {
        self.queued.contains(&(state, cell, value))
    }

    /// Whether any store to the cell can be pending at the state, or at some state if the state is not known.
    pub fn may_have_queue(&self, state: Option<StateId>, cell: CellId) -> bool {
        state.map_or(self.stores_to[cell], |state| self.queued_cells.contains(&(state, cell)))
    }

    pub fn may_be_own(&self, state: StateId, cell: CellId, value: ValueId) -> bool {
        self.own.contains(&(state, cell, value))
    }

    pub fn may_read_own(&self, state: StateId, cell: CellId, value: ValueId) -> bool {
        self.fenced.contains(&(state, cell, value))
    }

    /// Everything that [`ProcessKind::may_be_own`] allows.
    pub fn own(&self) -> impl Iterator<Item = (StateId, CellId, ValueId)> {
        self.own.iter().copied()
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
#[derive(Debug)]
pub(crate) struct Setup {
    pub kinds: Vec<ProcessKind>,
    /// For each cell, the number of its values that are initial.
    pub initial: IdVec<CellId, usize>,
    pub sole: IdVec<CellId, Sole>,
    /// For each cell and value, the edges (kind, edge) that leave it in memory at once.
    pub writers: FxHashMap<(CellId, ValueId), Vec<(u32, usize)>>,
    /// For each cell and value, the kinds that put it into a queue (PSO).
    pub storing: FxHashMap<(CellId, ValueId), Vec<u32>>,
    pub cells: usize,
    pub model: Model,
    pub sharing: Sharing,
}

impl Setup {
    /// Letters are in one word only if `sharing` requests it, under TSO, with few processes.
    pub fn new(automata: &Automata, model: Model, interlocked: Interlocked, sharing: Sharing) -> Setup {
        let mut kinds: Vec<ProcessKind> =
            automata.automata.iter().map(|automaton| kind(automata, automaton, model, interlocked)).collect();
        let mut writers: FxHashMap<_, Vec<_>> = FxHashMap::default();
        let mut storing: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        for (index, kind) in kinds.iter_mut().enumerate() {
            for (number, edge) in kind.edges.iter().enumerate() {
                for written in writes(&edge.letter) {
                    limits::checkpoint();
                    let queued = model == Model::Pso && matches!(edge.letter, Letter::Write(..));
                    let kinds = storing.entry(written).or_default();
                    if !queued {
                        writers.entry(written).or_default().push((index as u32, number));
                    } else if kinds.last() != Some(&(index as u32)) {
                        kinds.push(index as u32);
                    }
                }
            }
            analyse(kind, model);
        }
        let edges = || kinds.iter().map(|kind| (kind.population, &kind.edges[..]));
        let held = |cell, writer: usize| held(&kinds[writer], cell, automata.initial[cell], model);
        let sole = |cell| Sole::new(automata, cell, edges(), |writer| held(cell, writer));
        let sole = automata.values.ids().map(sole).collect();
        let one = model == Model::Tso && sharing == Sharing::One && are_few(&kinds);
        let sharing = if one { Sharing::One } else { Sharing::PerProcess };
        let cells = automata.values.len();
        Setup { kinds, initial: automata.initial.clone(), sole, writers, storing, cells, model, sharing }
    }
}

/// Whether there are few enough processes for their letters to be in one word.
fn are_few(kinds: &[ProcessKind]) -> bool {
    let processes = kinds.iter().try_fold(0u32, |sum, kind| match kind.population {
        Population::Fixed(number) => sum.checked_add(number),
        Population::Any => None,
    });
    processes.is_some_and(|processes| processes <= u8::MAX.into())
}

fn kind(automata: &Automata, automaton: &Automaton, model: Model, interlocked: Interlocked) -> ProcessKind {
    let states = automaton.states.len();
    let edges: Vec<Edge> = automaton.edges.iter().map(|edge| adapt(edge, model)).collect();
    let mut incoming: IdVec<StateId, Vec<usize>> = vec![Vec::new(); states].into();
    let mut silent: IdVec<StateId, Vec<StateId>> = vec![Vec::new(); states].into();
    let mut stores: FxHashMap<_, Vec<usize>> = FxHashMap::default();
    let mut stores_to: IdVec<CellId, bool> = vec![false; automata.values.len()].into();
    for (number, edge) in edges.iter().enumerate() {
        match edge.letter {
            Letter::Silent => silent[edge.target].push(edge.source),
            _ => incoming[edge.target].push(number),
        }
        if let Letter::Write(cell, value) = edge.letter {
            stores.entry((cell, value)).or_default().push(number);
            stores_to[cell] = true;
        }
    }
    let mut is_start: IdVec<StateId, bool> = vec![false; states].into();
    automaton.starts.iter().for_each(|start| is_start[start.0] = true);
    let roots = incoming
        .ids()
        .map(|state| roots(state, &silent, |s| is_start[s] || !incoming[s].is_empty()))
        .collect();
    // An atomic block always waits for the whole buffer.
    let waits = edges.iter().map(|edge| match &edge.letter {
        Letter::Locked { guard, .. }
            if model == Model::Pso
                && interlocked == Interlocked::OwnAddress
                && automaton.states[edge.source].hold == Hold::Outside =>
        {
            Wait::Cell(guard.first().expect("a locked instruction reads its cell").0)
        }
        _ => Wait::All,
    });
    ProcessKind {
        population: automaton.population,
        waits: waits.collect(),
        roots,
        is_start,
        incoming,
        stores,
        stores_to,
        edges,
        newest: Facts::default(),
        queued: Facts::default(),
        queued_cells: FxHashSet::default(),
        own: Facts::default(),
        fenced: Facts::default(),
    }
}

/// Where a process's newest store to a cell can be, as long as the process's pointer has not passed it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    /// In its queue, or in the buffer ahead of the pointer.
    Free,
    /// In the buffer ahead of the pointer.
    Ahead,
}

/// Forward data flow: the newest pending stores, and all pending stores.
fn analyse(kind: &mut ProcessKind, model: Model) {
    let mut outgoing: IdVec<StateId, Vec<usize>> = vec![Vec::new(); kind.incoming.len()].into();
    for (number, edge) in kind.edges.iter().enumerate() {
        outgoing[edge.source].push(number);
    }
    let first = if model == Model::Pso { Stage::Free } else { Stage::Ahead };
    let mut newest = FxHashSet::default();
    let mut work = Vec::new();
    let mut queued = Vec::new();
    for edge in &kind.edges {
        if let Letter::Write(cell, value) = edge.letter {
            work.push((edge.target, cell, value, first));
            queued.push((edge.target, cell, value));
        }
    }
    while let Some((state, cell, value, stage)) = work.pop() {
        limits::checkpoint();
        if !newest.insert((state, cell, value, stage)) {
            continue;
        }
        for &number in &outgoing[state] {
            let edge = &kind.edges[number];
            let next = match edge.letter {
                Letter::Silent => Some(stage),
                Letter::Read(read, seen) => (read != cell || seen == value).then_some(stage),
                Letter::Write(written, _) => (written != cell).then_some(stage),
                Letter::StoreFence => Some(Stage::Ahead),
                Letter::Fence => None,
                Letter::Locked { .. } => {
                    (stage == Stage::Free && !kind.waits[number].is_for(cell)).then_some(stage)
                }
            };
            work.extend(next.map(|stage| (edge.target, cell, value, stage)));
        }
    }
    for (state, cell, value, stage) in newest {
        kind.own.insert((state, cell, value));
        match stage {
            Stage::Free => kind.newest.insert((state, cell, value)),
            Stage::Ahead => kind.fenced.insert((state, cell, value)),
        };
    }
    while model == Model::Pso
        && let Some((state, cell, value)) = queued.pop()
    {
        if !kind.queued.insert((state, cell, value)) {
            continue;
        }
        kind.queued_cells.insert((state, cell));
        for &number in &outgoing[state] {
            let edge = &kind.edges[number];
            let stays = match edge.letter {
                Letter::Silent | Letter::Read(..) | Letter::Write(..) => true,
                Letter::StoreFence | Letter::Fence => false,
                Letter::Locked { .. } => !kind.waits[number].is_for(cell),
            };
            if stays {
                queued.push((edge.target, cell, value));
            }
        }
    }
}

/// Forward data flow: the values the end of the buffer holds in a cell at each state of its only writer. The
/// writer always reads the value it stored last. Under PSO the end may lag behind that store until the writer
/// waits for it.
fn held(kind: &ProcessKind, cell: CellId, initial: usize, model: Model) -> IdVec<StateId, Vec<ValueId>> {
    let mut outgoing: IdVec<StateId, Vec<usize>> = vec![Vec::new(); kind.incoming.len()].into();
    for (number, edge) in kind.edges.iter().enumerate() {
        outgoing[edge.source].push(number);
    }
    // State, value stored last, value held.
    let mut work: Vec<(StateId, ValueId, ValueId)> = kind
        .is_start
        .iter_enumerated()
        .filter(|(_, is_start)| **is_start)
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
        for &number in &outgoing[state] {
            let edge = &kind.edges[number];
            let of_cell = |list: &[(CellId, ValueId)]| list.iter().find(|(c, _)| *c == cell).map(|&(_, v)| v);
            let after = match &edge.letter {
                Letter::Write(written, new) if *written == cell => {
                    Some((*new, if model == Model::Pso { held } else { *new }))
                }
                Letter::Read(read, seen) if *read == cell => (*seen == last).then_some((last, held)),
                Letter::Fence | Letter::StoreFence => Some((last, last)),
                Letter::Locked { guard, effect } => match (of_cell(guard), of_cell(effect)) {
                    (Some(seen), _) if seen != last => None,
                    (_, Some(new)) => Some((new, new)),
                    _ if kind.waits[number].is_for(cell) => Some((last, last)),
                    _ => Some((last, held)),
                },
                _ => Some((last, held)),
            };
            work.extend(after.map(|(last, held)| (edge.target, last, held)));
        }
    }
    let mut values: IdVec<StateId, Vec<ValueId>> = vec![Vec::new(); kind.incoming.len()].into();
    for (state, _, held) in seen {
        limits::checkpoint();
        if !values[state].contains(&held) {
            values[state].push(held);
        }
    }
    values.iter_mut().for_each(|values| values.sort_unstable());
    values
}
