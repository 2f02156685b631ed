//! Deadlocks and goals, checked by visiting all states of the machine.
//!
//! This shares nothing with the engines: it takes the steps of `palisade-memory` one by one and keeps whole
//! states. It needs no data from the engine that answered.
//!
//! *What is checked* ([`verify_progress`]), over the program lowered with retries:
//! 1. The set of states contains the initial states and is closed under steps.
//! 2. No deadlock: from each state in which some thread has not ended, a step is reachable that moves. A step
//!    moves unless it belongs to an attempt of a wait and leaves memory as it is.
//! 3. Goals: from each state, each goal is reachable.
//!
//! Points 2 and 3 are decided by marking states backwards, so a mark is a step towards a marked state: the
//! order in which states are marked is a ranking. States with a fault are not judged.
//!
//! *Limits.* Where buffers grow without bound there are infinitely many states, and the limits are reached.

use crate::{Refusal, Summary};
use palisade_engine::{Exhausted, Limits, Pace, Task};
use palisade_memory::{Action, Machine, State, Successor};
use palisade_program::lower_retrying;
use palisade_program::running::Goal;
use rustc_hash::FxHashMap;

/// Whether a goal is reachable from a state.
pub fn can_reach(
    machine: Machine<'_>,
    from: &State,
    goal: &Goal,
    limits: &Limits,
) -> Result<bool, Exhausted> {
    let states = States::reach(machine, [from.clone()], limits, |state| machine.satisfies(state, goal))?;
    Ok(states.found)
}

/// Checks that a program has no deadlock, if that is asked, and that all its goals stay reachable.
pub fn verify_progress(task: &Task<'_>, deadlocks: bool, limits: &Limits) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited("any number of processes has no end of states".into()));
    }
    let system = lower_retrying(task.program, task.instantiation(1));
    let machine = task.machine(&system);
    let states =
        States::reach(machine, machine.initial_states(), limits, |_| false).map_err(Refusal::Exhausted)?;
    let ended = |state: &State| state.threads.iter().all(|thread| thread.has_ended(&system));
    if deadlocks && !states.all_lead_to(|index| states.moves[index] || ended(&states.states[index])) {
        return Err(Refusal::Deadlock);
    }
    for goal in &system.goals {
        if !states.all_lead_to(|index| machine.satisfies(&states.states[index], goal)) {
            return Err(Refusal::OutOfReach);
        }
    }
    let steps: usize = states.before.iter().map(Vec::len).sum();
    Ok(Summary { elements: states.states.len(), predecessors: steps as u64 })
}

/// States that are closed under steps.
struct States {
    states: Vec<State>,
    /// For each state, the states from which a step leads to it.
    before: Vec<Vec<u32>>,
    /// Whether a step that moves leads out of the state.
    moves: Vec<bool>,
    /// Whether a state that is looked for was found. Then the states are not closed.
    found: bool,
}

impl States {
    fn reach(
        machine: Machine<'_>,
        from: impl IntoIterator<Item = State>,
        limits: &Limits,
        stop: impl Fn(&State) -> bool,
    ) -> Result<States, Exhausted> {
        let mut found = States { states: Vec::new(), before: Vec::new(), moves: Vec::new(), found: false };
        let mut numbers: FxHashMap<State, u32> = FxHashMap::default();
        let mut pace = Pace::new();
        let mut bytes = 0;
        for state in from {
            found.number(state, &mut numbers, &mut bytes);
        }
        let mut next = 0;
        while next < found.states.len() {
            limits.check_often(&mut pace, || bytes)?;
            limits.check_work(next as u64)?;
            let state = found.states[next].clone();
            if stop(&state) {
                found.found = true;
                return Ok(found);
            }
            for successor in machine.successors(&state) {
                found.moves[next] |= does_move(machine, &state, &successor);
                let to = found.number(successor.state, &mut numbers, &mut bytes);
                found.before[to as usize].push(next as u32);
            }
            next += 1;
        }
        Ok(found)
    }

    fn number(&mut self, state: State, numbers: &mut FxHashMap<State, u32>, bytes: &mut u64) -> u32 {
        if let Some(&number) = numbers.get(&state) {
            return number;
        }
        // Each state is kept twice: by its number, and to be found.
        let frames = state.threads.iter().map(|thread| {
            let registers = thread.frames.iter().map(|frame| 64 + 8 * frame.registers.len());
            96 + 24 * thread.buffer.len() + registers.sum::<usize>()
        });
        *bytes += 2 * (128 + 8 * state.memory.len() + frames.sum::<usize>()) as u64;
        let number = self.states.len() as u32;
        numbers.insert(state.clone(), number);
        self.states.push(state);
        self.before.push(Vec::new());
        self.moves.push(false);
        number
    }

    /// Whether each state without a fault leads to a marked one.
    fn all_lead_to(&self, is_marked: impl Fn(usize) -> bool) -> bool {
        let mut marked: Vec<bool> = (0..self.states.len()).map(is_marked).collect();
        let mut open: Vec<usize> = (0..marked.len()).filter(|&index| marked[index]).collect();
        while let Some(index) = open.pop() {
            for &earlier in &self.before[index] {
                if !std::mem::replace(&mut marked[earlier as usize], true) {
                    open.push(earlier as usize);
                }
            }
        }
        self.states.iter().zip(marked).all(|(state, marked)| marked || state.fault.is_some())
    }
}

/// Whether a step does more than try a wait again.
fn does_move(machine: Machine<'_>, state: &State, successor: &Successor) -> bool {
    let Action::Execute { edge, .. } = successor.step.action else { return true };
    let code = &machine.system.codes[state.threads[successor.step.thread].top().code];
    !code.attempts.contains(&edge) || successor.state.memory != state.memory
}
