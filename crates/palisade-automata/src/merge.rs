//! Merging bisimilar states.
//!
//! *Problem.* Searches visit fewer states if the automata have fewer states.
//!
//! *Guarantee.* The classes are the coarsest strong bisimulation that respects what properties see of a
//! thread: from two states of one class the same letters lead to the same classes. So every path of the
//! merged automaton is a path of the automaton, from any state of the first class ([`Merged::edge`] and
//! [`Merged::silent_path`] find it), and vice versa.
//!
//! *How.* Partition refinement ([`refine`]): states are distinguished first by what properties see of them,
//! then by the letters and classes of their edges.

use crate::explicit::{Automata, Automaton, Edge, Letter, StateId};
use crate::local::{Hold, Local};
use crate::refine::{Arrow, refine};
use palisade_base::{Id, IdVec, limits};
use palisade_program::Value;
use palisade_program::running::{Condition, Location, RegId, RoleId, System};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Automata of classes of states.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The automata. A state represents its class, and holds the thread state of one of its members.
    pub automata: Automata,
    /// For each automaton, the class of each state.
    pub classes: Vec<IdVec<StateId, StateId>>,
    /// For each automaton and class, a number for what properties see of it.
    pub looks: Vec<IdVec<StateId, u32>>,
}

impl Automata {
    /// Merges bisimilar states.
    pub fn merged(&self, system: &System) -> Merged {
        let Automata { values, initial, automata: _, spawned, coverage } = self;
        let automata = Automata {
            values: values.clone(),
            initial: initial.clone(),
            automata: Vec::new(),
            spawned: spawned.clone(),
            coverage: coverage.clone(),
        };
        let mut merged = Merged { automata, classes: Vec::new(), looks: Vec::new() };
        for automaton in &self.automata {
            let (classes, looks) = classes(system, automaton);
            let first = |class: StateId| classes.iter().position(|&of| of == class);
            let classes_in_order = (0..).map(StateId).map_while(first);
            merged.looks.push(classes_in_order.map(|first| looks[first]).collect());
            merged.automata.automata.push(quotient(automaton, &classes));
            merged.classes.push(classes);
        }
        merged
    }
}

impl Merged {
    /// The edge of the automaton, from one of its states, for which an edge of the merged automaton from that
    /// state's class stands.
    pub fn edge<'a>(
        &self,
        automata: &'a Automata,
        kind: usize,
        state: StateId,
        edge: &Edge,
    ) -> Option<&'a Edge> {
        let classes = &self.classes[kind];
        let edges = &automata.automata[kind].edges;
        edges.iter().find(|other| {
            other.source == state && other.letter == edge.letter && classes[other.target] == edge.target
        })
    }

    /// Silent edges of the automaton that lead from one of its states to some state of a class.
    pub fn silent_path<'a>(
        &self,
        automata: &'a Automata,
        kind: usize,
        state: StateId,
        class: StateId,
        is_silent: impl Fn(&Letter) -> bool,
    ) -> Option<Vec<&'a Edge>> {
        let edges = &automata.automata[kind].edges;
        let mut by: FxHashMap<StateId, Option<&Edge>> = FxHashMap::default();
        by.insert(state, None);
        let mut work = VecDeque::from([state]);
        while let Some(at) = work.pop_front() {
            limits::checkpoint();
            if self.classes[kind][at] == class {
                let mut path = Vec::new();
                let mut at = at;
                while let Some(edge) = by[&at] {
                    path.push(edge);
                    at = edge.source;
                }
                path.reverse();
                return Some(path);
            }
            for edge in edges.iter().filter(|edge| edge.source == at && is_silent(&edge.letter)) {
                by.entry(edge.target).or_insert_with(|| {
                    work.push_back(edge.target);
                    Some(edge)
                });
            }
        }
        None
    }
}

/// What properties can see of a state, whether it is a start, and whether it is an error.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Label {
    start: bool,
    judged: bool,
    ended: bool,
    fault: bool,
    at: Vec<Location>,
    registers: Vec<Value>,
}

