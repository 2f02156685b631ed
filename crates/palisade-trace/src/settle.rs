//! Moves updates as early and local steps as late as possible in a run, and transfers runs to a program with
//! other fences.
//!
//! *Problem.* If a store waits longer than it has to, the run seems to depend on that wait. A search for
//! fences that forbid the run then gets too many answers.
//!
//! *Method.* The stores are handled one by one. Each update is moved directly after its store, or to the
//! earliest place after it where the result is still a run that satisfies the caller's condition. This is
//! checked on the machine each time. Then each local step, which concerns only its own thread, is moved
//! directly before the next non-local step of its thread, or to the end of the run. So whatever it waits for
//! can happen before it.
//!
//! [`settle`] and [`transfer`] identify a store by the step that issued it, because its position in the
//! buffer depends on the stores and barriers before it.

use crate::shorten::follow;
use crate::{Run, take};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Effect, Machine, Step};
use palisade_program::Value;
use palisade_program::running::{Instr, ThreadId};

/// How many machine steps are spent on one run.
const WORK: usize = 500_000;

/// A step. An update identifies its store by the step that issued it.
#[derive(Clone, Copy)]
enum StableStep {
    Execute { id: usize, step: Step },
    Update { thread: ThreadId, store: usize },
}

/// In which order stores are handled. Moving one update earlier may prevent moving another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Priority {
    /// From the first store of the run to the last.
    First,
    /// From the last store to the first.
    Last,
}

/// Moves updates as early as possible and local steps as late as possible, as long as `still` holds for the
/// run. Stores that never reached memory get an update too. A run that cannot be replayed is returned
/// unchanged.
pub fn settle(machine: Machine<'_>, run: Run, priority: Priority, still: &dyn Fn(&Run) -> bool) -> Run {
    let early = early_stores(machine, run, priority, still);
    late_locals(machine, &early).filter(|run| take(machine, run).is_ok() && still(run)).unwrap_or(early)
}

/// The run with local steps moved later. Local steps of other threads that would follow a fault are left out.
fn late_locals(machine: Machine<'_>, run: &Run) -> Option<Run> {
    let replay = take(machine, run).ok()?;
    let mut waiting: Vec<Vec<Step>> = Vec::new();
    let mut steps = Vec::with_capacity(run.steps.len());
    for (index, &step) in run.steps.iter().enumerate() {
        limits::checkpoint();
        let before = &replay.states[index];
        waiting.resize(before.threads.len(), Vec::new());
        let Action::Execute { edge, .. } = step.action else {
            steps.push(step);
            continue;
        };
        let code = &machine.system.codes[before.threads[step.thread].top().code];
        // While an atomic section is open, no other thread does anything.
        let opens = matches!(code.edges()[edge].instr, Instr::AtomicBegin | Instr::AtomicEnd);
        if replay.effects[index] == Effect::Local && !opens {
            waiting[step.thread.index()].push(step);
        } else {
            steps.append(&mut waiting[step.thread.index()]);
            steps.push(step);
        }
    }
    if replay.states[run.steps.len()].fault.is_none() {
        steps.extend(waiting.into_iter().flatten());
    }
    Some(Run { memory: run.memory.clone(), steps })
}

