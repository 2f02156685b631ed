//! An answer about robustness as text and JSON.

use crate::{Colour, Evidence, SCHEMA_VERSION, explain_cycle};
use palisade_engine::{Outcome, Robustness, TriangularRaces, Verdict};
use palisade_memory::Model;
use palisade_trace::{Cycle, HappensBefore, Triangle, WitnessFile};
use serde_json::{Map, Value, json};

/// The answer for one file.
#[derive(Clone, Copy, Debug)]
pub struct RobustFinding<'a> {
    /// The file, as the user called it.
    pub file: &'a str,
    /// The memory model.
    pub model: Model,
    /// The answer.
    pub outcome: &'a Outcome<Robustness>,
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
    let style = match finding.outcome.verdict {
        Verdict::Holds => "1;32",
        Verdict::Violated(_) => "1;31",
        Verdict::Unknown(_) => "1;33",
    };
    let why = robust_why(finding).map_or_else(String::new, |why| format!(": {why}"));
    format!("{}  {}{why}", colour.paint(style, finding.outcome.word()), crate::visible(finding.file))
}

/// Which instruction overtakes which, why it is unknown, or what `robust` is limited to.
pub(crate) fn robust_why(finding: &RobustFinding<'_>) -> Option<String> {
    match (&finding.outcome.verdict, finding.evidence) {
        (Verdict::Holds, _) => finding.limits.map(str::to_owned),
        (Verdict::Violated(_), Some((evidence, happens_before, cycle))) => {
            Some(explain_cycle(&evidence, happens_before, cycle))
        }
        (Verdict::Violated(_), None) => None,
        (Verdict::Unknown(reason), _) => Some(reason.to_string()),
    }
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
    set("verdict", finding.outcome.word().into());
    if let Verdict::Unknown(reason) = &finding.outcome.verdict {
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

/// An answer about triangular races for one file.
#[derive(Clone, Copy, Debug)]
pub struct RaceFinding<'a> {
    /// The file, as the user called it.
    pub file: &'a str,
    /// The answer.
    pub outcome: &'a Outcome<TriangularRaces>,
    /// Time taken.
    pub seconds: f64,
    /// The most memory in use.
    pub peak_memory_bytes: Option<u64>,
    /// The run that ends with a race.
    pub evidence: Option<(Evidence<'a>, Triangle)>,
}

/// The line of a file: verdict, file, and why. Without a line break.
pub fn race_headline(finding: &RaceFinding<'_>, colour: Colour) -> String {
    let style = match finding.outcome.verdict {
        Verdict::Holds => "1;32",
        Verdict::Violated(_) => "1;31",
        Verdict::Unknown(_) => "1;33",
    };
    let why = race_why(finding).map_or_else(String::new, |why| format!(": {why}"));
    format!("{}  {}{why}", colour.paint(style, finding.outcome.word()), crate::visible(finding.file))
}

/// What races with what, or why it is unknown.
pub(crate) fn race_why(finding: &RaceFinding<'_>) -> Option<String> {
    match (&finding.outcome.verdict, finding.evidence) {
        (Verdict::Holds, _) => Some("no triangular race, so the program is robust".to_owned()),
        (Verdict::Violated(_), Some((evidence, race))) => Some(explain_race(&evidence, race)),
        (Verdict::Violated(_), None) => None,
        (Verdict::Unknown(reason), _) => Some(reason.to_string()),
    }
}

/// How the answer came about; see [`crate::details`].
pub fn race_details(finding: &RaceFinding<'_>, full: bool) -> String {
    let RaceFinding { outcome, seconds, peak_memory_bytes, .. } = *finding;
    crate::verdict::account(Model::Tso, "triangular", &outcome.stats, seconds, peak_memory_bytes, full)
}

/// `P's line 3 (r = y) loads what Q's line 6 (y = 1) stores, while P's line 2 (x = 1) may still be in its buffer`
fn explain_race(evidence: &Evidence<'_>, race: Triangle) -> String {
    let told = |step: usize| {
        let who = evidence.name(evidence.run.steps[step].thread);
        format!("{who}'s {}", crate::cycle::place_of_step(evidence, step))
    };
    let waits = format!("{} may still be in its buffer", told(race.store));
    match race.rival {
        Some(rival) => format!("{} loads what {} stores, while {waits}", told(race.load), told(rival)),
        None => format!("{} starts a process, while {waits}", told(race.load)),
    }
}

/// The answer for one file as a line of JSON, without the line break.
pub fn race_json(finding: &RaceFinding<'_>) -> String {
    let place = |evidence: &Evidence<'_>, step: usize| {
        let position =
            crate::cycle::span_of_step(evidence, step).and_then(|span| evidence.source.position(span));
        json!({
            "process": evidence.name(evidence.run.steps[step].thread),
            "step": step + 1,
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
        })
    };
    let race = finding.evidence.map(|(evidence, race)| {
        json!({
            "store": place(&evidence, race.store),
            "load": place(&evidence, race.load),
            "rival": race.rival.map(|rival| place(&evidence, rival)),
        })
    });
    let reason = match &finding.outcome.verdict {
        Verdict::Unknown(reason) => Some(reason.to_string()),
        _ => None,
    };
    let counters = finding.outcome.stats.iter().map(|(name, value)| (name.to_owned(), value.into()));
    let mut record = json!({
        "schema_version": SCHEMA_VERSION,
        "command": "robust",
        "file": finding.file,
        "model": Model::Tso.name(),
        "engine": "triangular",
        "verdict": finding.outcome.word(),
        "seconds": finding.seconds,
        "peak_memory_bytes": finding.peak_memory_bytes,
        "stats": Value::Object(counters.collect()),
    });
    if let Some(reason) = reason {
        record["reason"] = reason.into();
    }
    if let Some(race) = race {
        record["race"] = race;
    }
    record.to_string()
}
