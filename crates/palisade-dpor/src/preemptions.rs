//! All schedules with a bounded number of preemptions: a bounded search for programs that have too many
//! traces.
//!
//! *Problem.* A preemption is a step of another process while the process of the last step is ready to
//! continue. Most errors show with one or two preemptions, and there are only polynomially many such
//! schedules.
//!
//! *Source.* Musuvathi and Qadeer, "Iterative context bounding for systematic testing of multithreaded
//! programs", PLDI 2007.
//!
//! *Guarantee.* Every schedule with at most the given number of preemptions is run once. There is no
//! partial-order reduction here: which of two equivalent schedules is kept depends on the bound, and a search
//! that reverses races would lose schedules within the bound. Traces are counted; several schedules may have
//! the same trace.

use crate::executions::{Divergence, Executions, Preference, Recording, Request};
use crate::explore::{Limits, drop_elsewhere};
use crate::plan::Choice;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The result of a search within a number of preemptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PreemptionSummary {
    /// Schedules that were run.
    pub executions: u64,
    /// Distinct traces among them.
    pub traces: u64,
    /// Schedules cut at the limit on steps.
    pub cut: u64,
    /// Whether schedules were left out because they have more preemptions.
    pub left_out: bool,
    /// Whether the search was stopped before its end: by the visitor, or by the limit on executions.
    pub stopped: bool,
    /// Whether the search was stopped because the program did not repeat itself.
    pub broken: bool,
}

impl PreemptionSummary {
    /// Whether there are no other schedules at all.
    pub fn is_complete(&self) -> bool {
        self.cut == 0 && !self.left_out && !self.stopped && !self.broken
    }
}

/// A point of the search: what is still to be tried there, and the number of preemptions before it.
struct Node {
    left: Vec<Choice>,
    preemptions: usize,
}

/// Runs all schedules with at most the given number of preemptions. If the program did not repeat itself, the
/// result says where. `visit` sees each schedule when it has ended; the last run was that one.
pub fn explore_preemptions<E: Executions>(
    executions: &mut E,
    most: usize,
    limits: Limits,
    mut visit: impl FnMut(&mut E, &Recording) -> ControlFlow<()>,
) -> (PreemptionSummary, Option<Divergence>) {
    let mut within = PreemptionSummary::default();
    let mut divergence = None;
    let mut traces = HashSet::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut path: Vec<Choice> = Vec::new();
    let mut before: Option<Recording> = None;
    loop {
        if within.executions >= limits.executions {
            within.stopped = true;
            break;
        }
        let request = Request {
            choices: &path,
            asleep: &[],
            steps: limits.steps.max(path.len()),
            preference: Preference::SameProcess,
        };
        let recording = executions.run(&request);
        if executions.is_stopped() {
            within.stopped = true;
            drop_elsewhere((recording, before.take()));
            break;
        }
        let followed = recording.len() >= path.len() && recording.choices().zip(&path).all(|(a, b)| a == *b);
        let difference = before.as_ref().and_then(|before| before.difference(&recording));
        if !followed || difference.is_some() {
            within.broken = true;
            let before = before.as_ref().unwrap_or(&recording);
            divergence = difference.or_else(|| before.departure(&path, &recording));
            break;
        }
        // The points that this run has opened.
        let known = nodes.len();
        for position in known..recording.len() {
            let last = position.checked_sub(1).map(|last| recording.steps[last].choice.process);
            let preemptions = match position {
                0 => 0,
                _ => nodes[position - 1].preemptions + cost(&recording, position - 1),
            };
            let taken = &recording.steps[position];
            let ready =
                |process: usize| recording.pending(position, process).is_some_and(|pending| pending.ready);
            let goes_on = last.is_some_and(ready);
            let mut left: Vec<Choice> = (1..taken.outcomes)
                .map(|outcome| Choice { process: taken.choice.process, outcome })
                .filter(|choice| *choice != taken.choice)
                .collect();
            let others = (0..recording.processes()).filter(|&process| process != taken.choice.process);
            for process in others.filter(|&process| ready(process)) {
                if goes_on && last != Some(process) && preemptions + 1 > most {
                    within.left_out = true;
                } else {
                    left.push(Choice { process, outcome: 0 });
                }
            }
            nodes.push(Node { left, preemptions });
        }
        // At a point where a step was taken for the first time: the other outcomes of that step.
        if let Some(last) = known.checked_sub(1).filter(|_| !path.is_empty()) {
            let taken = &recording.steps[last];
            if taken.choice.outcome == 0 {
                let process = taken.choice.process;
                nodes[last].left.extend((1..taken.outcomes).map(|outcome| Choice { process, outcome }));
            }
        }
        within.executions += 1;
        within.cut += u64::from(recording.is_cut || recording.len() >= limits.steps);
        let Some(trace) = trace(&recording, || executions.is_stopped()) else {
            within.stopped = true;
            drop_elsewhere((recording, before.take()));
            break;
        };
        traces.insert(trace);
        if visit(executions, &recording).is_break() {
            within.stopped = true;
            break;
        }
        path = recording.choices().collect();
        before = Some(recording);
        loop {
            path.truncate(nodes.len());
            let Some(node) = nodes.last_mut() else { break };
            path.pop();
            match node.left.pop() {
                Some(choice) => {
                    path.push(choice);
                    break;
                }
                None => {
                    nodes.pop();
                }
            }
        }
        if nodes.is_empty() {
            break;
        }
    }
    within.traces = traces.len() as u64;
    (within, divergence)
}

/// Whether the step at a position is a preemption.
fn cost(recording: &Recording, position: usize) -> usize {
    let Some(last) = position.checked_sub(1).map(|last| recording.steps[last].choice.process) else {
        return 0;
    };
    let ready = recording.pending(position, last).is_some_and(|pending| pending.ready);
    usize::from(ready && recording.steps[position].choice.process != last)
}

/// A step of a trace: its process and index, its outcome, and what happens before it.
type Event = (usize, u32, usize, Vec<u32>);

/// The trace of an execution: every step, by process and index, with its outcome and what happens before it.
/// `None` if the search is stopped.
fn trace(recording: &Recording, mut is_stopped: impl FnMut() -> bool) -> Option<Vec<Event>> {
    let mut clocks: Vec<Vec<u32>> = Vec::with_capacity(recording.len());
    let mut trace = Vec::with_capacity(recording.len());
    for (position, step) in recording.steps.iter().enumerate() {
        if is_stopped() {
            return None;
        }
        let process = step.choice.process;
        let mut clock: Vec<u32> = Vec::new();
        for (earlier, other) in recording.steps[..position].iter().enumerate() {
            let before = other.choice.process == process
                || other.footprint.conflicts(&step.footprint)
                || other.started.contains(&process);
            if before {
                let from = &clocks[earlier];
                clock.resize(clock.len().max(from.len()), 0);
                clock.iter_mut().zip(from).for_each(|(into, from)| *into = (*into).max(*from));
            }
        }
        clock.resize(clock.len().max(process + 1), 0);
        clock[process] += 1;
        trace.push((process, clock[process], step.choice.outcome, clock.clone()));
        clocks.push(clock);
    }
    trace.sort();
    Some(trace)
}
