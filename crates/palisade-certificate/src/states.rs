//! Proofs by visiting all states.
//!
//! An engine that searches forward says `safe` after leaving out states that cannot matter. What convinces is to leave out none: every state that the trusted machine
//! reaches, step by step, with buffers of any length, is visited here and none is bad. Nothing of the engine is believed, not even that the states are finitely many: if they are not,
//! the budget runs out.

use crate::{Refusal, Summary};
use palisade_engine::{Budget, Task};
use palisade_memory::State;
use rustc_hash::FxHashSet;

/// How often the budget is asked.
const STATES_BETWEEN_LOOKS: usize = 1024;

/// Visits all states of the task.
pub(crate) fn verify(task: &Task<'_>, budget: &Budget) -> Result<Summary, Refusal> {
    if task.is_parameterized() {
        return Err(Refusal::Unsuited("any number of processes has no end of states".into()));
    }
    let system = task.system(1);
    let machine = task.machine(&system);
    let mut summary = Summary::default();
    let mut visited: FxHashSet<State> = FxHashSet::default();
    let mut open: Vec<State> = Vec::new();
    let mut bytes = 0;
    for state in machine.initial_states() {
        visit(state, &mut visited, &mut open, &mut bytes);
        // Initial states alone may be many.
        if visited.len().is_multiple_of(STATES_BETWEEN_LOOKS) {
            budget.check(bytes).map_err(Refusal::Exhausted)?;
        }
    }
    while let Some(state) = open.pop() {
        if machine.violation(&state).is_some() {
            return Err(Refusal::BadReached);
        }
        summary.elements += 1;
        if summary.elements.is_multiple_of(STATES_BETWEEN_LOOKS) {
            budget.check(bytes).map_err(Refusal::Exhausted)?;
        }
        for successor in machine.successors(&state) {
            summary.predecessors += 1;
            visit(successor.state, &mut visited, &mut open, &mut bytes);
        }
    }
    Ok(summary)
}

fn visit(state: State, visited: &mut FxHashSet<State>, open: &mut Vec<State>, bytes: &mut u64) {
    if !visited.contains(&state) {
        *bytes += size(&state);
        visited.insert(state.clone());
        open.push(state);
    }
}

/// About how many bytes a state takes, in the table and while it is open.
fn size(state: &State) -> u64 {
    let threads = state.threads.iter().map(|thread| {
        let registers: usize = thread.frames.iter().map(|frame| 96 + frame.registers.len() * 8).sum();
        64 + registers + thread.buffer.len() * 24
    });
    let all: usize = 160 + state.memory.len() * 8 + threads.sum::<usize>();
    2 * all as u64
}
