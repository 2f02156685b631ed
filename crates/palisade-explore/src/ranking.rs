//! Proofs that a program is free of deadlocks and that its goals stay reachable: rankings of all states.
//!
//! *Problem.* For each state of the machine, how many steps are needed to reach a goal? For deadlocks: to a
//! step that moves, or to the end of all threads. See [`Ranking`] for how states are numbered, and
//! `palisade-certificate` for what a ranking proves.
//!
//! *How.* Breadth-first search over whole states, then a backward pass for each goal. Nothing is left out, and
//! buffers are not bounded: if they grow without bound, the limits are reached.

use palisade_engine::proof::Ranking;
use palisade_engine::{Exhausted, Limits, Pace, Task};
use palisade_memory::{Action, Machine, State, Successor};
use palisade_program::lower_retrying;
use std::collections::HashMap;
use std::sync::Arc;

/// A ranking of all states, or `None` if a deadlock or a state without a way to a goal is reachable.
pub fn ranking(task: &Task<'_>, deadlocks: bool, limits: &Limits) -> Result<Option<Ranking>, Exhausted> {
    let system = limits.within(|| lower_retrying(task.program, task.instantiation(1)))?;
    let machine = task.machine(&system);
    let graph = Graph::new(machine, limits)?;
    let over = |state: &State| state.fault.is_some();
    let ended = |state: &State| state.threads.iter().all(|thread| thread.has_ended(&system));
    let deadlock = match deadlocks {
        true => {
            let is_there = |index: usize, state: &State| graph.moves[index] || over(state) || ended(state);
            match graph.distances(is_there) {
                Some(ranks) => Some(ranks),
                None => return Ok(None),
            }
        }
        false => None,
    };
    let goals = system.goals.iter();
    let goals = goals.map(|goal| graph.distances(|_, state| over(state) || machine.satisfies(state, goal)));
    let goals: Option<Vec<Vec<u32>>> = limits.within(|| goals.collect())?;
    Ok(goals.map(|goals| Ranking { deadlock, goals }))
}

/// All states and the steps between them.
struct Graph {
    states: Vec<Arc<State>>,
    /// For each state, the states from which a step leads to it.
    before: Vec<Vec<u32>>,
    /// Whether a step that moves leads out of the state.
    moves: Vec<bool>,
}

impl Graph {
    fn new(machine: Machine<'_>, limits: &Limits) -> Result<Graph, Exhausted> {
        let mut graph = Graph { states: Vec::new(), before: Vec::new(), moves: Vec::new() };
        let mut numbers: HashMap<Arc<State>, u32> = HashMap::new();
        let mut pace = Pace::new();
        let mut bytes = 0;
        for state in machine.initial_states() {
            graph.number(state, &mut numbers, &mut bytes);
        }
        let mut next = 0;
        while next < graph.states.len() {
            limits.check_often(&mut pace, || bytes)?;
            limits.check_work(next as u64)?;
            let state = graph.states[next].clone();
            for successor in machine.successors(&state) {
                graph.moves[next] |= does_move(machine, &state, &successor);
                let to = graph.number(successor.state, &mut numbers, &mut bytes);
                graph.before[to as usize].push(next as u32);
                bytes += 4;
            }
            next += 1;
        }
        Ok(graph)
    }

    fn number(&mut self, state: State, numbers: &mut HashMap<Arc<State>, u32>, bytes: &mut u64) -> u32 {
        if let Some(&number) = numbers.get(&state) {
            return number;
        }
        let threads = state.threads.iter().map(|thread| {
            let registers = thread.frames.iter().map(|frame| 64 + 8 * frame.registers.len());
            96 + 24 * thread.buffer.len() + registers.sum::<usize>()
        });
        *bytes += (192 + 8 * state.memory.len() + threads.sum::<usize>()) as u64;
        let (number, state) = (self.states.len() as u32, Arc::new(state));
        numbers.insert(state.clone(), number);
        self.states.push(state);
        self.before.push(Vec::new());
        self.moves.push(false);
        number
    }

    /// How many steps lead from each state to one that is there, or `None` if no steps do from some state.
    fn distances(&self, is_there: impl Fn(usize, &State) -> bool) -> Option<Vec<u32>> {
        let mut ranks: Vec<Option<u32>> = self
            .states
            .iter()
            .enumerate()
            .map(|(index, state)| {
                palisade_base::limits::checkpoint();
                is_there(index, state).then_some(0)
            })
            .collect();
        let mut level: Vec<usize> = (0..ranks.len()).filter(|&index| ranks[index].is_some()).collect();
        let mut rank = 0;
        while !level.is_empty() {
            rank += 1;
            let mut next = Vec::new();
            for &earlier in level.iter().flat_map(|&index| &self.before[index]) {
                if ranks[earlier as usize].is_none() {
                    ranks[earlier as usize] = Some(rank);
                    next.push(earlier as usize);
                }
            }
            level = next;
        }
        ranks.into_iter().collect()
    }
}

/// Whether a step does more than try a wait again.
fn does_move(machine: Machine<'_>, state: &State, successor: &Successor) -> bool {
    let Action::Execute { edge, .. } = successor.step.action else { return true };
    let code = &machine.system.codes[state.threads[successor.step.thread].top().code];
    !code.attempts.contains(&edge) || successor.state.memory != state.memory
}
