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
//! *Store buffers.* A store is *delayed* if it has not reached memory before the next step of a thread. A
//! delay costs as much as a preemption. As long as a buffer is not empty, further stores to it cost nothing
//! more, since they could not reach memory anyway. So within 0 all stores reach memory at once. The steps of
//! buffers cost nothing: when a delayed store reaches memory is free. A thread can continue if it is ready or
//! one of its buffers is, so a thread that waits for its buffer to be empty still counts as preempted.
//!
//! *Guarantee.* Every schedule with at most the given number of preemptions and delays is run once. There is
//! no partial-order reduction here: which of two equivalent schedules is kept depends on the bound, and a
//! search that reverses races would lose schedules within the bound. Traces are counted; several schedules
//! may have the same trace.

use crate::executions::{Executions, Preference, Request};
use crate::explore::{Limits, drop_elsewhere};
use crate::history::{History, Step};
use crate::plan::Choice;
use crate::recording::{Divergence, RecordedStep, Recording};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The result of a search within a number of preemptions and delayed stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PreemptionSummary {
    /// Schedules that were run.
    pub executions: u64,
    /// Distinct traces among them.
    pub traces: u64,
    /// Schedules cut at the limit on steps.
    pub cut: u64,
    /// Whether schedules were left out because they have more preemptions and delays.
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

/// A point of the search: what is still to be tried there, and what has led there.
struct Node {
    left: Vec<Choice>,
    turn: Turn,
}

/// What matters for the cost of the next step.
#[derive(Clone, Default)]
struct Turn {
    /// Preemptions and delays so far.
    spent: usize,
    /// The thread that took the last step of a thread.
    running: Option<usize>,
    /// Buffers that are not empty and whose delay is paid for.
    delayed: Vec<usize>,
}

impl Turn {
    /// The buffers that would be delayed by a step of a thread at this position.
    fn newly_delayed(&self, recording: &Recording, position: usize) -> impl Iterator<Item = usize> {
        let ready = move |&buffer: &usize| is_ready(recording, position, buffer);
        recording
            .buffers()
            .map(|(buffer, _)| buffer)
            .filter(ready)
            .filter(|buffer| !self.delayed.contains(buffer))
    }

    /// The cost of a step of a process at this position.
    fn cost(&self, recording: &Recording, position: usize, process: usize) -> usize {
        if recording.buffers().any(|(buffer, _)| buffer == process) {
            return 0;
        }
        let can_continue = |thread: usize| {
            let mut own = recording.buffers().filter(|(_, of)| *of == thread).map(|(buffer, _)| buffer);
            is_ready(recording, position, thread) || own.any(|buffer| is_ready(recording, position, buffer))
        };
        let preempted = self.running.is_some_and(|running| running != process && can_continue(running));
        usize::from(preempted) + self.newly_delayed(recording, position).count()
    }

    /// After the step at this position.
    fn after(&self, recording: &Recording, position: usize) -> Turn {
        let process = recording.steps[position].choice.process;
        let mut next = self.clone();
        if !recording.buffers().any(|(buffer, _)| buffer == process) {
            next.spent += self.cost(recording, position, process);
            next.running = Some(process);
            next.delayed.extend(self.newly_delayed(recording, position));
        }
        next.delayed.retain(|&buffer| recording.pending(position + 1, buffer).is_some());
        next
    }
}

fn is_ready(recording: &Recording, position: usize, process: usize) -> bool {
    recording.pending(position, process).is_some_and(|pending| pending.ready)
}

/// Runs all schedules with at most the given number of preemptions and delayed stores. If the program did not
/// repeat itself, the result says where. `visit` sees each schedule when it has ended; the last run was that
/// one.
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
        // At a point where a step was taken for the first time: the other outcomes of that step.
        let known = nodes.len();
        if let Some(last) = known.checked_sub(1).filter(|_| !path.is_empty()) {
            let taken = &recording.steps[last];
            if taken.choice.outcome == 0 {
                let process = taken.choice.process;
                nodes[last].left.extend((1..taken.outcomes).map(|outcome| Choice { process, outcome }));
            }
        }
        // The points that this run has opened.
        let mut is_within = true;
        for position in known..recording.len() {
            let turn = match position {
                0 => Turn::default(),
                _ => nodes[position - 1].turn.after(&recording, position - 1),
            };
            let taken = &recording.steps[position];
            let affordable = |process: usize| turn.spent + turn.cost(&recording, position, process) <= most;
            is_within = affordable(taken.choice.process);
            let mut left: Vec<Choice> = (1..taken.outcomes)
                .map(|outcome| Choice { process: taken.choice.process, outcome })
                .filter(|choice| is_within && *choice != taken.choice)
                .collect();
            for process in
                (0..recording.processes()).filter(|&process| is_ready(&recording, position, process))
            {
                if !affordable(process) {
                    within.left_out = true;
                } else if process != taken.choice.process {
                    left.push(Choice { process, outcome: 0 });
                }
            }
            nodes.push(Node { left, turn });
            if !is_within {
                break;
            }
        }
        if !is_within {
            // The run preferred a step that costs too much. There is always one that costs nothing.
            let node = nodes.last_mut().expect("the run took a step");
            let free = node.left.pop().expect("a buffer is ready, or a thread can take a step for free");
            path = recording.choices().take(nodes.len() - 1).chain([free]).collect();
            before = Some(recording);
            continue;
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

/// A step of a trace: its process and index, its outcome, and what happens before it.
type Event = (usize, u32, usize, Arc<[u32]>);

/// The trace of an execution: every step, by process and index, with its outcome and what happens before it.
/// `None` if the search is stopped.
fn trace(recording: &Recording, mut is_stopped: impl FnMut() -> bool) -> Option<Vec<Event>> {
    let mut history = History::default();
    for RecordedStep { choice, footprint, started, .. } in &recording.steps {
        if is_stopped() {
            return None;
        }
        let step = history.next_step(choice.process, choice.outcome, footprint.clone());
        history.push(step, started.clone());
    }
    let event = |step: Step| (step.process, step.number, step.outcome, step.clock);
    let mut trace: Vec<Event> = history.steps.into_iter().map(event).collect();
    trace.sort_unstable();
    Some(trace)
}
