//! The structure that SARIF 2.1.0 asks for, as far as our files use it: required properties, types, enumerations,
//! references between objects, and URIs. Section numbers are those of the OASIS standard.

use super::programs::{BUFFERING, BUFFERING_ASSERTED, RACE, compiled};
use crate::common::{STORE_BUFFERING, Scratch};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Panics if something is wrong.
#[track_caller]
pub fn check(sarif: &Value) {
    let log = object(sarif, "the log", &["$schema", "version", "runs"], &["runs"]);
    assert_eq!(log["version"], "2.1.0", "section 3.13.2");
    assert!(text(&log["$schema"], "$schema").ends_with("sarif-2.1.0.json"), "section 3.13.3");
    for run in list(&log["runs"], "runs") {
        check_run(run);
    }
}

/// An object that has all required properties and no unknown ones.
#[track_caller]
fn object<'a>(value: &'a Value, what: &str, known: &[&str], required: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("{what} is an object: {value}"));
    for name in required {
        assert!(object.contains_key(*name), "{what} has {name}: {value}");
    }
    for (name, value) in object {
        assert!(known.contains(&name.as_str()), "{what} may not have {name}");
        assert!(!value.is_null(), "{name} of {what} is absent rather than null");
    }
    object
}

#[track_caller]
fn list<'a>(value: &'a Value, what: &str) -> &'a Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{what} is a list: {value}"))
}

#[track_caller]
fn text<'a>(value: &'a Value, what: &str) -> &'a str {
    let text = value.as_str().unwrap_or_else(|| panic!("{what} is a text: {value}"));
    assert!(!text.is_empty(), "{what} is not empty");
    text
}

#[track_caller]
fn number(value: &Value, least: u64, what: &str) {
    assert!(value.as_u64().is_some_and(|number| number >= least), "{what} is at least {least}: {value}");
}

#[track_caller]
fn one_of(value: &Value, all: &[&str], what: &str) {
    let value = text(value, what);
    assert!(all.contains(&value), "{what} is one of {all:?}: {value}");
}

const LEVELS: &[&str] = &["none", "note", "warning", "error"];

/// Section 3.14.
fn check_run(run: &Value) {
    let run = object(run, "a run", &["tool", "invocations", "results"], &["tool"]);
    let tool = object(&run["tool"], "the tool", &["driver"], &["driver"]);
    let driver = object(&tool["driver"], "the driver", &["name", "version", "rules"], &["name"]);
    text(&driver["name"], "its name");
    let mut rules = BTreeSet::new();
    for rule in list(&driver["rules"], "rules") {
        let known = ["id", "shortDescription", "fullDescription", "defaultConfiguration"];
        let rule = object(rule, "a rule", &known, &["id"]);
        assert!(rules.insert(text(&rule["id"], "its id")), "ids of rules are unique (3.49.3)");
        for description in ["shortDescription", "fullDescription"] {
            rule.get(description).into_iter().for_each(message);
        }
        if let Some(configuration) = rule.get("defaultConfiguration") {
            let configuration = object(configuration, "a configuration", &["level"], &[]);
            one_of(&configuration["level"], LEVELS, "a level");
        }
    }
    for invocation in list(&run["invocations"], "invocations") {
        let known = ["executionSuccessful", "toolExecutionNotifications"];
        let invocation = object(invocation, "an invocation", &known, &["executionSuccessful"]);
        assert!(invocation["executionSuccessful"].is_boolean(), "section 3.20.14");
        for notification in
            invocation.get("toolExecutionNotifications").into_iter().flat_map(|all| list(all, ""))
        {
            let notification =
                object(notification, "a notification", &["level", "message", "locations"], &["message"]);
            one_of(&notification["level"], LEVELS, "a level");
            message(&notification["message"]);
            locations(notification.get("locations"));
        }
    }
    let results = list(&run["results"], "results");
    for result in results {
        check_result(result, &rules);
    }
    let suppressed = results.iter().filter(|result| result.get("suppressions").is_some()).count();
    assert!(suppressed == 0 || suppressed == results.len(), "either all or none (3.27.23)");
}

