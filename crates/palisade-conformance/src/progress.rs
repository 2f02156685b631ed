//! Deadlocks and `live` by brute force, on the explicit graph of all states.
//!
//! *Definitions*, over the machine of `palisade-memory` and a program lowered with
//! [`palisade_program::lower_retrying`]:
//! - A step *moves* unless it belongs to an attempt of a wait and leaves memory as it is.
//! - A state is *stuck* if there is no fault in it, not all threads have ended, and no step that moves is
//!   reachable from it. A program without reachable stuck states is free of deadlocks.
//! - A goal is *live* if it is reachable from every reachable state in which there is no fault.
//!
//! *Guarantee.* An answer other than [`Answer::Inconclusive`] is correct if `palisade-memory` is. Stuck
//! states are found by a search over all steps of all threads, not thread by thread as [`Machine::is_stuck`]
//! does.

use crate::brute::{Answer, Scope, Search, reachable};
use palisade_memory::{Action, Machine, State, Successor};
use palisade_program::running::Goal;
use rustc_hash::FxHashMap;

/// All reachable states and the steps between them.
#[derive(Debug)]
pub struct Graph<'a> {
    machine: Machine<'a>,
    search: Search,
    /// For each state, the states from which a step leads to it.
    before: Vec<Vec<usize>>,
    /// Whether a step that moves leads out of the state.
    moves: Vec<bool>,
}

impl<'a> Graph<'a> {
    /// The graph, or `None` if a limit was hit.
    pub fn new(machine: Machine<'a>, limits: Scope) -> Option<Graph<'a>> {
        let search = reachable(machine, limits);
        if !search.complete {
            return None;
        }
        let states = &search.states;
        let numbers: FxHashMap<&State, usize> =
            states.iter().enumerate().map(|(number, state)| (state, number)).collect();
        let mut before = vec![Vec::new(); states.len()];
        let mut moves = vec![false; states.len()];
        for (number, state) in states.iter().enumerate() {
            for successor in machine.successors(state) {
                before[numbers[&successor.state]].push(number);
                moves[number] |= does_move(machine, state, &successor);
            }
        }
        Some(Graph { machine, search, before, moves })
    }

    /// All states.
    pub fn states(&self) -> &[State] {
        &self.search.states
    }

    /// Whether each state is stuck.
    pub fn stuck(&self) -> Vec<bool> {
        let can_move = self.leads_to(self.moves.clone());
        let stuck = self.states().iter().zip(can_move).map(|(state, can_move)| {
            let ended = state.threads.iter().all(|thread| thread.has_ended(self.machine.system));
            !can_move && !ended && state.fault.is_none()
        });
        stuck.collect()
    }

    /// Whether the goal is reachable from each state.
    pub fn can_reach(&self, goal: &Goal) -> Vec<bool> {
        self.leads_to(self.states().iter().map(|state| self.machine.satisfies(state, goal)).collect())
    }

    /// Whether there is a stuck state.
    pub fn deadlock(&self) -> Answer {
        self.answer(&self.stuck())
    }

    /// Whether the goal is live.
    pub fn live(&self, goal: &Goal) -> Answer {
        let hopeless = self.states().iter().zip(self.can_reach(goal));
        let hopeless: Vec<bool> =
            hopeless.map(|(state, can_reach)| !can_reach && state.fault.is_none()).collect();
        self.answer(&hopeless)
    }

    fn answer(&self, bad: &[bool]) -> Answer {
        match bad.iter().position(|&bad| bad) {
            Some(first) => Answer::Unsafe(self.search.run_to(first)),
            None => Answer::Safe,
        }
    }

    /// The states from which one of the marked states is reachable.
    fn leads_to(&self, mut marked: Vec<bool>) -> Vec<bool> {
        let mut open: Vec<usize> = (0..marked.len()).filter(|&state| marked[state]).collect();
        while let Some(state) = open.pop() {
            for &earlier in &self.before[state] {
                if !std::mem::replace(&mut marked[earlier], true) {
                    open.push(earlier);
                }
            }
        }
        marked
    }
}

/// Whether a step moves.
fn does_move(machine: Machine<'_>, state: &State, successor: &Successor) -> bool {
    let Action::Execute { edge, .. } = successor.step.action else { return true };
    let code = &machine.system.codes[state.threads[successor.step.thread].top().code];
    !code.attempts.contains(&edge) || successor.state.memory != state.memory
}

/// Whether the program has a deadlock.
pub fn deadlock(machine: Machine<'_>, limits: Scope) -> Answer {
    Graph::new(machine, limits).map_or(Answer::Inconclusive, |graph| graph.deadlock())
}

/// Whether the goal is live.
pub fn live(machine: Machine<'_>, goal: &Goal, limits: Scope) -> Answer {
    Graph::new(machine, limits).map_or(Answer::Inconclusive, |graph| graph.live(goal))
}