fn early_stores(machine: Machine<'_>, run: Run, priority: Priority, still: &dyn Fn(&Run) -> bool) -> Run {
    let Some(mut steps) = named(machine, &run) else { return run };
    let mut best = run;
    let mut stores: Vec<(usize, ThreadId)> = stores(machine, &best.memory, &steps);
    if priority == Priority::Last {
        stores.reverse();
    }
    let mut work = WORK;
    for (store, thread) in stores {
        let is_its_update =
            |step: &StableStep| matches!(step, StableStep::Update { store: s, .. } if *s == store);
        let is_the_store = |step: &StableStep| matches!(step, StableStep::Execute { id, .. } if *id == store);
        let issued = steps.iter().position(is_the_store).expect("no store is left out");
        let late = steps.iter().position(is_its_update);
        let mut rest = steps.clone();
        if let Some(late) = late {
            rest.remove(late);
        }
        for place in issued + 1..late.unwrap_or(steps.len() + 1) {
            limits::checkpoint();
            if work < 2 * steps.len() {
                return best;
            }
            work -= 2 * steps.len();
            let mut candidate = rest.clone();
            candidate.insert(place, StableStep::Update { thread, store });
            let taken = perform(machine, &best.memory, &candidate).filter(|run| still(run));
            if let Some(run) = taken {
                (best, steps) = (run, candidate);
                break;
            }
        }
    }
    best
}

/// The same run in another program. The two programs have the same edges, and differ only in instructions
/// that concern buffers. `None` if the other program has no such run.
pub fn transfer(from: Machine<'_>, to: Machine<'_>, run: &Run) -> Option<Run> {
    perform(to, &run.memory, &named(from, run)?)
}

/// The steps of a run with their stores identified; `None` if the run cannot be replayed.
fn named(machine: Machine<'_>, run: &Run) -> Option<Vec<StableStep>> {
    let mut state = machine.initial_state(&run.memory)?;
    let mut shadows: Vec<Vec<Option<usize>>> = Vec::new();
    let mut steps = Vec::with_capacity(run.steps.len());
    for (id, &step) in run.steps.iter().enumerate() {
        limits::checkpoint();
        let (next, _) = machine.step(&state, step).ok()?;
        shadows.resize(next.threads.len(), Vec::new());
        let shadow = &mut shadows[step.thread.index()];
        steps.push(match step.action {
            Action::Execute { .. } => StableStep::Execute { id, step },
            Action::Update { position } => {
                let store = shadow[position].expect("only stores reach memory");
                StableStep::Update { thread: step.thread, store }
            }
        });
        follow(shadow, id, step.action, &next.threads[step.thread].buffer);
        state = next;
    }
    Some(steps)
}

/// The steps that put a store into a buffer. Barriers do not count.
fn stores(machine: Machine<'_>, memory: &[Value], steps: &[StableStep]) -> Vec<(usize, ThreadId)> {
    let mut found = Vec::new();
    perform_and(machine, memory, steps, &mut |store, thread| found.push((store, thread)));
    found
}

fn perform(machine: Machine<'_>, memory: &[Value], steps: &[StableStep]) -> Option<Run> {
    perform_and(machine, memory, steps, &mut |_, _| {})
}

/// Executes all steps; `None` if one is not possible. Calls back for every store that enters a buffer.
fn perform_and(
    machine: Machine<'_>,
    memory: &[Value],
    steps: &[StableStep],
    stored: &mut dyn FnMut(usize, ThreadId),
) -> Option<Run> {
    let mut state = machine.initial_state(memory)?;
    let mut shadows: Vec<Vec<Option<usize>>> = Vec::new();
    let mut run = Run { memory: memory.to_vec(), steps: Vec::with_capacity(steps.len()) };
    for &step in steps {
        limits::checkpoint();
        shadows.resize(state.threads.len(), Vec::new());
        let (id, step) = match step {
            StableStep::Execute { id, step } => (id, step),
            StableStep::Update { thread, store } => {
                let shadow = shadows.get(thread.index())?;
                let position = shadow.iter().position(|entry| *entry == Some(store))?;
                (store, Step { thread, action: Action::Update { position } })
            }
        };
        let (next, _) = machine.step(&state, step).ok()?;
        let shadow = shadows.get_mut(step.thread.index())?;
        let before = shadow.len();
        follow(shadow, id, step.action, &next.threads[step.thread].buffer);
        if shadow.len() > before && shadow.last() == Some(&Some(id)) {
            stored(id, step.thread);
        }
        run.steps.push(step);
        state = next;
    }
    Some(run)
}
