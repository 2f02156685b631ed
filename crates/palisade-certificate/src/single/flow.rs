//! The automata under PSO as the checker sees them, and a forward analysis of single processes.
//!
//! For each class of states, the analysis computes
//! - which values can be in a process's queues there ([`ProcessKind::queued`]);
//! - which values can be newest in them ([`ProcessKind::newest`]);
//! - which own store can be the newest one for its cell and in the buffer after the process's pointer
//!   ([`ProcessKind::own`]), with a store-store fence since ([`ProcessKind::ahead`]);
//! - which values the end of the buffer can hold in a cell with one writer ([`Flow::held`]).
//!
//! All of it follows single paths, so it holds in every run. If the automata are [rewritten](super::rewrite),
//! it is about what they are then.

use super::rewrite::{Before, rewritten};
use crate::Refusal;
use crate::bad::At;
use crate::flow::{Limit, class_numbers, limit};
use crate::rewrite::Looks;
use crate::values::Values;
use palisade_automata::{Automata, Automaton, Hold, Letter, Starts};
use palisade_base::{Id, limits};
use palisade_memory::Interlocked;
use palisade_program::running::System;
use rustc_hash::{FxHashMap, FxHashSet};

/// The action of an edge.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    Silent,
    /// Starts a process of this automaton.
    Spawn(u32),
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
            Act::Silent | Act::Spawn(_) | Act::Read(..) | Act::Store(..) => false,
        }
    }

    /// Whether it changes memory or starts a process.
    fn changes_anything(&self) -> bool {
        match self {
            Act::Spawn(_) | Act::Store(..) => true,
            Act::Locked { effect, .. } => !effect.is_empty(),
            Act::Silent | Act::Read(..) | Act::StoreFence | Act::Fence => false,
        }
    }
}

/// An edge between classes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Edge {
    pub source: u32,
    pub target: u32,
    pub act: Act,
}

/// For classes and cells, values.
type Facts = FxHashMap<(u32, u32), Values>;

pub(crate) struct ProcessKind {
    pub population: Limit,
    /// How many of them there are at the start.
    pub initially: Limit,
    pub edges: Vec<Edge>,
    /// The edges to each class that are not silent.
    pub arriving: Vec<Vec<usize>>,
    /// Those of them that are not idle: an edge from a class to itself that leaves memory as it is need not be
    /// undone, since a run stays a run without it.
    pub into: Vec<Vec<usize>>,
    pub is_start: Vec<bool>,
    /// The class of each state.
    pub class_of: Vec<u32>,
    /// For each class, the classes at which processes arrive and from which silent edges lead to it, possibly
    /// including the class itself.
    pub before: Vec<Vec<u32>>,
    newest: Facts,
    queued: Facts,
    ahead: Facts,
    /// The values it stores, by cell.
    stored: FxHashMap<u32, Values>,
}

impl ProcessKind {
    /// Whether a process of this kind ever stores to a cell through its queue.
    pub fn stores_to(&self, cell: u32) -> bool {
        self.stored.contains_key(&cell)
    }

    /// The values that can be newest in a queue.
    pub fn newest(&self, state: u32, cell: u32) -> Option<&Values> {
        self.newest.get(&(state, cell))
    }

    /// The values that can be read from an own store in the buffer.
    pub fn ahead(&self, state: u32, cell: u32) -> Option<&Values> {
        self.ahead.get(&(state, cell))
    }

    /// Whether a store can be the newest own one of its cell and in the buffer after the pointer. It may have
    /// taken effect as soon as it was executed.
    pub fn own(&self, state: u32, cell: u32, values: &Values) -> Values {
        let of = |facts: &Facts| {
            let possible = facts.get(&(state, cell));
            possible.map_or(Vec::new(), |possible| possible.and(values).iter().collect())
        };
        Values::of(of(&self.newest).into_iter().chain(of(&self.ahead)))
    }

    /// The values that can be in a queue at a state, or anywhere.
    pub fn queued(&self, state: Option<u32>, cell: u32) -> Option<&Values> {
        match state {
            Some(state) => self.queued.get(&(state, cell)),
            None => self.stored.get(&cell),
        }
    }
}

pub(crate) struct Flow {
    pub kinds: Vec<ProcessKind>,
    pub values: Vec<u32>,
    pub initial: Vec<u32>,
    /// For a cell with one writer: the writer, and the values that the end of the buffer holds in its classes.
    pub held: FxHashMap<u32, (u32, Vec<Values>)>,
    constant: Vec<bool>,
}

