//! Executes the steps of a run one by one on the trusted machine.

use crate::Run;
use palisade_base::limits;
use palisade_memory::{Effect, Machine, Refusal, State, Unfair, Violation};

/// A replayed run: the states it passes through and what each step did.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The states. There is one more state than there are steps.
    pub states: Vec<State>,
    /// What each step did.
    pub effects: Vec<Effect>,
    /// Why the last state is bad, if it is.
    pub violation: Option<Violation>,
}

/// Why a run is not a witness.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// It does not start in an initial state.
    #[error("the run does not start in an initial state of the program")]
    NotInitial,
    /// A step is not possible. Steps are counted from 1.
    #[error("step {step} is not possible: {refusal}")]
    Refused {
        /// The number of the step, from 1.
        step: usize,
        /// Why it is not possible.
        refusal: Refusal,
    },
    /// All steps are possible, but the last state is not stuck.
    #[error("the state after step {steps}, the last one, is not a deadlock")]
    NotStuck {
        /// The number of steps.
        steps: usize,
    },
    /// All steps are possible, but they do not end with a cycle that a fair scheduler can repeat.
    #[error("the run does not end with a cycle that a fair scheduler can repeat forever: {0}")]
    NotFair(Unfair),
    /// The run can go on forever, but that violates nothing.
    #[error("the run can go on forever, but that violates nothing")]
    Harmless,
    /// All steps are possible, but the last state is not bad.
    #[error("the last state, after step {steps}, violates nothing")]
    NotBad {
        /// The number of steps.
        steps: usize,
    },
}

/// The run up to its first bad state. A run that cannot be replayed is returned unchanged.
pub fn until_bad(machine: Machine<'_>, mut run: Run) -> Run {
    let Some(mut state) = machine.initial_state(&run.memory) else { return run };
    for position in 0..run.steps.len() {
        limits::checkpoint();
        if machine.violation(&state).is_some() {
            run.steps.truncate(position);
            break;
        }
        match machine.step(&state, run.steps[position]) {
            Ok((next, _)) => state = next,
            Err(_) => break,
        }
    }
    run
}

/// Executes the steps of a run and checks that the last state is bad.
pub fn replay(machine: Machine<'_>, run: &Run) -> Result<Replay, ReplayError> {
    let replay = take(machine, run)?;
    match replay.violation {
        Some(_) => Ok(replay),
        None => Err(ReplayError::NotBad { steps: run.steps.len() }),
    }
}

/// Executes the steps of a run and checks that the last state is stuck. The program is lowered with
/// [`palisade_program::lower_retrying`].
pub fn replay_to_deadlock(machine: Machine<'_>, run: &Run) -> Result<Replay, ReplayError> {
    let replay = take(machine, run)?;
    if machine.is_stuck(&replay.states[run.steps.len()]) {
        Ok(Replay { violation: Some(Violation::Deadlock), ..replay })
    } else {
        Err(ReplayError::NotStuck { steps: run.steps.len() })
    }
}

/// Executes the steps of a run, whatever state they lead to.
pub fn take(machine: Machine<'_>, run: &Run) -> Result<Replay, ReplayError> {
    let mut states = vec![machine.initial_state(&run.memory).ok_or(ReplayError::NotInitial)?];
    let mut effects = Vec::with_capacity(run.steps.len());
    for (index, &step) in run.steps.iter().enumerate() {
        limits::checkpoint();
        let (next, effect) = machine
            .step(&states[index], step)
            .map_err(|refusal| ReplayError::Refused { step: index + 1, refusal })?;
        states.push(next);
        effects.push(effect);
    }
    let violation = machine.violation(&states[run.steps.len()]);
    Ok(Replay { states, effects, violation })
}
