//! The results of running a real program under many schedules, as SARIF.

use crate::monitor::{MonitorFinding, location_of, sarif};
use crate::one_line;
use crate::run::{RunFinding, again, machines, reordered};
use crate::sarif::written;
use crate::silenced::suppressions;
use palisade_harness::session::{NamedFailure, NamedRace, NamedReordering, Occurrences};
use palisade_memory::Model;
use palisade_monitor::{Seen, Violation};
use serde_json::{Value, json};

/// All findings as SARIF 2.1.0.
pub fn run_sarif(finding: &RunFinding<'_>, version: &str) -> String {
    let findings = finding.findings;
    let silenced = &findings.silenced;
    let reported: Vec<&Occurrences<Violation>> =
        finding.violations().chain(finding.silenced_violations()).collect();
    let violations: Vec<(Violation, Seen)> = reported
        .iter()
        .map(|found| (found.what, Seen { count: found.count, first: found.first.event }))
        .collect();
    let monitored = MonitorFinding {
        file: finding.program,
        events: findings.events,
        violations: &violations,
        instructions: &findings.instructions,
        sources: finding.sources,
        problem: finding.problem,
        seconds: finding.seconds,
        peak_memory_bytes: None,
    };
    let mut sarif = sarif(&monitored, version);
    let run = &mut sarif["runs"][0];
    let rule = |id: &str, short: &str, level: &str| {
        json!({
            "id": id,
            "shortDescription": { "text": short },
            "defaultConfiguration": { "level": level },
        })
    };
    if let Some(rules) = run["tool"]["driver"]["rules"].as_array_mut() {
        rules.push(rule("data-race", "Two accesses to the same memory that nothing orders", "warning"));
        rules.push(rule("failure", "The program fails under a schedule", "error"));
    }
    let mut results: Vec<Value> = Vec::new();
    results.extend(findings.races.iter().chain(&silenced.races).map(race));
    results.extend(findings.failures.iter().chain(&silenced.failures).map(|found| failure(finding, found)));
    if let Some(all) = run["results"].as_array_mut() {
        all.extend(results);
    }
    // Either all results say whether they are suppressed, or none does (section 3.27.23).
    let by: Vec<_> = reported
        .iter()
        .map(|found| &found.silenced)
        .chain(findings.races.iter().chain(&silenced.races).map(|found| &found.silenced))
        .chain(findings.failures.iter().chain(&silenced.failures).map(|found| &found.silenced))
        .collect();
    if finding.silenced() > 0
        && let Some(results) = run["results"].as_array_mut()
    {
        for (result, by) in results.iter_mut().zip(by) {
            result["suppressions"] = suppressions(by.as_ref());
        }
    }
    written(&sarif)
}

fn race(found: &Occurrences<NamedRace>) -> Value {
    let race = &found.what;
    let mut result = json!({
        "ruleId": "data-race",
        "level": "warning",
        "message": { "text": format!("This access and {} race: nothing orders the two.", one_line(&race.first.0)) },
        "occurrenceCount": found.count,
        "partialFingerprints": { "accesses/v1": format!("{}|{}", race.first.0, race.second.0) },
    });
    result["locations"] = location_of(&race.second.0, None).into_iter().collect();
    result["relatedLocations"] = location_of(&race.first.0, Some("the other access")).into_iter().collect();
    result
}

fn failure(finding: &RunFinding<'_>, found: &Occurrences<NamedFailure>) -> Value {
    let failure = &found.what;
    let machines = machines(finding, found.possible, failure.is_excluded_without_buffers)
        .filter(|_| !failure.is_inconclusive);
    let on = machines.as_ref().map_or_else(String::new, |machines| format!(", {machines}"));
    let mut result = json!({
        "ruleId": "failure",
        "level": if failure.is_inconclusive { "warning" } else { "error" },
        "message": { "text": format!("{}{on} ({})", one_line(&failure.message), again(&found.first)) },
        "occurrenceCount": found.count,
        "partialFingerprints": { "failure/v1": format!("{}|{}", failure.name, one_line(&failure.message)) },
        "properties": {
            "kind": failure.name,
            "possibleUnder": found.possible.map(Model::name),
            "onlyWithStoreBuffers": failure.is_excluded_without_buffers,
        },
    });
    if let Some(machines) = &machines {
        result["properties"]["machines"] = machines.as_str().into();
    }
    if let Some(flow) = code_flow(found) {
        result["codeFlows"] = json!([flow]);
    }
    let mut locations = failure.places.iter().filter_map(|(place, says)| location_of(place, Some(says)));
    result["locations"] = locations.next().into_iter().collect();
    result["relatedLocations"] = locations.collect();
    result
}

/// The steps that a failure depends on: the stores that were pending, the accesses that overtook them, and where it
/// failed. `None` if it does not depend on store buffers.
fn code_flow(found: &Occurrences<NamedFailure>) -> Option<Value> {
    if found.first.reorderings.is_empty() {
        return None;
    }
    let thread = |(number, reordering): (usize, &NamedReordering)| {
        let locations =
            reordered(reordering).into_iter().filter_map(|(place, says)| location_of(&place, Some(&says)));
        flow(&format!("reordering {}", number + 1), locations.collect())
    };
    let mut flows: Vec<Value> = found.first.reorderings.iter().enumerate().filter_map(thread).collect();
    let end = found.what.places.iter().filter_map(|(place, says)| location_of(place, Some(says)));
    flows.extend(flow("failure", end.collect()));
    (!flows.is_empty()).then(|| json!({
        "message": { "text": "In each reordering, two instructions of one thread took effect in the opposite order. After that, the program failed." },
        "threadFlows": flows,
    }))
}

fn flow(id: &str, locations: Vec<Value>) -> Option<Value> {
    let steps: Vec<Value> = locations.into_iter().map(|location| json!({ "location": location })).collect();
    (!steps.is_empty()).then(|| json!({ "id": id, "locations": steps }))
}
