//! Facts about the program that are computed before the search: edges by target, the kinds that store to each
//! cell, and invariants from a forward analysis.
//!
//! The forward analysis looks at single processes, with their pending stores as sets. Its results hold in
//! every run:
//! 1. [`ProcessKind::newest`]: which values can be the newest of a process's stores to a cell that have not
//!    taken effect (PSO);
//! 2. [`ProcessKind::queued`]: which values can be among these at all (PSO);
//! 3. [`ProcessKind::own`]: which values can be the newest own store that has taken effect, but not yet for the
//!    process itself; and [`ProcessKind::readable`]: where a process may read it, which under PSO requires a
//!    store-store fence after it;
//! 4. [`Held`]: if only one process ever writes a cell, which values the end of the buffer can hold there at
//!    each of its states.
//!
//! Under PSO they are about the [rewritten](crate::edges) automata. Under TSO and SC they are about the automata
//! before that, since proofs for these models state them.

use super::flow::{Stage, Walk, held, newest_stores, queued};
use crate::edges::{Act, Merging, Places, SetEdge};
use crate::facts::{Held, Sole, adapt, is_at_most};
use crate::spawns::Spawning;
use crate::start::roots;
use crate::values::{SetId, ValueSets};
use palisade_automata::{Automaton, Edge, Hold, Letter, Merged, Population, StateId, ValueId};
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

/// For states and cells, a set of values. There is no entry without values.
type Facts = FxHashMap<(StateId, CellId), SetId>;

/// One automaton, indexed for backward steps.
#[derive(Debug)]
pub(crate) struct ProcessKind {
    pub population: Population,
    /// How many of them are there at the start.
    pub initially: Population,
    pub edges: Vec<SetEdge>,
    /// For each edge, what it waits for if it is locked.
    pub waits: Vec<Wait>,
    /// The edges that start processes.
    pub spawns: Vec<usize>,
    /// For each state, the edges that lead to it, without silent and idle ones.
    pub incoming: IdVec<StateId, Vec<usize>>,
    /// The same with idle ones.
    pub arriving: IdVec<StateId, Vec<usize>>,
    /// For each state, the states from which silent edges alone lead to it (itself included) and at which a
    /// process can start or arrive by a non-silent edge.
    pub roots: IdVec<StateId, Vec<StateId>>,
    /// Whether processes start here.
    pub is_start: IdVec<StateId, bool>,
    /// For each cell, the edges that store to it, with their values.
    pub stores: IdVec<CellId, Vec<(ValueId, usize)>>,
    /// The values that it stores.
    pub stored: IdVec<CellId, Option<SetId>>,
    newest: Facts,
    queued: Facts,
    own: Facts,
    readable: Facts,
}

impl ProcessKind {
    /// The values that can be the newest pending ones at the state. `None` if there are none.
    pub fn newest(&self, state: StateId, cell: CellId) -> Option<SetId> {
        self.newest.get(&(state, cell)).copied()
    }

    /// The values that can be pending at the state, or at some state if it is not known.
    pub fn queued(&self, state: Option<StateId>, cell: CellId) -> Option<SetId> {
        match state {
            Some(state) => self.queued.get(&(state, cell)).copied(),
            None => self.stored[cell],
        }
    }

    /// Whether any store to the cell can be pending at the state, or at some state if the state is not known.
    pub fn may_have_queue(&self, state: Option<StateId>, cell: CellId) -> bool {
        self.queued(state, cell).is_some()
    }

    pub fn own(&self, state: StateId, cell: CellId) -> Option<SetId> {
        self.own.get(&(state, cell)).copied()
    }

    pub fn readable(&self, state: StateId, cell: CellId) -> Option<SetId> {
        self.readable.get(&(state, cell)).copied()
    }

