//! Runs that go on forever: a stem, and a cycle that a fair scheduler can repeat.
//!
//! A lasso is a [`Run`] whose last steps lead from a state back to the same state. All that is checked here is
//! checked by the machine of `palisade-memory`: that each step is possible, that the cycle is fair, and that
//! repeating it forever violates a property. The program is lowered with
//! [`palisade_program::lower_retrying`].

use crate::{Replay, ReplayError, Run, take};
use palisade_memory::{Machine, Unfair, Violation};

/// Executes the steps of a run and checks that its last steps are a cycle that violates a property if a fair
/// scheduler repeats it forever. Of several such cycles, takes the shortest one, and the first property.
pub fn replay_lasso(machine: Machine<'_>, run: &Run) -> Result<Replay, ReplayError> {
    let replay = take(machine, run)?;
    let last = &replay.states[run.steps.len()];
    let mut why = ReplayError::NotFair(Unfair::NoCycle);
    let starts = (0..=run.steps.len()).rev().filter(|&from| replay.states[from] == *last);
    for from in starts {
        match violated(machine, run, &replay, from, None) {
            Ok(violation) => return Ok(Replay { violation: Some(violation), ..replay }),
            // A run that does not stop at its end may still have a cycle.
            Err(error) if from < run.steps.len() || run.steps.is_empty() => why = error,
            Err(_) => {}
        }
    }
    Err(why)
}

/// The same for a cycle that begins after the given number of steps, and for one property.
pub fn replay_lasso_from(
    machine: Machine<'_>,
    run: &Run,
    from: usize,
    property: usize,
) -> Result<Replay, ReplayError> {
    let replay = take(machine, run)?;
    if from > run.steps.len() {
        return Err(ReplayError::NotFair(Unfair::NoCycle));
    }
    let violation = violated(machine, run, &replay, from, Some(property))?;
    Ok(Replay { violation: Some(violation), ..replay })
}

/// What is violated if the steps after the given number are repeated forever.
fn violated(
    machine: Machine<'_>,
    run: &Run,
    replay: &Replay,
    from: usize,
    property: Option<usize>,
) -> Result<Violation, ReplayError> {
    let steps = &run.steps[from..];
    let states = machine.is_fair_cycle(&replay.states[from], steps).map_err(ReplayError::NotFair)?;
    let mut properties = machine.system.fair.iter().enumerate();
    let violated = properties.find(|(index, fair)| {
        property.is_none_or(|wanted| wanted == *index) && machine.violates_forever(&states, steps, &fair.kind)
    });
    let (property, _) = violated.ok_or(ReplayError::Harmless)?;
    Ok(Violation::Forever { property, from })
}
