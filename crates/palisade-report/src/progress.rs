//! Answers about deadlocks and about what must stay reachable: where each process waits, and for what.

use crate::explain::quote;
use crate::{Explain, explain};
use palisade_base::Span;
use palisade_engine::{DeadlockFreedom, FairProgress, GoalsReachable};
use palisade_program::Value;
use palisade_program::running::{CellId, EdgeId, GoalKind, ThreadId};
use palisade_trace::{Awaited, Evidence};

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
    let goal = &evidence.machine.system.goals[goal];
    if evidence.addresses.is_some() {
        let what = match goal.kind {
            GoalKind::End => "some threads can never end",
            GoalKind::Condition { .. } if evidence.run.steps.is_empty() => "`main` can never finish",
            GoalKind::Condition { .. } => "`main` can no longer finish",
        };
        return format!("{what}: {}", places(evidence));
    }
    let span = goal.span;
    let line = evidence.source.line_in_words(span).map(|line| format!(" ({line})"));
    let written = quote(evidence.source.slice(span));
    format!("{written}{} is out of reach: {}", line.unwrap_or_default(), places(evidence))
}

/// Where the processes that have not ended are in the last state.
fn places(evidence: &Evidence<'_>) -> String {
    let (machine, state) = (evidence.machine, evidence.last_state());
    let running = state.threads.iter_enumerated().filter(|(_, thread)| !thread.has_ended(machine.system));
    let parts: Vec<String> = running.filter_map(|(thread, _)| place(evidence, thread)).collect();
    if parts.is_empty() { "all processes have ended".to_owned() } else { parts.join("; ") }
}

/// Where a process is, and what it waits for. `None` if it was never started.
fn place(evidence: &Evidence<'_>, id: ThreadId) -> Option<String> {
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
        None => text += " at its end",
    }
    let mut what = Vec::new();
    for (cell, value) in reads.unwrap_or_default() {
        let awaited = edge.and_then(|edge| awaited(evidence, edge.span, cell, value));
        what.push(match awaited {
            Some(Awaited::Start) => return None,
            Some(Awaited::Ends(threads)) => format!("for {} to end", list(&running(evidence, threads))),
            Some(Awaited::Other(words)) => words,
            None => format!("{} is {}", machine.system.cells[cell].name, evidence.value(cell, value)),
        });
    }
    if !what.is_empty() {
        text += &format!(" ({})", what.join(", "));
    }
    Some(text)
}

/// What a process waits for at a place where it reads a value, if it is a C program.
fn awaited(evidence: &Evidence<'_>, place: Span, cell: CellId, value: Value) -> Option<Awaited> {
    let cell = &evidence.machine.system.cells[cell];
    evidence.addresses?.awaited(place, cell.address, &cell.name, value)
}

/// Those of the processes that have not ended.
fn running(evidence: &Evidence<'_>, names: Vec<String>) -> Vec<String> {
    let (system, threads) = (evidence.machine.system, &evidence.last_state().threads);
    let ended = |name: &String| {
        threads.iter_enumerated().any(|(id, thread)| evidence.name(id) == *name && thread.has_ended(system))
    };
    names.into_iter().filter(|name| !ended(name)).collect()
}

/// `a, b and c`
fn list(names: &[String]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}
