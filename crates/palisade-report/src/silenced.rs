//! Findings that the user has silenced: how many there are, what silenced each, and which suppressions are unused.

use crate::monitor::location_of;
use crate::run::{RunFinding, place_json, times};
use crate::{Colour, one_line};
use palisade_harness::session::{NamedFailure, NamedRace, Occurrences};
use palisade_harness::suppress::SilencedBy;
use palisade_monitor::Violation;
use serde_json::{Value, json};
use std::fmt::Write;

/// One line for each silenced finding, and one for each suppression that has silenced nothing.
pub(crate) fn silenced_text(text: &mut String, finding: &RunFinding<'_>, colour: Colour) {
    let all = listed(finding);
    if !all.is_empty() {
        let title = colour.paint("1", "silenced");
        let findings =
            if all.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", all.len()) };
        writeln!(text, "\n{title}: {findings}").expect("writing to a string");
    }
    for Line { kind, places, times, by, .. } in &all {
        let at = places.first().map_or_else(String::new, |place| format!(" at {}", at(place)));
        let by = by.as_ref().map_or_else(String::new, |by| format!(", by {}", one_line(&by.place())));
        writeln!(text, "  {kind}{at} ({times}){by}").expect("writing to a string");
    }
    if !finding.unused.is_empty() {
        let title = colour.paint("1", "suppressions that match nothing");
        writeln!(text, "\n{title}:").expect("writing to a string");
    }
    for unused in finding.unused {
        writeln!(text, "  {}:{}  {}", one_line(&unused.file), unused.line, one_line(&unused.text))
            .expect("writing to a string");
    }
}

/// The fields `silenced` and `unused_suppressions`.
pub(crate) fn silenced_json(record: &mut Value, finding: &RunFinding<'_>) {
    let line = |line: Line| {
        json!({
            "kind": line.kind,
            "places": line.places.iter().map(|place| place_json(place, finding)).collect::<Value>(),
            "schedules": line.schedules,
            "by": line.by.as_ref().map(SilencedBy::place),
        })
    };
    record["silenced"] = listed(finding).into_iter().map(line).collect();
    record["schedules_cut_short"] = finding.findings.silenced.cut_short.into();
    record["unused_suppressions"] = finding
        .unused
        .iter()
        .map(|unused| json!({ "file": unused.file, "line": unused.line, "text": unused.text }))
        .collect();
}

/// How a result of SARIF is suppressed; nothing if it is not.
pub(crate) fn suppressions(by: Option<&SilencedBy>) -> Value {
    let Some(by) = by else { return json!([]) };
    let kind = match by {
        SilencedBy::Entry { .. } => "external",
        SilencedBy::Comment { .. } => "inSource",
    };
    let mut suppression = json!({ "kind": kind, "status": "accepted" });
    if let Some(location) = location_of(&by.place(), None) {
        suppression["location"] = location;
    }
    json!([suppression])
}

/// A silenced finding.
struct Line {
    kind: String,
    places: Vec<String>,
    schedules: u64,
    times: String,
    by: Option<SilencedBy>,
}

impl Line {
    fn new<T>(kind: &str, places: Vec<String>, found: &Occurrences<T>) -> Line {
        Line {
            kind: kind.to_owned(),
            places,
            schedules: found.executions,
            times: times(found),
            by: found.silenced.clone(),
        }
    }
}

/// Failures, violations and races that are silenced.
fn listed(finding: &RunFinding<'_>) -> Vec<Line> {
    let silenced = &finding.findings.silenced;
    let failure = |found: &Occurrences<NamedFailure>| {
        let places = found.what.places.iter().map(|(place, _)| place.clone()).collect();
        Line::new(found.what.name, places, found)
    };
    let violation = |found: &Occurrences<Violation>| {
        let names = [found.what.store, found.what.previous, found.what.access];
        let places = names.map(|name| finding.findings.instructions.name(name).to_owned()).to_vec();
        Line::new(&format!("{}-violation", found.what.model.name()), places, found)
    };
    let race = |found: &Occurrences<NamedRace>| {
        Line::new("race", vec![found.what.first.0.clone(), found.what.second.0.clone()], found)
    };
    let failures = silenced.failures.iter().map(failure);
    failures
        .chain(finding.silenced_violations().map(violation))
        .chain(silenced.races.iter().map(race))
        .collect()
}

/// A place without its function.
fn at(place: &str) -> String {
    let place = one_line(place);
    place.split_once(" in ").map_or_else(|| place.to_string(), |(at, _)| at.to_owned())
}