impl Flow {
    /// The automata of classes. Without classes, every state is one by itself.
    pub fn new(
        system: &System,
        automata: &Automata,
        (interlocked, starts): (Interlocked, Starts),
        classes: &[Vec<u32>],
        rewrite: bool,
    ) -> Result<Flow, Refusal> {
        let states = automata.automata.iter().map(|automaton| automaton.states.len() as u32);
        let alone: Vec<Vec<u32>> = states.map(|states| (0..states).collect()).collect();
        let classes = if classes.is_empty() { &alone } else { classes };
        let numbers = class_numbers(automata, classes)?;
        let values: Vec<u32> = automata.values.iter().map(|values| values.len() as u32).collect();
        let initial: Vec<u32> = automata.initial.iter().map(|&count| count as u32).collect();
        let mut walks: Vec<Walk> = Vec::new();
        for ((automaton, classes), &number) in automata.automata.iter().zip(classes).zip(&numbers) {
            let is_start = start_classes(automaton, classes, number);
            walks.push(Walk::new(edges(automaton, classes, interlocked), is_start));
        }
        let populations: Vec<Limit> =
            automata.automata.iter().map(|automaton| limit(automaton.population)).collect();
        let mut initially: Vec<Limit> =
            automata.automata.iter().map(|automaton| limit(automaton.initially)).collect();
        for walk in &mut walks {
            let (newest, ahead) = newest_stores(walk);
            let pending: FxHashSet<u32> = newest.iter().chain(&ahead).map(|&(class, ..)| class).collect();
            for edge in &mut walk.edges {
                // See `super::rewrite`.
                if let Act::Spawn(child) = edge.act
                    && starts == Starts::Anytime
                    && pending.contains(&edge.source)
                {
                    initially[child as usize] = None;
                    edge.act = Act::Silent;
                }
            }
        }
        let mut soles: Vec<(u32, usize)> = Vec::new();
        let mut constant = Vec::new();
        for cell in 0..values.len() as u32 {
            let writes = |walk: &&Walk| walk.edges.iter().any(|edge| stored(&edge.act, cell).is_some());
            let writers: Vec<usize> = (0..walks.len()).filter(|&kind| writes(&&walks[kind])).collect();
            constant.push(writers.is_empty() && initial[cell as usize] == 1);
            if let [writer] = writers[..]
                && populations[writer] == Some(1)
            {
                soles.push((cell, writer));
            }
        }
        if rewrite {
            for (kind, walk) in walks.iter_mut().enumerate() {
                let of_kind = soles.iter().filter(|(_, writer)| *writer == kind);
                let last = of_kind.map(|&(cell, _)| (cell, holds(walk, cell, initial[cell as usize]).0));
                let looks = Looks::new(system, &automata.automata[kind], &classes[kind], &walk.is_start);
                let queued = queued_stores(walk).into_iter().map(|(class, cell, _)| (class, cell));
                let before = Before { looks: &looks, last: last.collect(), queued: queued.collect() };
                let edges = rewritten(&walk.edges, &walk.is_start, &before);
                *walk = Walk::new(edges, walk.is_start.clone());
            }
        }
        let mut held = FxHashMap::default();
        for (cell, writer) in soles {
            let values = holds(&walks[writer], cell, initial[cell as usize]).1;
            held.insert(cell, (writer as u32, values));
        }
        let kinds = walks.into_iter().zip(classes).zip(populations.into_iter().zip(initially));
        let kinds = kinds.map(|((walk, classes), populations)| kind(walk, classes, populations)).collect();
        Ok(Flow { kinds, values, initial, held, constant })
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

fn start_classes(automaton: &Automaton, classes: &[u32], number: usize) -> Vec<bool> {
    let mut is_start = vec![false; number];
    automaton.starts.iter().for_each(|start| is_start[classes[start.0.index()] as usize] = true);
    is_start
}

fn edges(automaton: &Automaton, classes: &[u32], interlocked: Interlocked) -> Vec<Edge> {
    let pairs = |list: &[(palisade_program::running::CellId, palisade_automata::ValueId)]| {
        list.iter().map(|(cell, value)| (cell.0, value.0)).collect::<Vec<_>>()
    };
    let edge = |edge: &palisade_automata::Edge| {
        let act = match &edge.letter {
            Letter::Silent => Act::Silent,
            Letter::Spawn(child) => Act::Spawn(*child),
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
        Edge { source: classes[edge.source.index()], target: classes[edge.target.index()], act }
    };
    let mut seen = FxHashSet::default();
    automaton.edges.iter().map(edge).filter(|edge| seen.insert(edge.clone())).collect()
}

fn kind(walk: Walk, classes: &[u32], (population, initially): (Limit, Limit)) -> ProcessKind {
    let states = walk.is_start.len();
    let mut arriving = vec![Vec::new(); states];
    let mut into = vec![Vec::new(); states];
    let mut silent = vec![Vec::new(); states];
    for (number, edge) in walk.edges.iter().enumerate() {
        if edge.act == Act::Silent {
            silent[edge.target as usize].push(edge.source);
            continue;
        }
        arriving[edge.target as usize].push(number);
        if edge.source != edge.target || edge.act.changes_anything() {
            into[edge.target as usize].push(number);
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
        seen.retain(|&state| walk.is_start[state as usize] || !into[state as usize].is_empty());
        seen
    });
    let before = before.collect();
    let (newest, ahead) = newest_stores(&walk);
    let mut stored: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for edge in &walk.edges {
        if let Act::Store(cell, value) = edge.act {
            stored.entry(cell).or_default().push(value);
        }
    }
    ProcessKind {
        population,
        initially,
        before,
        newest: facts(newest),
        ahead: facts(ahead),
        queued: facts(queued_stores(&walk)),
        stored: stored.into_iter().map(|(cell, values)| (cell, Values::of(values))).collect(),
        arriving,
        into,
        class_of: classes.to_vec(),
        is_start: walk.is_start,
        edges: walk.edges,
    }
}

fn facts(list: impl IntoIterator<Item = Fact>) -> Facts {
    let mut values: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
    for (state, cell, value) in list {
        values.entry((state, cell)).or_default().push(value);
    }
    values.into_iter().map(|(place, values)| (place, Values::of(values))).collect()
}

/// A class, a cell and a value.
type Fact = (u32, u32, u32);

/// Edges, by their sources.
struct Walk {
    edges: Vec<Edge>,
    is_start: Vec<bool>,
    out: Vec<Vec<usize>>,
}

impl Walk {
    fn new(edges: Vec<Edge>, is_start: Vec<bool>) -> Walk {
        let mut out = vec![Vec::new(); is_start.len()];
        for (number, edge) in edges.iter().enumerate() {
            out[edge.source as usize].push(number);
        }
        Walk { edges, is_start, out }
    }

    fn from(&self, state: u32) -> impl Iterator<Item = &Edge> {
        self.out[state as usize].iter().map(|&number| &self.edges[number])
    }

    fn stores(&self) -> impl Iterator<Item = Fact> {
        self.edges.iter().filter_map(|edge| match edge.act {
            Act::Store(cell, value) => Some((edge.target, cell, value)),
            _ => None,
        })
    }
}

/// The newest stores by cell: those that may still be in queues, and those that are in the buffer after the
/// pointer since a store-store fence.
fn newest_stores(walk: &Walk) -> (Vec<Fact>, Vec<Fact>) {
    let mut seen: FxHashSet<(u32, u32, u32, bool)> = FxHashSet::default();
    let mut open: Vec<(u32, u32, u32, bool)> =
        walk.stores().map(|(state, cell, value)| (state, cell, value, false)).collect();
    while let Some(fact) = open.pop() {
        limits::checkpoint();
        if !seen.insert(fact) {
            continue;
        }
        let (state, cell, value, ahead) = fact;
        for edge in walk.from(state) {
            let stays = match &edge.act {
                Act::Silent | Act::Spawn(_) => Some(ahead),
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
fn queued_stores(walk: &Walk) -> FxHashSet<Fact> {
    let mut seen = FxHashSet::default();
    let mut open: Vec<Fact> = walk.stores().collect();
    while let Some((state, cell, value)) = open.pop() {
        limits::checkpoint();
        if seen.insert((state, cell, value)) {
            let on = walk.from(state).filter(|edge| !edge.act.empties(cell));
            open.extend(on.map(|edge| (edge.target, cell, value)));
        }
    }
    seen
}

/// In each class of a cell's only writer: the values that it can have stored last, which is what it reads, and
/// the values that the end of the buffer can hold.
fn holds(walk: &Walk, cell: u32, initial: u32) -> (Vec<Values>, Vec<Values>) {
    let mut seen: FxHashSet<Fact> = FxHashSet::default();
    let mut open: Vec<Fact> = Vec::new();
    for state in (0..walk.is_start.len() as u32).filter(|&state| walk.is_start[state as usize]) {
        open.extend((0..initial).map(|value| (state, value, value)));
    }
    while let Some((state, last, held)) = open.pop() {
        limits::checkpoint();
        if !seen.insert((state, last, held)) {
            continue;
        }
        // Entries of the queue may take effect.
        open.push((state, last, last));
        for edge in walk.from(state) {
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
    let mut values = [vec![Vec::new(); walk.is_start.len()], vec![Vec::new(); walk.is_start.len()]];
    for (state, last, held) in seen {
        values[0][state as usize].push(last);
        values[1][state as usize].push(held);
    }
    let [last, held] = values.map(|of| of.into_iter().map(Values::of).collect());
    (last, held)
}
