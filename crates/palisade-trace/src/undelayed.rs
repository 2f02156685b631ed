//! Sequentially consistent runs as runs with store buffers.

use crate::Run;
use palisade_base::limits;
use palisade_memory::{Action, Effect, Machine, Step};

/// The run with the same instructions on a machine with store buffers, in which every store reaches memory at
/// once. `None` if it is not a run under SC.
pub fn undelayed(machine: Machine<'_>, run: &Run) -> Option<Run> {
    let mut state = machine.initial_state(&run.memory)?;
    let mut steps = Vec::with_capacity(run.steps.len());
    for &step in &run.steps {
        limits::checkpoint();
        let mut take = |step: Step| {
            let (next, effect) = machine.step(&state, step).ok()?;
            state = next;
            steps.push(step);
            Some(effect)
        };
        if let Effect::Buffered(..) = take(step)? {
            take(Step { thread: step.thread, action: Action::Update { position: 0 } })?;
        }
    }
    Some(Run { memory: run.memory.clone(), steps })
}
