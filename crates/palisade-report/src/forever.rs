//! Runs that go on forever: what each process does in the cycle that is repeated.

use crate::explain::{enumeration, quote};
use palisade_base::Source;
use palisade_memory::{Action, Effect, Violation};
use palisade_program::Value;
use palisade_program::running::{CellId, Edge, EdgeId, FairKind, ThreadId};
use palisade_trace::Evidence;
use std::collections::{BTreeMap, BTreeSet};

/// The line before the steps that are repeated.
pub(crate) const FROM_HERE: &str = "from here on, forever:";
/// The line at the end of a run that stops too early.
pub(crate) const NOTHING_MOVES: &str = "from here on, forever: no process can move";

/// The index of the first step of the cycle that is repeated forever, if there is one.
pub(crate) fn first_step(evidence: &Evidence<'_>) -> Option<usize> {
    match evidence.replay.violation {
        Some(Violation::Forever { from, .. }) => Some(from),
        _ => None,
    }
}

/// `does not terminate: P waits at line 5: await x == 1 (x is 0)` or `P never leaves w …`.
pub(crate) fn explain(evidence: &Evidence<'_>, property: usize, from: usize) -> String {
    let fair = &evidence.machine.system.fair[property];
    let line = evidence.source.line_in_words(fair.span).map(|line| format!(" ({line})"));
    let what = match &fair.kind {
        FairKind::Terminates => "does not terminate".to_owned(),
        FairKind::Leaves { thread, stay } => {
            format!("{} never leaves {}", evidence.name(*thread), stay.label)
        }
    };
    let cycle = Cycle { evidence, from };
    let threads = evidence.last_state().threads.ids();
    let parts: Vec<String> = threads.filter_map(|thread| cycle.part(thread)).collect();
    let when = if from == evidence.run.steps.len() { "in the end" } else { "forever" };
    format!("{what}{}; {when}, {}", line.unwrap_or_default(), parts.join("; "))
}

/// How many steps come before the cycle, and how many the cycle has.
pub(crate) fn json(evidence: &Evidence<'_>) -> Option<(&'static str, serde_json::Value)> {
    let from = first_step(evidence)?;
    let cycle = evidence.run.steps.len() - from;
    Some(("lasso", serde_json::json!({ "stem_steps": from, "cycle_steps": cycle })))
}

struct Cycle<'a> {
    evidence: &'a Evidence<'a>,
    from: usize,
}