    /// Everything that [`ProcessKind::own`] allows.
    pub fn all_own(&self) -> impl Iterator<Item = (StateId, CellId, SetId)> {
        self.own.iter().map(|(&(state, cell), &set)| (state, cell, set))
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
#[derive(Debug)]
pub(crate) struct Setup {
    pub kinds: Vec<ProcessKind>,
    /// For each cell, the set of its initial values.
    pub initial: IdVec<CellId, SetId>,
    /// For each cell, its only writer, if there is one.
    pub sole: IdVec<CellId, Sole>,
    pub held: IdVec<CellId, Held>,
    /// For each cell, the edges (value, kind, edge) that leave a value there at once.
    pub writers: IdVec<CellId, Vec<(ValueId, u32, usize)>>,
    pub cells: usize,
    pub model: Model,
    pub sharing: Sharing,
    /// The sets of values that occur.
    pub sets: ValueSets,
    /// Cells whose values are not merged into sets.
    pub apart: FxHashSet<CellId>,
    /// Whether every initial element is real.
    pub exact: bool,
}

/// What a search depends on, besides the automata.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    pub model: Model,
    pub interlocked: Interlocked,
    /// Letters are in one word only if this requests it, under TSO, with few processes.
    pub sharing: Sharing,
    pub spawning: Spawning,
}

impl Setup {
    /// The facts. Values of the cells in `apart` are not merged into sets.
    pub fn new(merged: &Merged, machine: Machine, apart: FxHashSet<CellId>, sets: ValueSets) -> Setup {
        let model = machine.model;
        let automata = &merged.automata;
        let cells = automata.values.len();
        let free = FxHashSet::default();
        let merging = Merging { sets: &sets, apart: &apart, free: &free };
        let mut free_starts = FxHashSet::default();
        let given: Vec<Given> = automata
            .automata
            .iter()
            .map(|automaton| Given::new(automaton, machine, &sets, &mut free_starts))
            .collect();
        let edges = || given.iter().map(|given| (given.population, &given.single[..]));
        // What the only writer of a cell stored last, and what the end of the buffer holds.
        let mut last: Vec<FxHashMap<CellId, IdVec<StateId, Vec<ValueId>>>> =
            vec![FxHashMap::default(); given.len()];
        let mut sole: IdVec<CellId, Sole> = IdVec::new();
        for cell in automata.values.ids() {
            let mut stored = None;
            sole.push(Sole::new(automata, cell, edges(), |writer| {
                let of_writer = &given[writer];
                let held = held(&of_writer.walk(), cell, automata.initial[cell], model);
                stored = Some((writer, held.0));
                held.1
            }));
            if let Some((writer, values)) = stored {
                last[writer].insert(cell, values);
            }
        }
        let mut kinds = Vec::new();
        for ((given, looks), last) in given.iter().zip(&merged.looks).zip(&last) {
            let queued = match model {
                Model::Pso => queued(&given.walk()),
                Model::Sc | Model::Tso => FxHashSet::default(),
            };
            let queued: FxHashSet<(StateId, CellId)> =
                queued.into_iter().map(|(state, cell, _)| (state, cell)).collect();
            let places = Places { is_start: &given.is_start, looks, held: last, queued: &queued };
            let edges = merging.merge(&given.single, &places);
            kinds.push(kind(given, edges, model, &sets));
        }
        free_starts.iter().for_each(|&kind| kinds[kind as usize].initially = Population::Any);
        if model == Model::Pso {
            for (index, sole) in sole.iter_mut().enumerate() {
                let cell = CellId::from_index(index);
                if let Sole::Writer(writer, values) = sole {
                    let walk = kinds[*writer as usize].walk(&sets);
                    *values = held(&walk, cell, automata.initial[cell], model).1;
                }
            }
        }
        let mut writers: IdVec<CellId, Vec<_>> = vec![Vec::new(); cells].into();
        for (index, kind) in kinds.iter().enumerate() {
            for (number, edge) in kind.edges.iter().enumerate() {
                limits::checkpoint();
                match &edge.act {
                    Act::Write(cell, value) if model != Model::Pso => {
                        writers[*cell].push((*value, index as u32, number));
                    }
                    Act::Locked { effect, .. } => {
                        let mut add = |&(cell, value): &(CellId, ValueId)| {
                            writers[cell].push((value, index as u32, number));
                        };
                        effect.iter().for_each(&mut add);
                    }
                    _ => {}
                }
            }
        }
        let initial = |cell: CellId| {
            let values = (0..automata.initial[cell]).map(ValueId::from_index);
            sets.of(cell, values).expect("a cell has an initial value")
        };
        let one = model == Model::Tso && machine.sharing == Sharing::One && are_few(&kinds);
        Setup {
            initial: automata.values.ids().map(initial).collect(),
            held: automata.values.ids().map(|cell| Held::new(&sole[cell], cell, &sets)).collect(),
            kinds,
            sole,
            writers,
            cells,
            model,
            sharing: if one { Sharing::One } else { Sharing::PerProcess },
            sets,
            apart,
            exact: free_starts.is_empty(),
        }
    }