/// The class of each state, and a number for what properties see of it.
fn classes(system: &System, automaton: &Automaton) -> (IdVec<StateId, StateId>, Vec<u32>) {
    let mut seen = Seen::default();
    system.properties.iter().for_each(|property| seen.look(system, automaton.role, &property.bad));
    let starts: FxHashSet<StateId> = automaton.starts.iter().map(|start| start.0).collect();
    let label = |state: StateId, local: &Local| Label {
        start: starts.contains(&state),
        judged: local.hold == Hold::Outside,
        ended: local.thread.has_ended(system),
        fault: local.fault.is_some(),
        at: seen.locations.iter().copied().filter(|&location| local.thread.is_at(location)).collect(),
        registers: seen.registers.iter().map(|r| local.thread.frames[0].registers[r.index()]).collect(),
    };
    let labels = automaton.states.iter_enumerated().map(|(state, local)| label(state, local));
    let letters = number(automaton.edges.iter().map(|edge| &edge.letter));
    let arrows: Vec<Arrow> = automaton
        .edges
        .iter()
        .zip(letters)
        .map(|(edge, letter)| (edge.source.0, letter, edge.target.0))
        .collect();
    let looks = number(labels);
    let classes = refine(looks.clone(), &arrows);
    // Numbered in the order of their first states.
    (number(classes.into_iter()).into_iter().map(StateId).collect(), looks)
}

/// Numbers the items in order of appearance. Equal items get equal numbers.
fn number<T: Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<u32> {
    let mut numbers: FxHashMap<T, u32> = FxHashMap::default();
    items
        .map(|item| {
            limits::checkpoint();
            let next = numbers.len() as u32;
            *numbers.entry(item).or_insert(next)
        })
        .collect()
}

fn quotient(automaton: &Automaton, classes: &IdVec<StateId, StateId>) -> Automaton {
    let mut states: IdVec<StateId, Local> = IdVec::new();
    for (state, local) in automaton.states.iter_enumerated() {
        limits::checkpoint();
        // Classes are numbered in the order of their first states.
        if classes[state].index() == states.len() {
            states.push(local.clone());
        }
    }
    let mut seen = FxHashSet::default();
    let mut edges = Vec::new();
    for edge in &automaton.edges {
        limits::checkpoint();
        let (source, target) = (classes[edge.source], classes[edge.target]);
        let pointless = edge.letter == Letter::Silent && source == target;
        if !pointless && seen.insert((source, &edge.letter, target)) {
            edges.push(Edge { source, target, ..edge.clone() });
        }
    }
    let starts =
        automaton.starts.iter().map(|(state, steps, armed)| (classes[*state], steps.clone(), *armed));
    Automaton {
        role: automaton.role,
        population: automaton.population,
        initially: automaton.initially,
        states,
        starts: starts.collect(),
        edges,
    }
}

/// What properties look at in threads of one role.
#[derive(Default)]
struct Seen {
    locations: Vec<Location>,
    registers: Vec<RegId>,
}

impl Seen {
    fn look(&mut self, system: &System, role: RoleId, condition: &Condition) {
        let of_role = |thread: &palisade_program::running::ThreadId| system.instances[*thread].role == role;
        match condition {
            Condition::Const(_) | Condition::Cell(_) => {}
            Condition::Register(thread, register) if of_role(thread) => self.registers.push(*register),
            Condition::At(thread, location) if of_role(thread) => self.locations.push(*location),
            Condition::Register(..) | Condition::At(..) => {}
            Condition::Count(places) => {
                self.locations.extend(places.iter().filter(|place| place.0 == role).map(|place| place.1));
            }
            Condition::Unary(_, a) => self.look(system, role, a),
            Condition::Binary(_, a, b) => {
                self.look(system, role, a);
                self.look(system, role, b);
            }
        }
    }
}
