//! The automata under PSO as the checker sees them, and a forward analysis of single processes.
//!
//! For each state, the analysis computes
//! - which values can be in a process's queues there ([`ProcessKind::queued`]);
//! - which values can be newest in them ([`ProcessKind::newest`]);
//! - which own store can be the newest one for its cell and in the buffer after the process's pointer
//!   ([`ProcessKind::may_be_own`]), with a store-store fence since ([`ProcessKind::ahead`]);
//! - which values the end of the buffer can hold in a cell with one writer ([`Flow::held`]).
//!
//! All of it follows single paths, so it holds in every run.

use crate::bad::At;
use crate::flow::Limit;
use palisade_automata::{Automata, Automaton, Hold, Letter, Population};
use palisade_base::{Id, limits};
use palisade_memory::Interlocked;
use rustc_hash::{FxHashMap, FxHashSet};

/// The action of an edge.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    Silent,
    Read(u32, u32),
    Store(u32, u32),
    StoreFence,
    Fence,
    /// It waits for the queues of all cells, or of this one.
    Locked {
        guard: Vec<(u32, u32)>,
        effect: Vec<(u32, u32)>,
        only: Option<u32>,
    },
}

impl Act {
    /// Whether the queue of a cell is empty when it happens.
    pub fn empties(&self, cell: u32) -> bool {
        match self {
            Act::StoreFence | Act::Fence => true,
            Act::Locked { only, .. } => only.is_none_or(|only| only == cell),
            Act::Silent | Act::Read(..) | Act::Store(..) => false,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub source: u32,
    pub target: u32,
    pub act: Act,
}

pub(crate) struct ProcessKind {
    pub population: Limit,
    pub edges: Vec<Edge>,
    /// The edges to each state that are not silent.
    pub into: Vec<Vec<usize>>,
    pub is_start: Vec<bool>,
    /// For each state, the states at which processes arrive and from which silent edges lead to it, possibly
    /// including the state itself.
    pub before: Vec<Vec<u32>>,
    pub newest: FxHashSet<(u32, u32, u32)>,
    pub queued: FxHashSet<(u32, u32, u32)>,
    pub ahead: FxHashSet<(u32, u32, u32)>,
    queued_cells: FxHashSet<(u32, u32)>,
    /// The values it stores.
    pub stored: FxHashSet<(u32, u32)>,
    stored_cells: FxHashSet<u32>,
}

impl ProcessKind {
    /// Whether a process of this kind ever stores to a cell through its queue.
    pub fn stores_to(&self, cell: u32) -> bool {
        self.stored_cells.contains(&cell)
    }

    /// Whether a store can be the newest own one of its cell and in the buffer after the pointer. It may have
    /// taken effect as soon as it was executed.
    pub fn may_be_own(&self, state: u32, cell: u32, value: u32) -> bool {
        let fact = (state, cell, value);
        self.newest.contains(&fact) || self.ahead.contains(&fact)
    }

    /// Whether something can be in a queue at a state.
    pub fn may_queue(&self, state: Option<u32>, cell: u32) -> bool {
        match state {
            Some(state) => self.queued_cells.contains(&(state, cell)),
            None => self.stores_to(cell),
        }
    }
}

pub(crate) struct Flow {
    pub kinds: Vec<ProcessKind>,
    pub values: Vec<u32>,
    pub initial: Vec<u32>,
    /// For a cell with one writer: the writer, and the values that the end of the buffer holds at its states.
    pub held: FxHashMap<u32, (u32, Vec<FxHashSet<u32>>)>,
    constant: Vec<bool>,
}

impl Flow {
    pub fn new(automata: &Automata, interlocked: Interlocked) -> Flow {
        let values: Vec<u32> = automata.values.iter().map(|values| values.len() as u32).collect();
        let initial: Vec<u32> = automata.initial.iter().map(|&count| count as u32).collect();
        let kinds: Vec<ProcessKind> =
            automata.automata.iter().map(|automaton| kind(automaton, interlocked)).collect();
        let mut held = FxHashMap::default();
        let mut constant = Vec::new();
        for cell in 0..values.len() as u32 {
            let writes =
                |kind: &&ProcessKind| kind.edges.iter().any(|edge| stored(&edge.act, cell).is_some());
            let writers: Vec<u32> =
                (0..kinds.len()).filter(|&k| writes(&&kinds[k])).map(|k| k as u32).collect();
            constant.push(writers.is_empty() && initial[cell as usize] == 1);
            if let [writer] = writers[..]
                && kinds[writer as usize].population == Some(1)
            {
                held.insert(cell, (writer, holds(&kinds[writer as usize], cell, initial[cell as usize])));
            }
        }
        Flow { kinds, values, initial, held, constant }
    }

    /// Whether the cell is never written and has one initial value.
    pub fn is_constant(&self, cell: u32) -> bool {
        self.constant[cell as usize]
    }

    pub fn before(&self, (kind, state): At) -> &[u32] {
        &self.kinds[kind as usize].before[state as usize]
    }
}

/// The value that an edge leaves in a cell, now or later.
fn stored(act: &Act, cell: u32) -> Option<u32> {
    match act {
        Act::Store(stored, value) if *stored == cell => Some(*value),
        Act::Locked { effect, .. } => {
            effect.iter().find(|(written, _)| *written == cell).map(|&(_, value)| value)
        }
        _ => None,
    }
}

fn kind(automaton: &Automaton, interlocked: Interlocked) -> ProcessKind {
    let states = automaton.states.len();
    let edges: Vec<Edge> = automaton
        .edges
        .iter()
        .map(|edge| {
            let pairs = |list: &[(palisade_program::running::CellId, palisade_automata::ValueId)]| {
                list.iter().map(|(cell, value)| (cell.0, value.0)).collect::<Vec<_>>()
            };
            let act = match &edge.letter {
                Letter::Silent => Act::Silent,
                Letter::Read(cell, value) => Act::Read(cell.0, value.0),
                Letter::Write(cell, value) => Act::Store(cell.0, value.0),
                Letter::Fence => Act::Fence,
                Letter::StoreFence => Act::StoreFence,
                Letter::Locked { guard, effect } => {
                    // A single instruction, not an atomic block.
                    let single = automaton.states[edge.source].hold == Hold::Outside;
                    let own = guard.first().map(|(cell, _)| cell.0);
                    let only = own.filter(|_| single && interlocked == Interlocked::OwnAddress);
                    Act::Locked { guard: pairs(guard), effect: pairs(effect), only }
                }
            };
            Edge { source: edge.source.0, target: edge.target.0, act }
        })
        .collect();
    let mut is_start = vec![false; states];
    automaton.starts.iter().for_each(|start| is_start[start.0.index()] = true);
    let mut into = vec![Vec::new(); states];
    let mut silent = vec![Vec::new(); states];
    for (number, edge) in edges.iter().enumerate() {
        match edge.act {
            Act::Silent => silent[edge.target as usize].push(edge.source),
            _ => into[edge.target as usize].push(number),
        }
    }
    let before = (0..states as u32).map(|state| {
        let mut seen = vec![state];
        let mut next = 0;
        while let Some(&at) = seen.get(next) {
            let fresh: Vec<u32> = silent[at as usize].iter().copied().filter(|s| !seen.contains(s)).collect();
            seen.extend(fresh);
            next += 1;
        }
        seen.retain(|&state| is_start[state as usize] || !into[state as usize].is_empty());
        seen
    });
    let population = match automaton.population {
        Population::Fixed(count) => Some(count),
        Population::Any => None,
    };
    let (newest, ahead) = newest_stores(&edges);
    let queued = queued_stores(&edges);
    let stored = edges.iter().filter_map(|edge| match edge.act {
        Act::Store(cell, value) => Some((cell, value)),
        _ => None,
    });
    let stored: FxHashSet<(u32, u32)> = stored.collect();
    ProcessKind {
        population,
        before: before.collect(),
        is_start,
        into,
        newest,
        ahead,
        queued_cells: queued.iter().map(|&(state, cell, _)| (state, cell)).collect(),
        queued,
        stored_cells: stored.iter().map(|&(cell, _)| cell).collect(),
        stored,
        edges,
    }
}

type Facts = FxHashSet<(u32, u32, u32)>;

/// The newest stores by cell: those that may still be in queues, and those that are in the buffer after the
/// pointer since a store-store fence.
fn newest_stores(edges: &[Edge]) -> (Facts, Facts) {
    let mut seen: FxHashSet<(u32, u32, u32, bool)> = FxHashSet::default();
    let mut open: Vec<(u32, u32, u32, bool)> = Vec::new();
    for edge in edges {
        if let Act::Store(cell, value) = edge.act {
            open.push((edge.target, cell, value, false));
        }
    }
    while let Some(fact) = open.pop() {
        limits::checkpoint();
        if !seen.insert(fact) {
            continue;
        }
        let (state, cell, value, ahead) = fact;
        for edge in edges.iter().filter(|edge| edge.source == state) {
            let stays = match &edge.act {
                Act::Silent => Some(ahead),
                Act::Read(read, found) => (*read != cell || *found == value).then_some(ahead),
                Act::Store(stored, _) => (*stored != cell).then_some(ahead),
                Act::StoreFence => Some(true),
                Act::Fence => None,
                // The pointer is at the end.
                Act::Locked { .. } => (!ahead && !edge.act.empties(cell)).then_some(false),
            };
            open.extend(stays.map(|ahead| (edge.target, cell, value, ahead)));
        }
    }
    let of = |which: bool| {
        let facts = seen.iter().filter(|fact| fact.3 == which);
        facts.map(|&(state, cell, value, _)| (state, cell, value)).collect()
    };
    (of(false), of(true))
}

/// All stores that can be in queues.
fn queued_stores(edges: &[Edge]) -> Facts {
    let mut seen = Facts::default();
    let mut open: Vec<(u32, u32, u32)> = Vec::new();
    for edge in edges {
        if let Act::Store(cell, value) = edge.act {
            open.push((edge.target, cell, value));
        }
    }
    while let Some((state, cell, value)) = open.pop() {
        limits::checkpoint();
        if seen.insert((state, cell, value)) {
            let on = edges.iter().filter(|edge| edge.source == state && !edge.act.empties(cell));
            open.extend(on.map(|edge| (edge.target, cell, value)));
        }
    }
    seen
}

/// The values that the end of the buffer holds in a cell at the states of its only writer. The search also
/// tracks the value stored last, which is what the writer reads.
fn holds(kind: &ProcessKind, cell: u32, initial: u32) -> Vec<FxHashSet<u32>> {
    let mut seen: FxHashSet<(u32, u32, u32)> = FxHashSet::default();
    let mut open: Vec<(u32, u32, u32)> = Vec::new();
    for state in (0..kind.is_start.len() as u32).filter(|&state| kind.is_start[state as usize]) {
        open.extend((0..initial).map(|value| (state, value, value)));
    }
    while let Some((state, last, held)) = open.pop() {
        limits::checkpoint();
        if !seen.insert((state, last, held)) {
            continue;
        }
        // Entries of the queue may take effect.
        open.push((state, last, last));
        for edge in kind.edges.iter().filter(|edge| edge.source == state) {
            let reads = match &edge.act {
                Act::Read(read, value) if *read == cell => Some(*value),
                Act::Locked { guard, .. } => guard.iter().find(|(c, _)| *c == cell).map(|&(_, value)| value),
                _ => None,
            };
            if reads.is_some_and(|value| value != last) {
                continue;
            }
            let (last, held) = match (&edge.act, stored(&edge.act, cell)) {
                (Act::Store(..), Some(new)) => (new, held),
                (_, Some(new)) => (new, new),
                (act, None) if act.empties(cell) => (last, last),
                _ => (last, held),
            };
            open.push((edge.target, last, held));
        }
    }
    let mut values = vec![FxHashSet::default(); kind.is_start.len()];
    for (state, _, held) in seen {
        values[state as usize].insert(held);
    }
    values
}
