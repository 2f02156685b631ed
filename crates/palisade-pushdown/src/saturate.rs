//! What a thread can reach when it runs alone: saturation of an automaton that accepts its stacks.
//!
//! *Problem.* A thread may have any stack of a regular set, with known memory. With which memory and stacks
//! can it end up if no other thread runs?
//!
//! *Source.* Bouajjani, Esparza and Maler ("Reachability analysis of pushdown automata", CONCUR 1997): the
//! set is regular, and its automaton is found by adding edges until nothing changes. This file uses the
//! efficient form of Schwoon (PhD thesis, TU München 2002, section 3.1.4), with one new state per control and
//! entered procedure. Costs and the order in which edges are added are those of weighted pushdown systems
//! (Reps, Schwoon, Jha and Melski, "Weighted pushdown systems and their application to interprocedural
//! dataflow analysis", 2005) with the number of steps as weight.
//!
//! *Guarantee.* A control with a stack is reachable iff the automaton accepts it. Stacks have any height.
//! There are finitely many edges if there are finitely many frames. Every edge records a derivation with the
//! least number of steps. So [`Saturation::unwind`] leads from a stack back to the one it came from, with a
//! shortest run.
//!
//! *Why edges are added in the order of their cost.* An edge into a state q represents what happened since q
//! was entered. Costs of edges into one state only grow along derivations. The edge of a newly entered
//! procedure starts at 0 again. But everything derived from it outside the procedure costs more than the
//! call, which left the queue before. So an edge that leaves the queue has its least cost, as in Dijkstra's
//! algorithm and its generalisation by Knuth (1977).

use crate::language::{END, Language};
use crate::rules::{Control, ControlId, MemoryId, Rules, SymbolId, Then};
use palisade_base::limits;
use palisade_memory::Action;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An edge, by its position.
type EdgeIndex = u32;

/// The letter of edges that read nothing, because the frame has been removed.
const NOTHING: SymbolId = SymbolId(u32::MAX);

/// An edge of the automaton.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Edge {
    from: u32,
    letter: SymbolId,
    to: u32,
}

/// How an edge was derived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Why {
    /// It belongs to the given automaton.
    Given,
    /// A rule replaced the frame of this edge.
    Step(EdgeIndex, Option<Action>),
    /// A procedure was entered. The edge below records the caller.
    Entered,
    /// A rule entered a procedure from the frame of this edge, which becomes the frame below.
    Below(EdgeIndex, Option<Action>),
    /// A rule removed the frame of this edge.
    Popped(EdgeIndex, Option<Action>),
    /// A frame was removed (the first edge), so the one below (the second) is on top.
    Uncovered(EdgeIndex, EdgeIndex),
}

/// An edge in the queue: its cost, its insertion order, the edge, its derivation.
type Waiting = Reverse<(u64, u64, Edge, Why)>;

/// A saturated automaton.
pub(crate) struct Saturation {
    edges: Vec<Edge>,
    reasons: Vec<(u64, Why)>,
    numbers: FxHashMap<Edge, EdgeIndex>,
    /// For each state its edges.
    out: FxHashMap<u32, Vec<EdgeIndex>>,
    controls: Vec<ControlId>,
    state_of: FxHashMap<ControlId, u32>,
    /// An edge from which a step runs into a fault, and that step.
    pub fault: Option<(u32, Option<Action>)>,
}

struct Builder<'r, 'a> {
    rules: &'r mut Rules<'a>,
    done: Saturation,
    queue: BinaryHeap<Waiting>,
    order: u64,
    /// The states that are controls.
    control_of: FxHashMap<u32, ControlId>,
    entries: FxHashMap<(ControlId, SymbolId), u32>,
    /// Edges that read nothing, by their target.
    popped: FxHashMap<u32, Vec<EdgeIndex>>,
    states: u32,
}

