//! SARIF 2.1.0, which code-scanning services read: the findings of `check`, and the parts that all such files
//! share.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write;

/// The answer for one file, as far as it matters for code scanning.
#[derive(Clone, PartialEq, Debug)]
pub struct Scanned {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: Problem,
    /// A description in one sentence.
    pub message: String,
    /// Where.
    pub place: Option<ScannedPlace>,
    /// The run that shows it: the place of each step in the source, and what it does.
    pub run: Vec<(Option<ScannedPlace>, String)>,
}

/// A place in a source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScannedPlace {
    /// The file, if it is not the main file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl Scanned {
    fn location(&self, place: Option<&ScannedPlace>) -> Value {
        let file = place.and_then(|place| place.file.as_deref()).unwrap_or(&self.file);
        location(file, place.map(|place| (place.line, place.column)))
    }
}

/// What is wrong with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// A run breaks the program.
    Unsafe,
    /// It is not known whether a run breaks the program.
    Unknown,
    /// The file is not a valid program.
    Refused,
    /// No run reaches some part of a safe program.
    Unreached,
}

impl Problem {
    const ALL: [Problem; 4] = [Problem::Unsafe, Problem::Unknown, Problem::Refused, Problem::Unreached];

    fn id(self) -> &'static str {
        match self {
            Problem::Unsafe => "unsafe",
            Problem::Unknown => "unknown",
            Problem::Refused => "refused",
            Problem::Unreached => "never-reached",
        }
    }

    fn level(self) -> &'static str {
        match self {
            Problem::Unsafe | Problem::Refused => "error",
            Problem::Unknown => "note",
            Problem::Unreached => "warning",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Problem::Unsafe => "A run of the program under the memory model reaches a bad state.",
            Problem::Unknown => "It is not known whether the program can reach a bad state.",
            Problem::Refused => "The file is not a program that can be checked.",
            Problem::Unreached => "The program is safe, but no run reaches this part of it.",
        }
    }
}

/// The answers of `check` that are not `safe`, and what no run of a safe program reaches.
pub fn check_sarif(scanned: &[Scanned], version: &str) -> String {
    let rules = Problem::ALL.map(|problem| {
        json!({
            "id": problem.id(),
            "shortDescription": { "text": problem.describe() },
            "defaultConfiguration": { "level": problem.level() },
        })
    });
    let results = scanned.iter().map(|scanned| {
        let steps = scanned.run.iter().map(|(place, text)| {
            let mut location = scanned.location(place.as_ref());
            location["message"] = json!({ "text": text });
            json!({ "location": location })
        });
        let mut result = json!({
            "ruleId": scanned.problem.id(),
            "level": scanned.problem.level(),
            "message": { "text": scanned.message },
            "locations": [scanned.location(scanned.place.as_ref())],
        });
        if !scanned.run.is_empty() {
            result["codeFlows"] = json!([{ "threadFlows": [{ "locations": steps.collect::<Vec<_>>() }] }]);
        }
        result
    });
    // A file that could not be checked must not look like one without findings.
    let refused: Vec<&Scanned> =
        scanned.iter().filter(|scanned| scanned.problem == Problem::Refused).collect();
    let mut invocation = json!({ "executionSuccessful": refused.is_empty() });
    if !refused.is_empty() {
        let notifications = refused.iter().map(|scanned| {
            json!({
                "level": "error",
                "message": { "text": scanned.message },
                "locations": [scanned.location(scanned.place.as_ref())],
            })
        });
        invocation["toolExecutionNotifications"] = notifications.collect();
    }
    written(&document(version, rules.to_vec(), results.collect(), invocation))
}

/// The text of a SARIF file.
pub(crate) fn written(sarif: &Value) -> String {
    let text = serde_json::to_string_pretty(sarif).expect("the record has only string keys");
    crate::visible_json(&text).into_owned() + "\n"
}

/// A SARIF file with one run of the tool.
pub(crate) fn document(version: &str, rules: Vec<Value>, results: Vec<Value>, invocation: Value) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "palisade", "version": version, "rules": rules } },
            "invocations": [invocation],
            "results": results,
        }],
    })
}

/// A place in a file.
pub(crate) fn location(file: &str, place: Option<(u32, u32)>) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(file) } });
    if let Some((line, column)) = place {
        physical["region"] = json!({ "startLine": line, "startColumn": column });
    }
    json!({ "physicalLocation": physical })
}

/// A path as a relative reference or a `file` URI. SARIF requires URIs, in which blanks and some other
/// characters are not allowed.
pub(crate) fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~+".contains(&byte) {
            uri.push(byte.into());
        } else {
            write!(uri, "%{byte:02X}").expect("writing to a string");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_places_and_runs() {
        let place = |file: Option<&str>, line, column| {
            Some(ScannedPlace { file: file.map(str::to_owned), line, column })
        };
        let scanned = Scanned {
            file: "a b.pal".into(),
            problem: Problem::Unsafe,
            message: "P and Q are both at cs".into(),
            place: place(None, 3, 1),
            run: vec![
                (place(None, 5, 2), "P: x = 1".into()),
                (None, "P: x reaches memory".into()),
                (place(Some("c.h"), 7, 1), "P: y = 1".into()),
            ],
        };
        let text = check_sarif(&[scanned], "1.0");
        let sarif: Value = serde_json::from_str(&text).expect("SARIF is JSON");
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "unsafe");
        let physical = &result["locations"][0]["physicalLocation"];
        assert_eq!(physical["artifactLocation"]["uri"], "a%20b.pal");
        assert_eq!(physical["region"], json!({ "startLine": 3, "startColumn": 1 }));
        let steps = &result["codeFlows"][0]["threadFlows"][0]["locations"];
        assert_eq!(steps[0]["location"]["message"]["text"], "P: x = 1");
        assert_eq!(steps[1]["location"]["physicalLocation"]["region"], Value::Null);
        assert_eq!(steps[2]["location"]["physicalLocation"]["artifactLocation"]["uri"], "c.h");
        let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]));
    }

    #[test]
    fn paths_become_references() {
        for (path, expected) in
            [("a/b.pal", "a/b.pal"), ("/a/b c.pal", "file:///a/b%20c.pal"), ("ü", "%C3%BC"), ("a#b", "a%23b")]
        {
            assert_eq!(uri(path), expected);
        }
    }
}
