//! Stores that are pending while a thread is started.
//!
//! *Problem.* Semantics in which stores reach memory when they are executed have no place for a thread that is started
//! while stores of its parent are pending: what the new thread does may come before these stores.
//!
//! *How.* A store may be *delayed*: the automaton remembers it, and it becomes a store of the automaton only later. So
//! a thread is started with some stores delayed and all others in memory. That is exact: in a run of the machine, take
//! the stores that are pending when their thread starts another one, and delay them until they reach memory (TSO), or
//! until the start (PSO). The others are not pending at any start. The rules are those of the store buffer:
//! - Delayed stores to one cell stay in order, under TSO all of them. A barrier separates those before from those after.
//! - While stores are delayed, other stores of the thread are delayed as well. Under PSO those to other cells need not
//!   be, unless there is a barrier.
//! - The thread reads its newest delayed store to a cell, if there is one.
//! - Fences and locked instructions wait until no store is delayed.
//!
//! A store is delayed only where a thread may be started before the next fence. After that, delayed stores are made
//! first: from then on they may be pending like any others.
//!
//! Properties are not evaluated while stores are delayed: they see memory only when nothing is pending, and what they
//! see of the thread does not change when its stores reach memory.

use crate::explicit::{Automata, Automaton, Edge, Letter, StateId, ValueId};
use crate::local::Hold;
use palisade_base::{IdVec, limits};
use palisade_memory::{Interlocked, Model};
use palisade_program::running::CellId;
use rustc_hash::FxHashMap;

/// More delayed stores and barriers than this count as unbounded.
const MAX_DELAYED: usize = 8;

/// An automaton gets at most this many states for combinations of delayed stores.
const MAX_STATES: usize = 1 << 10;

/// A delayed instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Delayed {
    Store(CellId, ValueId),
    /// Stores before it reach memory before those after it.
    Barrier,
}

/// What may be pending when threads are started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Starts {
    /// Nothing but delayed stores. Starts wait for everything else.
    Drained,
    /// Any stores.
    Anytime,
}

impl Automata {
    /// The automata with delayed stores, so that nothing else is pending when a thread is started. If too many stores
    /// may be pending, the automata as they are.
    pub fn with_delayed_stores(&self, model: Model, interlocked: Interlocked) -> (Option<Automata>, Starts) {
        // Under SC nothing is ever pending.
        if self.spawned.is_empty() || model == Model::Sc {
            return (None, Starts::Drained);
        }
        // Locked instructions that wait only for their own address do not end a delay.
        if model == Model::Pso && interlocked == Interlocked::OwnAddress {
            return (None, Starts::Anytime);
        }
        let automata = self.automata.iter().map(|automaton| delaying(automaton, model));
        match automata.collect::<Option<Vec<_>>>() {
            Some(automata) => (Some(Automata { automata, ..self.clone() }), Starts::Drained),
            None => (None, Starts::Anytime),
        }
    }
}

/// The states from which a thread may be started without a fence before it.
fn ahead_of_starts(automaton: &Automaton) -> IdVec<StateId, bool> {
    let mut ahead: IdVec<StateId, bool> = vec![false; automaton.states.len()].into();
    let mut into: IdVec<StateId, Vec<StateId>> = vec![Vec::new(); automaton.states.len()].into();
    let mut work = Vec::new();
    for edge in &automaton.edges {
        match edge.letter {
            Letter::Spawn(_) => work.push(edge.source),
            Letter::Fence | Letter::Locked { .. } => {}
            _ => into[edge.target].push(edge.source),
        }
    }
    while let Some(state) = work.pop() {
        limits::checkpoint();
        if !std::mem::replace(&mut ahead[state], true) {
            work.extend(&into[state]);
        }
    }
    ahead
}

