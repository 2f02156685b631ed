//! An answer about robustness as text and JSON.

use crate::{Colour, Evidence, SCHEMA_VERSION, explain_cycle};
use palisade_engine::{Robustness, RobustnessOutcome};
use palisade_memory::Model;
use palisade_trace::{Cycle, HappensBefore, WitnessFile};
use serde_json::{Map, Value, json};

/// The answer for one file.
#[derive(Clone, Copy, Debug)]
pub struct RobustFinding<'a> {
    /// The file, as the user called it.
    pub file: &'a str,
    /// The memory model.
    pub model: Model,
    /// The answer.
    pub outcome: &'a RobustnessOutcome,
    /// What the answer is limited to, e.g. `with integers in 0..7`.
    pub limits: Option<&'a str>,
    /// Time taken.
    pub seconds: f64,
    /// The most memory in use.
    pub peak_memory_bytes: Option<u64>,
    /// The run that no sequentially consistent run is like, and its cycle.
    pub evidence: Option<(Evidence<'a>, &'a HappensBefore, &'a Cycle)>,
    /// The same run in the form that is kept in files.
    pub witness: Option<&'a WitnessFile>,
}

/// The line of a file: verdict, file, and why. Without a line break.
pub fn robust_headline(finding: &RobustFinding<'_>, colour: Colour) -> String {
    let (style, why) = match (&finding.outcome.answer, finding.evidence) {
        (Robustness::Robust, _) => {
            ("1;32", finding.limits.map_or_else(String::new, |limits| format!(": {limits}")))
        }
        (Robustness::NotRobust(_), Some((evidence, happens_before, cycle))) => {
            ("1;31", format!(": {}", explain_cycle(&evidence, happens_before, cycle)))
        }
        (Robustness::NotRobust(_), None) => ("1;31", String::new()),
        (Robustness::Unknown(reason), _) => ("1;33", format!(": {reason}")),
    };
    format!("{}  {}{why}", colour.paint(style, finding.outcome.answer.word()), finding.file)
}

/// How the answer came about; see [`crate::details`].
pub fn robust_details(finding: &RobustFinding<'_>, full: bool) -> String {
    let RobustFinding { model, outcome, seconds, peak_memory_bytes, .. } = *finding;
    crate::verdict::account(model, outcome.engine, &outcome.stats, seconds, peak_memory_bytes, full)
}

/// The answer for one file as a line of JSON, without the line break.
pub fn robust_json(finding: &RobustFinding<'_>) -> String {
    let mut record = Map::new();
    let mut set = |name: &str, value: Value| record.insert(name.to_owned(), value);
    set("schema_version", SCHEMA_VERSION.into());
    set("command", "robust".into());
    set("file", finding.file.into());
    set("model", finding.model.name().into());
    set("engine", finding.outcome.engine.into());
    set("verdict", finding.outcome.answer.word().into());
    if let Robustness::Unknown(reason) = &finding.outcome.answer {
        set("reason", reason.to_string().into());
    }
    if let Some(limits) = finding.limits {
        set("limits", limits.into());
    }
    if let Some((evidence, happens_before, cycle)) = finding.evidence {
        set("violation", explain_cycle(&evidence, happens_before, cycle).into());
        set("cycle", cycle_json(&evidence, happens_before, cycle));
    }
    set("seconds", finding.seconds.into());
    set("peak_memory_bytes", finding.peak_memory_bytes.into());
    let counters = finding.outcome.stats.iter().map(|(name, value)| (name.to_owned(), value.into()));
    set("stats", Value::Object(counters.collect()));
    if let Some(witness) = finding.witness {
        set("witness", serde_json::to_value(witness).expect("records can always be written"));
    }
    Value::Object(record).to_string()
}

/// The arrows of a cycle: whose which line comes before whose which line, and why. Steps are those of the run, counted from 1.
fn cycle_json(evidence: &Evidence<'_>, happens_before: &HappensBefore, cycle: &Cycle) -> Value {
    let event = |index: usize| {
        let event = &happens_before.events[index];
        let position = crate::cycle::span(evidence, event).and_then(|span| evidence.source.position(span));
        json!({
            "process": evidence.name(event.thread),
            "step": event.steps[0] + 1,
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
        })
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
