//! The brute-force interpreter: every run of the machine, breadth first, with nothing left out and nothing
//! compressed.
//!
//! *Guarantee.* An answer other than [`Answer::Inconclusive`] is correct if `palisade-memory` is, and a run
//! that is found is a shortest one. Every engine is compared with this interpreter, so it is kept simple
//! enough to be obviously correct.
//!
//! *Cost.* A full [`State`] per state. It is meant for programs with up to a few hundred thousand states.

use hashbrown::HashTable;
use palisade_base::Id;
use palisade_memory::{Machine, State, Step, Thread};
use palisade_program::Value;
use palisade_program::running::{CellId, RegId, System, ThreadId};
use palisade_trace::Run;
use rustc_hash::FxBuildHasher;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Limits of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Give up after this many states.
    pub states: usize,
    /// Do not enter states in which some buffer has more entries than this.
    pub buffer: Option<usize>,
}

impl Scope {
    /// At most this many states, and buffers of any length.
    pub fn states(states: usize) -> Scope {
        Scope { states, buffer: None }
    }
}

/// The search's answer about the property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// No state is bad.
    Safe,
    /// A shortest run to a bad state.
    Unsafe(Run),
    /// A limit was hit before a bad state was found.
    Inconclusive,
}

impl Answer {
    /// `safe`, `unsafe` or `inconclusive`.
    pub fn word(&self) -> &'static str {
        match self {
            Answer::Safe => "safe",
            Answer::Unsafe(_) => "unsafe",
            Answer::Inconclusive => "inconclusive",
        }
    }
}

/// Searches for a bad state.
pub fn check(machine: Machine<'_>, limits: Scope) -> Answer {
    let search = search(machine, limits, |state| machine.violation(state).is_some());
    match search.stopped_at {
        Some(last) => Answer::Unsafe(search.run_to(last)),
        None if search.complete => Answer::Safe,
        None => Answer::Inconclusive,
    }
}

/// All reachable states, including bad ones and those after them, and whether the search stayed within the
/// limits.
pub fn reachable(machine: Machine<'_>, limits: Scope) -> Search {
    search(machine, limits, |_| false)
}

/// The states in which a run is over: every thread is at its end, every buffer is empty, and there is no
/// fault. `None` if a limit was hit.
pub fn final_states(machine: Machine<'_>, limits: Scope) -> Option<Vec<State>> {
    let Search { states, complete, .. } = reachable(machine, limits);
    let over = |state: &State| {
        let ended = |thread: &Arc<Thread>| thread.has_ended(machine.system) && thread.buffer.is_empty();
        state.fault.is_none() && state.threads.iter().all(ended)
    };
    complete.then(|| states.into_iter().filter(over).collect())
}

/// The values that the given cells and registers can hold when a run is over. `None` if a limit was hit.
pub fn outcomes(machine: Machine<'_>, limits: Scope, seen: &[Observed]) -> Option<BTreeSet<Vec<Value>>> {
    let values = |state: &State| seen.iter().map(|observed| observed.value(state)).collect();
    Some(final_states(machine, limits)?.iter().map(values).collect())
}

/// The states a search has seen.
#[derive(Clone, Debug)]
pub struct Search {
    /// In the order in which they were found, without duplicates.
    pub states: Vec<State>,
    /// For each state, the state and the step from which it was first found.
    parents: Vec<Option<(usize, Step)>>,
    /// Whether no limit was hit.
    pub complete: bool,
    stopped_at: Option<usize>,
}

impl Search {
    /// A shortest run to the state with this index.
    pub(crate) fn run_to(&self, last: usize) -> Run {
        let mut steps = Vec::new();
        let mut at = last;
        while let Some((parent, step)) = self.parents[at] {
            steps.push(step);
            at = parent;
        }
        steps.reverse();
        Run { memory: self.states[at].memory.as_slice().to_vec(), steps }
    }
}

fn search(machine: Machine<'_>, limits: Scope, stop: impl Fn(&State) -> bool) -> Search {
    let mut search = Search { states: Vec::new(), parents: Vec::new(), complete: true, stopped_at: None };
    // Where the states with a hash are in the list. Each is kept once, there.
    let mut known: HashTable<(u64, usize)> = HashTable::new();
    let hash = |state: &State| FxBuildHasher.hash_one(state);
    let mut next = 0;
    let mut found: Vec<(State, Option<(usize, Step)>)> =
        machine.initial_states().map(|state| (state, None)).collect();
    loop {
        for (state, parent) in found.drain(..) {
            let hash_of_state = hash(&state);
            let same = |&(hash, index): &(u64, usize)| hash == hash_of_state && search.states[index] == state;
            if known.find(hash_of_state, same).is_some() {
                continue;
            }
            let too_long = |bound| state.threads.iter().any(|thread| thread.buffer.len() > bound);
            if limits.buffer.is_some_and(too_long) {
                search.complete = false;
                continue;
            }
            if search.states.len() >= limits.states {
                search.complete = false;
                return search;
            }
            let index = search.states.len();
            known.insert_unique(hash_of_state, (hash_of_state, index), |&(hash, _)| hash);
            search.states.push(state);
            search.parents.push(parent);
            if stop(&search.states[index]) {
                search.stopped_at = Some(index);
                return search;
            }
        }
        // The list is also the queue.
        let Some(state) = search.states.get(next) else { return search };
        let successors = machine.successors(state).into_iter();
        found.extend(successors.map(|successor| (successor.state, Some((next, successor.step)))));
        next += 1;
    }
}

/// An observable part of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observed {
    /// The value of a cell in memory.
    Cell(CellId),
    /// The value of a register of a process body.
    Register(ThreadId, RegId),
}

impl Observed {
    /// `x`, `a[1]` or `P.r`, where P is the name of an instance.
    ///
    /// # Panics
    /// If the program does not contain it.
    pub fn named(system: &System, name: &str) -> Observed {
        let cell = system.cells.iter_enumerated().find(|(_, cell)| cell.name == name);
        let register = || {
            let (process, register) = name.rsplit_once('.')?;
            let (thread, instance) =
                system.instances.iter_enumerated().find(|(_, instance)| instance.name == process)?;
            Some(Observed::Register(thread, system.role_code(instance.role).register(register)?))
        };
        let found = cell.map(|(cell, _)| Observed::Cell(cell)).or_else(register);
        found.unwrap_or_else(|| panic!("the program has no `{name}`"))
    }

    /// Its value in a state.
    pub fn value(self, state: &State) -> Value {
        match self {
            Observed::Cell(cell) => state.memory[cell],
            Observed::Register(thread, register) => {
                state.threads[thread].frames[0].registers[register.index()]
            }
        }
    }
}
