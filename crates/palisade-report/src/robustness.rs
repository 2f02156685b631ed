//! Answers about robustness: the cycle in a run that differs from every sequentially consistent run.

use crate::cycle::span;
use crate::json::add_file;
use crate::{Explain, cycle, explain_cycle};
use palisade_base::Span;
use palisade_engine::Robustness;
use palisade_trace::{Cycle, Evidence, HappensBefore};
use serde_json::{Value, json};

impl Explain for Robustness {
    type Shows = (HappensBefore, Cycle);
    const COMMAND: &'static str = "robust";

    fn violation(evidence: &Evidence<'_>, (happens_before, cycle): &Self::Shows) -> String {
        explain_cycle(evidence, happens_before, cycle)
    }

    fn after_run(evidence: &Evidence<'_>, (happens_before, found): &Self::Shows) -> String {
        cycle(evidence, happens_before, found) + "\n"
    }

    fn shown_json(
        evidence: &Evidence<'_>,
        (happens_before, cycle): &Self::Shows,
    ) -> Option<(&'static str, Value)> {
        Some(("cycle", cycle_json(evidence, happens_before, cycle)))
    }
}

/// The arrows of a cycle. Each says which line of which process comes before which line of which process, and
/// why. Steps are those of the run, counted from 1.
fn cycle_json(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> Value {
    let event = |index: usize| {
        let event = &happens_before.events[index];
        let span = span(evidence, event).unwrap_or(Span::NONE);
        let position = evidence.source.position(span);
        let mut record = json!({
            "process": evidence.name(event.thread),
            "step": event.steps[0] + 1,
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
        });
        add_file(&mut record, evidence.source, span);
        record
    };
    let arrows = cycle.arrows.iter().map(|arrow| {
        json!({
            "from": event(arrow.from),
            "to": event(arrow.to),
            "relation": arrow.relation.name(),
            "cell": arrow.cell.map(|cell| evidence.machine.system.cells[cell].name.clone()),
        })
    });
    arrows.collect()
}