/// Saturates the automaton of the stacks a thread may have, with this memory. Stops at a fault.
/// `may_continue` is called from time to time, with the number of edges made since the last call.
pub(crate) fn saturate<S>(
    rules: &mut Rules<'_>,
    stacks: &Language,
    memory: MemoryId,
    may_continue: &mut dyn FnMut(&Rules<'_>, u64) -> Result<(), S>,
) -> Result<Saturation, S> {
    let done = Saturation {
        edges: Vec::new(),
        reasons: Vec::new(),
        numbers: FxHashMap::default(),
        out: FxHashMap::default(),
        controls: Vec::new(),
        state_of: FxHashMap::default(),
        fault: None,
    };
    let mut builder = Builder {
        rules,
        done,
        queue: BinaryHeap::new(),
        order: 0,
        control_of: FxHashMap::default(),
        entries: FxHashMap::default(),
        popped: FxHashMap::default(),
        states: stacks.edges.len() as u32,
    };
    let control = Control { memory, started: [].into(), returning: None };
    let control = builder.rules.control_id(control);
    let start = builder.control_state(control);
    for (state, row) in stacks.edges.iter().enumerate() {
        for &(letter, to) in row {
            builder.offer(Edge { from: state as u32, letter, to }, 0, Why::Given);
            if state == 0 {
                builder.offer(Edge { from: start, letter, to }, 0, Why::Given);
            }
        }
    }
    builder.run(may_continue)?;
    Ok(builder.done)
}

impl Builder<'_, '_> {
    fn control_state(&mut self, control: ControlId) -> u32 {
        if let Some(&state) = self.done.state_of.get(&control) {
            return state;
        }
        let state = self.states;
        self.states += 1;
        self.done.state_of.insert(control, state);
        self.control_of.insert(state, control);
        self.done.controls.push(control);
        state
    }

    fn entry_state(&mut self, control: ControlId, callee: SymbolId) -> u32 {
        let next = self.states;
        let state = *self.entries.entry((control, callee)).or_insert(next);
        self.states += u32::from(state == next);
        state
    }

    fn offer(&mut self, edge: Edge, cost: u64, why: Why) {
        if !self.done.numbers.contains_key(&edge) {
            self.order += 1;
            self.queue.push(Reverse((cost, self.order, edge, why)));
        }
    }

    fn run<S>(&mut self, may_continue: &mut dyn FnMut(&Rules<'_>, u64) -> Result<(), S>) -> Result<(), S> {
        let mut since = 0;
        while let Some(Reverse((cost, _, edge, why))) = self.queue.pop() {
            limits::checkpoint();
            // After a fault, only the frames below it still matter.
            let above = edge.letter == NOTHING || self.control_of.contains_key(&edge.from);
            if self.done.numbers.contains_key(&edge) || (above && self.done.fault.is_some()) {
                continue;
            }
            let index = self.done.edges.len() as EdgeIndex;
            self.done.numbers.insert(edge, index);
            self.done.edges.push(edge);
            self.done.reasons.push((cost, why));
            since += 1;
            if since == 4096 {
                may_continue(self.rules, since)?;
                since = 0;
            }
            if edge.letter == NOTHING {
                self.popped.entry(edge.to).or_default().push(index);
                for below in self.done.out.get(&edge.to).cloned().unwrap_or_default() {
                    self.uncover(index, below);
                }
                continue;
            }
            self.done.out.entry(edge.from).or_default().push(index);
            for popped in self.popped.get(&edge.from).cloned().unwrap_or_default() {
                self.uncover(popped, index);
            }
            if let Some(&control) = self.control_of.get(&edge.from) {
                self.apply(control, index);
            }
        }
        may_continue(self.rules, since)
    }

    fn uncover(&mut self, popped: EdgeIndex, below: EdgeIndex) {
        let (first, second) = (self.done.edges[popped as usize], self.done.edges[below as usize]);
        let cost = self.cost(popped).saturating_add(self.cost(below));
        let edge = Edge { from: first.from, ..second };
        self.offer(edge, cost, Why::Uncovered(popped, below));
    }

    fn cost(&self, edge: EdgeIndex) -> u64 {
        self.done.reasons[edge as usize].0
    }

    /// Applies all rules to the frame of an edge.
    fn apply(&mut self, control: ControlId, index: EdgeIndex) {
        let edge = self.done.edges[index as usize];
        for rule in self.rules.rules(control, edge.letter) {
            let action = rule.action;
            let cost = self.cost(index).saturating_add(action.is_some().into());
            match rule.then {
                Then::Fault => {
                    self.done.fault = Some((index, action));
                    return;
                }
                Then::Stay(control, letter) => {
                    let from = self.control_state(control);
                    self.offer(Edge { from, letter, to: edge.to }, cost, Why::Step(index, action));
                }
                Then::Push { control, callee, caller } => {
                    let from = self.control_state(control);
                    let entry = self.entry_state(control, callee);
                    self.offer(Edge { from, letter: callee, to: entry }, 0, Why::Entered);
                    let below = Edge { from: entry, letter: caller, to: edge.to };
                    self.offer(below, cost, Why::Below(index, action));
                }
                Then::Pop(control) => {
                    let from = self.control_state(control);
                    let popped = Edge { from, letter: NOTHING, to: edge.to };
                    self.offer(popped, cost, Why::Popped(index, action));
                }
            }
        }
    }
}

impl Saturation {
    /// All controls that were reached, in the order in which they were reached.
    pub fn controls(&self) -> impl Iterator<Item = ControlId> {
        self.controls.iter().copied()
    }

    fn letters_from(&self, state: u32) -> impl Iterator<Item = (SymbolId, u32)> {
        let indices = self.out.get(&state).map_or(&[][..], Vec::as_slice);
        indices.iter().map(|&index| {
            let edge = &self.edges[index as usize];
            (edge.letter, edge.to)
        })
    }

    /// The stacks with a control whose top frame `passes` accepts. `None` if there are none.
    pub fn stacks(&self, control: ControlId, mut passes: impl FnMut(SymbolId) -> bool) -> Option<Language> {
        let state = *self.state_of.get(&control)?;
        let start: Vec<_> = self.letters_from(state).filter(|&(letter, _)| passes(letter)).collect();
        let successors = |state, out: &mut Vec<_>| out.extend(self.letters_from(state));
        (!start.is_empty()).then(|| Language::of(start, successors))
    }

    /// The cheapest path that accepts this stack with this control.
    ///
    /// # Panics
    /// If the automaton does not accept it.
    pub fn path(&self, control: ControlId, word: &[SymbolId]) -> Vec<u32> {
        let start = self.state_of[&control];
        // For each position, the states that are possible there, with the cost so far and the edge taken.
        let mut layers: Vec<FxHashMap<u32, (u64, EdgeIndex)>> = Vec::with_capacity(word.len());
        let mut current: FxHashMap<u32, u64> = FxHashMap::from_iter([(start, 0)]);
        for letter in word {
            let mut layer: FxHashMap<u32, (u64, EdgeIndex)> = FxHashMap::default();
            for (state, cost) in current {
                for &index in self.out.get(&state).map_or(&[][..], Vec::as_slice) {
                    let edge = self.edges[index as usize];
                    if edge.letter == *letter {
                        let offer = (cost.saturating_add(self.reasons[index as usize].0), index);
                        layer.entry(edge.to).and_modify(|best| *best = offer.min(*best)).or_insert(offer);
                    }
                }
            }
            current = layer.iter().map(|(&state, &(cost, _))| (state, cost)).collect();
            layers.push(layer);
        }
        let mut state = END;
        let mut path = Vec::with_capacity(word.len());
        for layer in layers.iter().rev() {
            let (_, index) = layer[&state];
            path.push(index);
            state = self.edges[index as usize].from;
        }
        path.reverse();
        path
    }

    /// A cheapest path that begins with this edge.
    pub fn path_from(&self, first: u32) -> Vec<u32> {
        let start = self.edges[first as usize].to;
        let mut best: FxHashMap<u32, (u64, Option<EdgeIndex>)> = FxHashMap::from_iter([(start, (0, None))]);
        let mut queue = BinaryHeap::from([Reverse((0u64, start))]);
        while let Some(Reverse((cost, state))) = queue.pop() {
            if state == END {
                break;
            }
            if best[&state].0 < cost {
                continue;
            }
            for &index in self.out.get(&state).map_or(&[][..], Vec::as_slice) {
                let to = self.edges[index as usize].to;
                let offer = cost.saturating_add(self.reasons[index as usize].0);
                if best.get(&to).is_none_or(|&(known, _)| offer < known) {
                    best.insert(to, (offer, Some(index)));
                    queue.push(Reverse((offer, to)));
                }
            }
        }
        let mut path = Vec::new();
        let mut state = END;
        while let (_, Some(index)) = best[&state] {
            path.push(index);
            state = self.edges[index as usize].from;
        }
        path.push(first);
        path.reverse();
        path
    }

    /// The number of steps of the run along a path.
    pub fn cost(&self, path: &[u32]) -> u64 {
        path.iter().fold(0, |sum: u64, &edge| sum.saturating_add(self.reasons[edge as usize].0))
    }

    /// Goes back along a path that accepts a stack. Returns the steps that lead to the stack, in order, and
    /// the stack they start from.
    pub fn unwind(&self, path: &[u32]) -> (Vec<Action>, Vec<SymbolId>) {
        let mut actions = Vec::new();
        // Top last.
        let mut path: Vec<EdgeIndex> = path.iter().rev().copied().collect();
        loop {
            let top = path.pop().expect("a stack has a frame");
            match self.reasons[top as usize].1 {
                Why::Given => {
                    path.push(top);
                    break;
                }
                Why::Step(from, action) => {
                    actions.extend(action);
                    path.push(from);
                }
                Why::Entered => {
                    let below = path.pop().expect("a procedure has a caller");
                    let Why::Below(from, action) = self.reasons[below as usize].1 else {
                        panic!("below the frame of an entered procedure is that of its caller");
                    };
                    actions.extend(action);
                    path.push(from);
                }
                Why::Uncovered(popped, below) => {
                    let Why::Popped(from, action) = self.reasons[popped as usize].1 else {
                        panic!("an edge that reads nothing comes from a return");
                    };
                    actions.extend(action);
                    path.push(below);
                    path.push(from);
                }
                Why::Below(..) | Why::Popped(..) => panic!("such an edge is never on top"),
            }
        }
        actions.reverse();
        let word = path.iter().rev().map(|&edge| self.edges[edge as usize].letter).collect();
        (actions, word)
    }
}