    /// The set with all values that are not possible added. Where values stay apart, that is done only if it
    /// gives all values.
    pub fn widen(&self, cell: CellId, set: SetId, possible: SetId) -> SetId {
        match self.apart.contains(&cell) {
            true if self.sets.is_subset(cell, possible, set) => SetId::ALL,
            true => set,
            false => self.sets.widen(cell, set, possible),
        }
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

/// An automaton before its edges are merged.
struct Given<'s> {
    population: Population,
    initially: Population,
    single: Vec<Edge>,
    /// The same edges, with sets of one value.
    edges: Vec<SetEdge>,
    waits: Vec<Wait>,
    is_start: IdVec<StateId, bool>,
    sets: &'s ValueSets,
}

impl<'s> Given<'s> {
    fn new(
        automaton: &Automaton,
        machine: Machine,
        sets: &'s ValueSets,
        free_starts: &mut FxHashSet<u32>,
    ) -> Given<'s> {
        let Machine { model, interlocked, spawning, .. } = machine;
        let mut single: Vec<Edge> = automaton.edges.iter().map(|edge| adapt(edge, model)).collect();
        let mut is_start: IdVec<StateId, bool> = vec![false; automaton.states.len()].into();
        automaton.starts.iter().for_each(|start| is_start[start.0] = true);
        // An atomic block always waits for the whole buffer.
        let waits = single.iter().map(|edge| match &edge.letter {
            Letter::Locked { guard, .. }
                if model == Model::Pso
                    && interlocked == Interlocked::OwnAddress
                    && automaton.states[edge.source].hold == Hold::Outside =>
            {
                Wait::Cell(guard.first().expect("a locked instruction reads its cell").0)
            }
            _ => Wait::All,
        });
        let waits: Vec<Wait> = waits.collect();
        let edges = SetEdge::of_each(&single, sets);
        let pending = newest_stores(&Walk::new(&edges, &waits, &is_start, sets), model);
        let pending: FxHashSet<StateId> = pending.into_iter().map(|(state, ..)| state).collect();
        spawning.apply(&mut single, |state| pending.contains(&state), free_starts);
        let edges = SetEdge::of_each(&single, sets);
        let (population, initially) = (automaton.population, automaton.initially);
        Given { population, initially, edges, single, waits, is_start, sets }
    }

    fn walk(&self) -> Walk<'_> {
        Walk::new(&self.edges, &self.waits, &self.is_start, self.sets)
    }
}

fn kind(given: &Given<'_>, edges: Vec<SetEdge>, model: Model, sets: &ValueSets) -> ProcessKind {
    let states = given.is_start.len();
    let cells = sets.cells();
    let mut incoming: IdVec<StateId, Vec<usize>> = vec![Vec::new(); states].into();
    let mut arriving = incoming.clone();
    let mut silent: IdVec<StateId, Vec<StateId>> = vec![Vec::new(); states].into();
    let mut stores: IdVec<CellId, Vec<(ValueId, usize)>> = vec![Vec::new(); cells].into();
    for (number, edge) in edges.iter().enumerate() {
        if edge.act == Act::Silent {
            silent[edge.target].push(edge.source);
            continue;
        }
        arriving[edge.target].push(number);
        if !edge.is_idle() {
            incoming[edge.target].push(number);
        }
        if let Act::Write(cell, value) = edge.act {
            stores[cell].push((value, number));
        }
    }
    let is_start = given.is_start.clone();
    let matters = |state: StateId| is_start[state] || !incoming[state].is_empty();
    // A store with a fence waits for everything.
    let wait = |edge: &SetEdge| edge.fence.map_or(given.waits[edge.stands_for[0]], |_| Wait::All);
    let mut kind = ProcessKind {
        population: given.population,
        initially: given.initially,
        spawns: (0..edges.len()).filter(|&number| matches!(edges[number].act, Act::Spawn(_))).collect(),
        waits: edges.iter().map(wait).collect(),
        roots: incoming.ids().map(|state| roots(state, &silent, matters)).collect(),
        stored: stores
            .iter_enumerated()
            .map(|(cell, stores)| sets.of(cell, stores.iter().map(|&(value, _)| value)))
            .collect(),
        stores,
        is_start,
        incoming,
        arriving,
        edges,
        newest: Facts::default(),
        queued: Facts::default(),
        own: Facts::default(),
        readable: Facts::default(),
    };
    let walk = match model {
        Model::Pso => kind.walk(sets),
        Model::Sc | Model::Tso => given.walk(),
    };
    let (mut newest, mut own, mut readable) = (Vec::new(), Vec::new(), Vec::new());
    for (state, cell, value, stage) in newest_stores(&walk, model) {
        own.push((state, cell, value));
        match stage {
            Stage::Free => newest.push((state, cell, value)),
            Stage::Ahead => readable.push((state, cell, value)),
        }
    }
    let queued = match model {
        Model::Pso => queued(&walk),
        Model::Sc | Model::Tso => FxHashSet::default(),
    };
    (kind.newest, kind.own, kind.readable, kind.queued) =
        (facts(newest, sets), facts(own, sets), facts(readable, sets), facts(queued, sets));
    kind
}

impl ProcessKind {
    /// The forward analysis of its edges.
    fn walk<'a>(&'a self, sets: &'a ValueSets) -> Walk<'a> {
        Walk::new(&self.edges, &self.waits, &self.is_start, sets)
    }
}

fn facts(list: impl IntoIterator<Item = (StateId, CellId, ValueId)>, sets: &ValueSets) -> Facts {
    let mut values: FxHashMap<(StateId, CellId), Vec<ValueId>> = FxHashMap::default();
    for (state, cell, value) in list {
        values.entry((state, cell)).or_default().push(value);
    }
    values
        .into_iter()
        .filter_map(|((state, cell), values)| Some(((state, cell), sets.of(cell, values)?)))
        .collect()
}