fn delaying(automaton: &Automaton, model: Model) -> Option<Automaton> {
    let ahead = ahead_of_starts(automaton);
    let mut out: IdVec<StateId, Vec<&Edge>> = vec![Vec::new(); automaton.states.len()].into();
    automaton.edges.iter().for_each(|edge| out[edge.source].push(edge));
    let mut building =
        Building { automaton: automaton.clone(), numbers: FxHashMap::default(), work: Vec::new() };
    for edge in &automaton.edges {
        if let Letter::Write(cell, value) = edge.letter
            && ahead[edge.target]
        {
            let target = building.state(edge.target, vec![Delayed::Store(cell, value)]);
            building.add(edge.source, target, Letter::Silent, Some(edge));
        }
    }
    while let Some((at, state, delayed)) = building.work.pop() {
        limits::checkpoint();
        if delayed.len() > MAX_DELAYED || building.numbers.len() > MAX_STATES {
            return None;
        }
        for place in 0..delayed.len() {
            let mut rest = delayed.clone();
            let letter = match rest.remove(place) {
                Delayed::Barrier if place == 0 => Letter::StoreFence,
                Delayed::Barrier => break,
                Delayed::Store(cell, value) => {
                    let older = delayed[..place].iter();
                    let waits = |other: &Delayed| matches!(other, Delayed::Store(of, _) if *of == cell);
                    if place > 0 && (model != Model::Pso || older.clone().any(waits)) {
                        continue;
                    }
                    Letter::Write(cell, value)
                }
            };
            let target = building.state(state, rest);
            building.add(at, target, letter, None);
        }
        if !ahead[state] {
            continue;
        }
        let newest = |cell: CellId| {
            delayed.iter().rev().find_map(|entry| match entry {
                Delayed::Store(of, value) if *of == cell => Some(*value),
                _ => None,
            })
        };
        for edge in &out[state] {
            let goes_on = ahead[edge.target];
            let also = |entry: Delayed| delayed.iter().copied().chain([entry]).collect::<Vec<_>>();
            let to = |building: &mut Building, letter: Letter, delayed: Vec<Delayed>| {
                let target = building.state(edge.target, delayed);
                building.add(at, target, letter, Some(edge));
            };
            match &edge.letter {
                Letter::Spawn(_) => to(&mut building, edge.letter.clone(), delayed.clone()),
                _ if !goes_on => {}
                Letter::Silent => to(&mut building, Letter::Silent, delayed.clone()),
                Letter::Read(cell, value) => match newest(*cell) {
                    None => to(&mut building, edge.letter.clone(), delayed.clone()),
                    Some(own) if own == *value => to(&mut building, Letter::Silent, delayed.clone()),
                    Some(_) => {}
                },
                Letter::Write(cell, value) => {
                    to(&mut building, Letter::Silent, also(Delayed::Store(*cell, *value)));
                    let free = !delayed.contains(&Delayed::Barrier) && newest(*cell).is_none();
                    if model == Model::Pso && free {
                        to(&mut building, edge.letter.clone(), delayed.clone());
                    }
                }
                Letter::StoreFence if model == Model::Pso => {
                    to(&mut building, Letter::StoreFence, also(Delayed::Barrier));
                }
                Letter::StoreFence => to(&mut building, Letter::StoreFence, delayed.clone()),
                Letter::Fence | Letter::Locked { .. } => {}
            }
        }
    }
    Some(building.automaton)
}

/// An automaton that gets more states.
struct Building {
    automaton: Automaton,
    numbers: FxHashMap<(StateId, Vec<Delayed>), StateId>,
    /// New states, each with the state it comes from and what is delayed.
    work: Vec<(StateId, StateId, Vec<Delayed>)>,
}

impl Building {
    fn state(&mut self, state: StateId, delayed: Vec<Delayed>) -> StateId {
        if delayed.is_empty() {
            return state;
        }
        let key = (state, delayed);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let mut local = self.automaton.states[state].clone();
        if local.hold == Hold::Outside {
            local.hold = Hold::Armed(0);
        }
        let number = self.automaton.states.push(local);
        self.work.push((number, state, key.1.clone()));
        self.numbers.insert(key, number);
        number
    }

    /// Adds an edge with the steps of another one, or without steps.
    fn add(&mut self, source: StateId, target: StateId, letter: Letter, like: Option<&Edge>) {
        let (steps, armed) = like.map_or((Vec::new(), 0), |edge| (edge.steps.clone(), edge.armed));
        let edge = Edge { source, target, letter, steps, armed };
        if !self.automaton.edges.contains(&edge) {
            self.automaton.edges.push(edge);
        }
    }
}
