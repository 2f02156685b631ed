//! The findings of the monitors: as text with the source lines, as JSON, and as SARIF for code scanning.
//!
//! A violation is three instructions. A violation that was seen under both models is reported once, with both
//! models.

use crate::report::{Detail, Layout, Report, Standing};
use crate::sarif::{document, uri, written};
use crate::{Colour, SCHEMA_VERSION, fit, one_line, visible};
use palisade_base::Source;
use palisade_memory::Model;
use palisade_monitor::{Instruction, Instructions, Seen, Violation};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The findings for one trace.
#[derive(Clone, Copy, Debug)]
pub struct MonitorFinding<'a> {
    /// The trace, as the user named it.
    pub file: &'a str,
    /// How many events were read.
    pub events: u64,
    /// Violations in the order in which they were seen.
    pub violations: &'a [(Violation, Seen)],
    /// The names of the instructions in the trace.
    pub instructions: &'a Instructions,
    /// The available source texts, by the names that the trace uses for them.
    pub sources: &'a BTreeMap<String, Source>,
    /// Why the trace could not be read to its end, or why it may continue after what was read.
    pub problem: Option<&'a str>,
    /// Time taken.
    pub seconds: f64,
    /// The peak memory.
    pub peak_memory_bytes: Option<u64>,
}

/// A place in a source text, as traces write it: `FILE:LINE` or `FILE:LINE:COLUMN`, optionally followed by
/// text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: Option<u32>,
}

impl SourcePlace {
    /// The place that an instruction's name begins with.
    pub fn of(name: &str) -> Option<SourcePlace> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0);
        let (rest, last) = name.split_whitespace().next()?.rsplit_once(':')?;
        let last = number(last)?;
        let of = |file: &str, line, column| {
            (!file.is_empty()).then(|| SourcePlace { file: file.to_owned(), line, column })
        };
        match rest.rsplit_once(':').map(|(file, line)| (file, number(line))) {
            Some((file, Some(line))) => of(file, line, Some(last)),
            _ => of(rest, last, None),
        }
    }
}

