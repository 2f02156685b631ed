//! SARIF of `palisade run`: failures say whether they need store buffers, and which accesses were reordered.

use super::programs::{BUFFERING_ASSERTED, compiled};
use serde_json::Value;

/// The results of running a program that fails.
fn results(name: &str, source: &str) -> Vec<Value> {
    let scratch = compiled(name, source);
    scratch.run(&["run", "-q", "--sarif", "out.sarif", "--", "./t"]).exits(4);
    let sarif: Value = serde_json::from_str(&scratch.read("out.sarif")).expect("SARIF is JSON");
    sarif["runs"][0]["results"].as_array().expect("results").clone()
}

/// The line and the remark of each location of a thread flow.
fn locations(flow: &Value) -> Vec<(u64, String)> {
    let all = flow["locations"].as_array().expect("a thread flow has locations");
    all.iter()
        .map(|step| {
            let line = step["location"]["physicalLocation"]["region"]["startLine"].as_u64().expect("a line");
            (line, step["location"]["message"]["text"].as_str().expect("a remark").to_owned())
        })
        .collect()
}

#[test]
fn failures_with_store_buffers_have_code_flows() {
    let results = results("sarif_run_buffers", BUFFERING_ASSERTED);
    let [failure] = results.as_slice() else { panic!("one result: {results:?}") };
    let message = failure["message"]["text"].as_str().expect("a message");
    assert!(message.contains(", with store buffers (TSO, PSO); not seen without them ("), "{message}");
    assert_eq!(failure["properties"]["kind"], "assertion");
    assert_eq!(failure["properties"]["possibleUnder"], "tso");
    assert_eq!(failure["properties"]["onlyWithStoreBuffers"], false, "random schedules cannot exclude it");
    let flows = failure["codeFlows"][0]["threadFlows"].as_array().expect("thread flows");
    let [reorderings @ .., end] = flows.as_slice() else { panic!("there is the failure: {flows:?}") };
    let pending = |line: u64| (line, "this store was still in the store buffer".to_owned());
    let reads = |line: u64| (line, "when this load read memory".to_owned());
    // One reordering is enough for it, and there can be two.
    assert!(!reorderings.is_empty(), "{flows:?}");
    for found in reorderings {
        let found = locations(found);
        assert!(found == [pending(8), reads(9)] || found == [pending(14), reads(15)], "{found:?}");
    }
    assert_eq!(locations(end), [(25, "here".to_owned())]);
}

#[test]
fn failures_on_any_machine_have_none() {
    let source = BUFFERING_ASSERTED.replace("assert(r[0] || r[1])", "assert(r[0] > 1)");
    let results = results("sarif_run_any", &source);
    let failure = results.iter().find(|result| result["ruleId"] == "failure").expect("a failure");
    let message = failure["message"]["text"].as_str().expect("a message");
    assert!(message.contains(", on any machine: it does not depend on store buffers ("), "{message}");
    assert_eq!(failure["properties"]["possibleUnder"], "sc");
    assert_eq!(failure["codeFlows"], Value::Null);
}
