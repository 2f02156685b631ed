//! Answers about deadlocks and about what must stay reachable: where each process waits, and for what.

use crate::explain::quote;
use crate::{Explain, explain};
use palisade_engine::{DeadlockFreedom, FairProgress, GoalsReachable};
use palisade_program::running::{EdgeId, ThreadId};
use palisade_trace::Evidence;

impl Explain for DeadlockFreedom {
    type Shows = ();
    const COMMAND: &'static str = "check";

    fn violation(evidence: &Evidence<'_>, (): &()) -> String {
        explain(evidence)
    }
}

impl Explain for GoalsReachable {
    type Shows = ();
    const COMMAND: &'static str = "check";

    fn violation(evidence: &Evidence<'_>, (): &()) -> String {
        explain(evidence)
    }
}

impl Explain for FairProgress {
    type Shows = ();
    const COMMAND: &'static str = "check";

    fn violation(evidence: &Evidence<'_>, (): &()) -> String {
        explain(evidence)
    }
}

/// What is known about progress, besides the verdict.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgressNote {
    /// What was found to stay possible, in words.
    pub holds: Vec<String>,
    /// Whether a stuck state was seen without being asked.
    pub stuck_state_seen: bool,
}

/// `deadlock: P waits at line 5: await x == 1 (x is 0); …`
pub(crate) fn deadlock(evidence: &Evidence<'_>) -> String {
    format!("deadlock: {}", places(evidence))
}

/// `live end (line 9) is out of reach: P waits at …`
pub(crate) fn out_of_reach(evidence: &Evidence<'_>, goal: usize) -> String {
    let span = evidence.machine.system.goals[goal].span;
    let line = evidence.source.line_in_words(span).map(|line| format!(" ({line})"));
    let written = quote(evidence.source.slice(span));
    format!("{written}{} is out of reach: {}", line.unwrap_or_default(), places(evidence))
}

/// Where the processes that have not ended are in the last state.
fn places(evidence: &Evidence<'_>) -> String {
    let (machine, state) = (evidence.machine, evidence.last_state());
    let running = state.threads.iter_enumerated().filter(|(_, thread)| !thread.has_ended(machine.system));
    let parts: Vec<String> = running.map(|(thread, _)| place(evidence, thread)).collect();
    if parts.is_empty() { "all processes have ended".to_owned() } else { parts.join("; ") }
}

/// Where a process is, and what it waits for.
fn place(evidence: &Evidence<'_>, id: ThreadId) -> String {
    let (machine, state) = (evidence.machine, evidence.last_state());
    let top = state.threads[id].top();
    let code = &machine.system.codes[top.code];
    let reads = machine.waits_for_good(state, id);
    let is = if reads.is_some() { "waits" } else { "is" };
    let mut text = format!("{} {is}", evidence.name(id));
    // A process that has read a value is where it read it.
    let edge = code.edges_from(top.location).map(EdgeId).next();
    let edge = edge.map(|edge| &code.edges()[edge]);
    let place = edge
        .and_then(|edge| Some((evidence.source.line_in_words(edge.span)?, evidence.source.row(edge.span)?)));
    match place {
        Some((line, row)) => text += &format!(" at {line}: {}", quote(evidence.source.line(row).trim())),
        None => text += " where its text ends",
    }
    let cells = reads.unwrap_or_default().into_iter();
    let values: Vec<String> =
        cells.map(|(cell, value)| format!("{} is {value}", machine.system.cells[cell].name)).collect();
    if !values.is_empty() {
        text += &format!(" ({})", values.join(", "));
    }
    text
}