/// A violation under one or both models.
struct Grouped {
    models: Vec<(Model, Seen)>,
    roles: [(&'static str, Instruction); 3],
}

/// The names of the three instructions in JSON and SARIF, and a description of each.
pub(crate) const ROLES: [(&str, &str); 3] = [
    ("store", "this store can still be buffered"),
    ("previous", "while another thread, having passed here,"),
    ("access", "makes this access before the store reaches memory"),
];

fn grouped(violations: &[(Violation, Seen)]) -> Vec<Grouped> {
    let mut groups: Vec<Grouped> = Vec::new();
    for &(violation, seen) in violations {
        let instructions = [violation.store, violation.previous, violation.access];
        let same = |group: &&mut Grouped| group.roles.map(|(_, instruction)| instruction) == instructions;
        match groups.iter_mut().find(same) {
            Some(group) => group.models.push((violation.model, seen)),
            None => {
                let [a, b, c] = [0, 1, 2].map(|index: usize| (ROLES[index].0, instructions[index]));
                groups.push(Grouped { models: vec![(violation.model, seen)], roles: [a, b, c] });
            }
        }
    }
    groups
}

impl Report for MonitorFinding<'_> {
    fn subject(&self) -> &str {
        self.file
    }

    fn word(&self) -> &str {
        match self.standing() {
            Standing::Bad => "violations",
            Standing::Good => "clean",
            Standing::Open => "unknown",
        }
    }

    /// A trace that was not read to its end, or may have no end, is not clean.
    fn standing(&self) -> Standing {
        match (self.violations.is_empty(), self.problem) {
            (false, _) => Standing::Bad,
            (true, None) => Standing::Good,
            (true, Some(_)) => Standing::Open,
        }
    }

    fn why(&self) -> Option<String> {
        let read = self.events;
        let events = if read == 1 { "event" } else { "events" };
        if let (Standing::Open, Some(problem)) = (self.standing(), self.problem) {
            return Some(format!("no violation in {read} {events} read; {}", visible(problem)));
        }
        let of = |model| self.violations.iter().filter(|(violation, _)| violation.model == model).count();
        let mut counts: Vec<String> = [Model::Tso, Model::Pso]
            .into_iter()
            .filter(|&model| of(model) > 0)
            .map(|model| format!("{} under {}", of(model), model.name().to_uppercase()))
            .collect();
        counts.push(format!("{read} {events}{}", if self.problem.is_some() { " read" } else { "" }));
        Some(counts.join(", "))
    }

    fn body(&self, layout: &Layout) -> String {
        let mut text = violations_text(self, layout.width, layout.colour);
        if layout.detail == Detail::Verbose {
            let rate = self.events as f64 / self.seconds.max(1e-9) / 1e6;
            write!(text, "\n{} events in {:.2} s, {rate:.1} million per second\n", self.events, self.seconds)
                .expect("writing to a string");
        }
        text
    }

    fn json(&self) -> String {
        monitor_json(self)
    }
}

/// All violations with their source lines.
fn violations_text(finding: &MonitorFinding<'_>, width: usize, colour: Colour) -> String {
    let mut text = String::new();
    for group in grouped(finding.violations) {
        let models: Vec<String> = group
            .models
            .iter()
            .map(|(model, seen)| {
                let times = if seen.count == 1 { "once".to_owned() } else { format!("{} times", seen.count) };
                format!(
                    "{} ({times}, first at event {})",
                    colour.paint("1", &model.name().to_uppercase()),
                    seen.first
                )
            })
            .collect();
        writeln!(text, "\n{}", models.join(", ")).expect("writing to a string");
        let lines: Vec<(String, String)> =
            group.roles.iter().map(|(_, instruction)| shown(finding, *instruction)).collect();
        let widest = |column: fn(&(String, String)) -> &String| {
            lines.iter().map(|line| column(line).chars().count()).max().unwrap_or(0)
        };
        let (first, second) = (widest(|line| &line.0), widest(|line| &line.1).min(width / 2));
        for ((place, source), (_, says)) in lines.iter().zip(ROLES) {
            let source = fit(source, second);
            let line = format!("  {place:<first$}  {source:<second$}  {says}");
            writeln!(text, "{}", line.trim_end()).expect("writing to a string");
        }
    }
    text
}

/// Where an instruction is, and the source text there.
fn shown(finding: &MonitorFinding<'_>, instruction: Instruction) -> (String, String) {
    shown_place(finding.instructions.name(instruction), finding.sources)
}

/// Where something with this name is, and the source text there.
pub(crate) fn shown_place(name: &str, sources: &BTreeMap<String, Source>) -> (String, String) {
    let name = one_line(name);
    match SourcePlace::of(&name) {
        Some(place) => {
            let (at, text) = name.split_once(' ').unwrap_or((&name, ""));
            let source = sources.get(&place.file).map(|source| one_line(source.line(place.line)));
            (at.to_owned(), source.filter(|line| !line.is_empty()).unwrap_or_else(|| text.to_owned()))
        }
        None => (name, String::new()),
    }
}

fn monitor_json(finding: &MonitorFinding<'_>) -> String {
    let violations: Vec<Value> = grouped(finding.violations)
        .iter()
        .map(|group| {
            let mut record = json!({});
            for (role, instruction) in group.roles {
                record[role] = place_json(finding, instruction);
            }
            for (model, seen) in &group.models {
                record[model.name()] = json!({ "count": seen.count, "first_event": seen.first });
            }
            record
        })
        .collect();
    let mut record = json!({
        "schema_version": SCHEMA_VERSION,
        "command": "monitor",
        "file": finding.file,
        "verdict": finding.word(),
        "events": finding.events,
        "violations": violations,
        "seconds": finding.seconds,
        "peak_memory_bytes": finding.peak_memory_bytes,
    });
    if let Some(problem) = finding.problem {
        record["error"] = problem.into();
        if finding.standing() == Standing::Open {
            record["reason"] = problem.into();
        }
    }
    record.to_string()
}

fn place_json(finding: &MonitorFinding<'_>, instruction: Instruction) -> Value {
    named_json(finding.instructions.name(instruction), finding.sources)
}

pub(crate) fn named_json(name: &str, sources: &BTreeMap<String, Source>) -> Value {
    let place = SourcePlace::of(name);
    let (_, text) = shown_place(name, sources);
    json!({
        "name": name,
        "file": place.as_ref().map(|place| &place.file),
        "line": place.as_ref().map(|place| place.line),
        "column": place.as_ref().and_then(|place| place.column),
        "text": text,
    })
}

/// The findings as SARIF 2.1.0, one result per violation and model.
pub fn monitor_sarif(finding: &MonitorFinding<'_>, version: &str) -> String {
    written(&sarif(finding, version))
}

pub(crate) fn sarif(finding: &MonitorFinding<'_>, version: &str) -> Value {
    let rule = |model: Model, what: &str| {
        json!({
            "id": format!("{}-violation", model.name()),
            "shortDescription": { "text": format!("{} allows what sequential consistency forbids", model.name().to_uppercase()) },
            "fullDescription": { "text": what },
            "defaultConfiguration": { "level": "warning" },
        })
    };
    let results: Vec<Value> = finding
        .violations
        .iter()
        .map(|(violation, seen)| {
            let [store, previous, access] =
                [violation.store, violation.previous, violation.access].map(|i| shown(finding, i));
            let message = format!(
                "Under {}, this access can come before the store {}, although {} comes after that store. No sequentially consistent execution behaves like that.",
                violation.model.name().to_uppercase(),
                place_and_text(&store),
                place_and_text(&previous)
            );
            let related: Vec<Value> = [(violation.store, ROLES[0].1), (violation.previous, "what happens in between")]
                .into_iter()
                .filter_map(|(instruction, says)| sarif_location(finding, instruction, Some(says)))
                .collect();
            let mut result = json!({
                "ruleId": format!("{}-violation", violation.model.name()),
                "level": "warning",
                "message": { "text": message },
                "relatedLocations": related,
                "occurrenceCount": seen.count,
                "partialFingerprints": {
                    "instructions/v1": format!("{}|{}|{}", place_and_text(&store), place_and_text(&previous), place_and_text(&access)),
                },
            });
            if let Some(location) = sarif_location(finding, violation.access, None) {
                result["locations"] = json!([location]);
            }
            result
        })
        .collect();
    let notifications: Vec<Value> = finding
        .problem
        .iter()
        .map(|problem| json!({ "level": "error", "message": { "text": format!("{}: {problem}", finding.file) } }))
        .collect();
    let rules = vec![
        rule(
            Model::Tso,
            "A store can wait in its buffer while later loads of the same process, and other processes, continue.",
        ),
        rule(
            Model::Pso,
            "A store can wait in its buffer while later loads and stores of the same process, and other processes, continue.",
        ),
    ];
    let invocation = json!({
        "executionSuccessful": finding.problem.is_none(),
        "toolExecutionNotifications": notifications,
    });
    document(version, rules, results, invocation)
}

fn place_and_text((place, text): &(String, String)) -> String {
    if text.is_empty() { place.clone() } else { format!("{place} `{text}`") }
}

fn sarif_location(
    finding: &MonitorFinding<'_>,
    instruction: Instruction,
    says: Option<&str>,
) -> Option<Value> {
    location_of(finding.instructions.name(instruction), says)
}

/// Where something with this name is, in SARIF's form.
pub(crate) fn location_of(name: &str, says: Option<&str>) -> Option<Value> {
    let place = SourcePlace::of(name)?;
    let mut region = json!({ "startLine": place.line });
    if let Some(column) = place.column {
        region["startColumn"] = column.into();
    }
    let mut location = json!({
        "physicalLocation": { "artifactLocation": { "uri": uri(&place.file) }, "region": region },
    });
    if let Some(says) = says {
        location["message"] = json!({ "text": says });
    }
    Some(location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let check = |name: &str, expected: Option<(&str, u32, Option<u32>)>| {
            let place =
                expected.map(|(file, line, column)| SourcePlace { file: file.to_owned(), line, column });
            assert_eq!(SourcePlace::of(name), place, "{name}");
        };
        check("a.c:12", Some(("a.c", 12, None)));
        check("a.c:12:5", Some(("a.c", 12, Some(5))));
        check("dir/a.c:12:5 x = 1", Some(("dir/a.c", 12, Some(5))));
        check("c:/a.c:7", Some(("c:/a.c", 7, None)));
        check("l1", None);
        check("event on line 3", None);
        check("a:0", None);
        check(":3", None);
        check("", None);
    }
}