impl Cycle<'_> {
    fn source(&self) -> &Source {
        self.evidence.source
    }

    /// The instructions that a process executes in the cycle, each with its step.
    fn executed(&self, thread: ThreadId) -> impl Iterator<Item = (usize, EdgeId, &Edge)> {
        (self.from..self.evidence.run.steps.len()).filter_map(move |index| {
            let step = self.evidence.run.steps[index];
            let Action::Execute { edge, .. } = step.action else { return None };
            let code = self.evidence.replay.states[index].threads[thread].top().code;
            let code = &self.evidence.machine.system.codes[code];
            (step.thread == thread).then(|| (index, edge, &code.edges()[edge]))
        })
    }

    /// What a process does in the cycle. `None` if it has ended.
    fn part(&self, thread: ThreadId) -> Option<String> {
        let system = self.evidence.machine.system;
        let state = &self.evidence.last_state().threads[thread];
        if state.has_ended(system) {
            return None;
        }
        let name = self.evidence.name(thread);
        let executed: Vec<(usize, EdgeId, &Edge)> = self.executed(thread).collect();
        let Some(&(first, ..)) = executed.first() else {
            let top = state.top();
            let code = &system.codes[top.code];
            let edge = code.edges_from(top.location).map(|edge| &code.edges()[EdgeId(edge)]).next();
            let section = self.evidence.last_state().section.filter(|section| section.holder != thread);
            if let Some(section) = section.filter(|_| self.stays_open()) {
                let holder = self.evidence.name(section.holder);
                return Some(format!("{name} cannot move while {holder} is in its atomic section"));
            }
            return Some(format!("{name} is blocked{}", edge.map_or_else(String::new, |edge| self.at(edge))));
        };
        let is_attempt = |(index, edge, _): &(usize, EdgeId, &Edge)| {
            let code = self.evidence.replay.states[*index].threads[thread].top().code;
            system.codes[code].attempts.binary_search(edge).is_ok()
        };
        if executed.iter().all(is_attempt) {
            let edge = executed.iter().find(|(index, ..)| *index == first).map(|(_, _, edge)| *edge);
            let place = edge.map_or_else(String::new, |edge| self.at(edge));
            return Some(format!("{name} waits{place}{}", self.reads(&executed)));
        }
        let mut files: BTreeMap<Option<&str>, BTreeSet<u32>> = BTreeMap::new();
        for (_, _, edge) in &executed {
            let line = self.source().position(edge.span).map(|position| position.line);
            files.entry(self.source().other_file(edge.span)).or_default().extend(line);
        }
        let described = files.iter().map(|(file, lines)| {
            let plural = if lines.len() == 1 { "line" } else { "lines" };
            let file = file.map_or_else(String::new, |file| format!(" of {file}"));
            format!("{plural} {}{file}", enumeration(&ranges(lines)))
        });
        Some(format!("{name} repeats {}", enumeration(&described.collect::<Vec<_>>())))
    }

    /// Whether an atomic section is open all the time.
    fn stays_open(&self) -> bool {
        self.evidence.replay.states[self.from..].iter().all(|state| state.section.is_some())
    }

    /// ` at line 5: await x == 1`
    fn at(&self, edge: &Edge) -> String {
        let source = self.source();
        let place = source.line_in_words(edge.span).zip(source.row(edge.span));
        let Some((line, row)) = place else { return String::new() };
        format!(" at {line}: {}", quote(source.line(row).trim()))
    }

    /// ` (x is 0)`: what the process reads while it waits.
    fn reads(&self, executed: &[(usize, EdgeId, &Edge)]) -> String {
        let mut reads: Vec<(CellId, Value)> = Vec::new();
        for &(index, ..) in executed {
            let read = match self.evidence.replay.effects[index] {
                Effect::ReadMemory(cell, value)
                | Effect::ReadBuffer(cell, value)
                | Effect::Locked { cell, read: value, .. } => (cell, value),
                _ => continue,
            };
            if !reads.contains(&read) {
                reads.push(read);
            }
        }
        if reads.is_empty() {
            return String::new();
        }
        // Another process may change the cell in between.
        let states = &self.evidence.replay.states[self.from..];
        let changes = |cell: CellId| states.iter().any(|state| state.memory[cell] != states[0].memory[cell]);
        let system = self.evidence.machine.system;
        let value = |&(cell, value): &(CellId, Value)| {
            let name = &system.cells[cell].name;
            if changes(cell) {
                format!("{name} is {value} when it looks")
            } else {
                format!("{name} is {value}")
            }
        };
        format!(" ({})", reads.iter().map(value).collect::<Vec<_>>().join(", "))
    }
}

/// Numbers in increasing order. Three or more in a row are written as `3 to 5`.
fn ranges(numbers: &BTreeSet<u32>) -> Vec<String> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let written = |(first, last): (u32, u32)| match last - first {
        0 => vec![first.to_string()],
        1 => vec![first.to_string(), last.to_string()],
        _ => vec![format!("{first} to {last}")],
    };
    runs.into_iter().flat_map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_a_row() {
        let check = |numbers: &[u32], expected: &str| {
            let numbers = numbers.iter().copied().collect();
            assert_eq!(enumeration(&ranges(&numbers)), expected);
        };
        check(&[4], "4");
        check(&[4, 5], "4 and 5");
        check(&[4, 5, 6], "4 to 6");
        check(&[4, 5, 6, 9, 11, 12], "4 to 6, 9, 11 and 12");
    }
}