/// Section 3.27.
fn check_result(result: &Value, rules: &BTreeSet<&str>) {
    let known = [
        "ruleId",
        "level",
        "message",
        "locations",
        "relatedLocations",
        "codeFlows",
        "occurrenceCount",
        "partialFingerprints",
        "properties",
        "suppressions",
    ];
    let result = object(result, "a result", &known, &["message"]);
    assert!(rules.contains(text(&result["ruleId"], "a rule")), "{} is a rule", result["ruleId"]);
    one_of(&result["level"], LEVELS, "a level");
    message(&result["message"]);
    locations(result.get("locations"));
    locations(result.get("relatedLocations"));
    if let Some(count) = result.get("occurrenceCount") {
        number(count, 1, "occurrenceCount");
    }
    for (name, value) in result.get("partialFingerprints").into_iter().flat_map(Value::as_object).flatten() {
        text(value, name);
    }
    for flow in result.get("codeFlows").into_iter().flat_map(|all| list(all, "codeFlows")) {
        let flow = object(flow, "a code flow", &["message", "threadFlows"], &["threadFlows"]);
        flow.get("message").into_iter().for_each(message);
        let threads = list(&flow["threadFlows"], "threadFlows");
        assert!(!threads.is_empty(), "section 3.36.3");
        for thread in threads {
            let thread = object(thread, "a thread flow", &["id", "locations"], &["locations"]);
            let steps = list(&thread["locations"], "locations");
            assert!(!steps.is_empty(), "section 3.37.6");
            for step in steps {
                location(&object(step, "a step", &["location"], &[])["location"]);
            }
        }
    }
    for suppression in result.get("suppressions").into_iter().flat_map(|all| list(all, "suppressions")) {
        let suppression = object(suppression, "a suppression", &["kind", "status", "location"], &["kind"]);
        one_of(&suppression["kind"], &["inSource", "external"], "a kind");
        one_of(&suppression["status"], &["accepted", "underReview", "rejected"], "a status");
        suppression.get("location").into_iter().for_each(location);
    }
}

fn message(message: &Value) {
    text(&object(message, "a message", &["text"], &["text"])["text"], "its text");
}

fn locations(all: Option<&Value>) {
    all.into_iter().flat_map(|all| list(all, "locations")).for_each(location);
}

/// Sections 3.28 to 3.30.
fn location(value: &Value) {
    let location = object(value, "a location", &["physicalLocation", "message"], &[]);
    location.get("message").into_iter().for_each(message);
    let known = ["artifactLocation", "region"];
    let physical = object(&location["physicalLocation"], "a place", &known, &["artifactLocation"]);
    let uri = text(&object(&physical["artifactLocation"], "a file", &["uri"], &[])["uri"], "its URI");
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    assert!(uri.chars().all(is_allowed), "a URI (RFC 3986): {uri}");
    assert!(!uri.starts_with('/'), "a path alone is not absolute: {uri}");
    if let Some(region) = physical.get("region") {
        let region = object(region, "a region", &["startLine", "startColumn"], &["startLine"]);
        region.iter().for_each(|(name, value)| number(value, 1, name));
    }
}

fn written(scratch: &Scratch, file: &str) -> Value {
    serde_json::from_str(&scratch.read(file)).expect("SARIF is JSON")
}

#[test]
fn files_of_run() {
    for (name, source) in [("failure", BUFFERING_ASSERTED), ("race", RACE), ("clean", BUFFERING)] {
        let scratch = compiled(&format!("sarif_shape_{name}"), source);
        for more in [&["--strategy", "random"][..], &["--robust"], &["--strategy", "exhaustive"]] {
            let args =
                [&["run", "-q", "--no-save", "--schedules", "50", "--sarif", "s"], more, &["--", "./t"]];
            scratch.run(&args.concat());
            check(&written(&scratch, "s"));
        }
    }
}

#[test]
fn files_of_check() {
    let scratch = Scratch::new("sarif_shape_check")
        .file("a b.pal", STORE_BUFFERING)
        .file("wrong.pal", "shared x: 0..1;\nprocess P { x = ; }\n")
        .file("unreached.pal", "shared x: 0..1;\nprocess P { if (x == 1) { x = 0; } }\nforbid x == 1;\n");
    for args in [&["a b.pal"][..], &["wrong.pal", "a b.pal"], &["unreached.pal", "--coverage"]] {
        scratch.run(&[&["check", "-q", "--sarif", "s"], args].concat());
        check(&written(&scratch, "s"));
    }
}
