//! Transcripts of `palisade monitor`.

mod common;

use common::Scratch;
use snapbox::str;

const TRACE: &str = "\
palisade trace 1
p store x a.c:1 x = 1
p load y a.c:2:5
q store y b.c:3
q load x b.c:4
end
";

#[test]
fn violations_with_source_lines() {
    let scratch = Scratch::new("monitor_text")
        .file("run.trace", TRACE)
        .file("a.c", "x = 1;  // raise the flag\nr = y;\n");
    scratch.run(&["monitor", "run.trace"]).exits(1).complains("").prints(str![[r#"
violations  run.trace: 1 under TSO, 1 under PSO, 4 events

TSO (once, first at event 4), PSO (once, first at event 4)
  a.c:1  x = 1; // raise the flag  this store may still wait in its buffer
  b.c:3                            when another process has got here, after the store,
  b.c:4                            and this access comes before the store

"#]]);
    scratch.run(&["monitor", "-q", "run.trace", "--model", "pso"]).exits(1).prints(str![[r#"
violations  run.trace: 1 under PSO, 4 events

"#]]);
}

#[test]
fn json_and_sarif() {
    let scratch = Scratch::new("monitor_json").file("run.trace", TRACE);
    scratch.run(&["monitor", "--format", "json", "run.trace", "--sarif", "out.sarif"]).exits(1).prints(str![[r#"
{"command":"monitor","events":4,"file":"run.trace","peak_memory_bytes":[..],"schema_version":1,"seconds":[..],"verdict":"violations","violations":[{"access":{"column":null,"file":"b.c","line":4,"name":"b.c:4","text":""},"previous":{"column":null,"file":"b.c","line":3,"name":"b.c:3","text":""},"pso":{"count":1,"first_event":4},"store":{"column":null,"file":"a.c","line":1,"name":"a.c:1 x = 1","text":"x = 1"},"tso":{"count":1,"first_event":4}}]}

"#]]);
    let sarif = std::fs::read_to_string(scratch.path("out.sarif")).expect("the file was written");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).expect("SARIF is JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().expect("there are results");
    let rules: Vec<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    assert_eq!(rules, ["tso-violation", "pso-violation"]);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"b.c".into(), &4.into())
    );
    assert_eq!(results[0]["relatedLocations"].as_array().map(Vec::len), Some(2));
    assert_eq!(results[0]["occurrenceCount"], 1);
}

#[test]
fn nothing_to_report() {
    let scratch = Scratch::new("monitor_clean").file("run.trace", "p store x\np fence\nq load x\n");
    scratch.run(&["monitor", "run.trace"]).exits(0).complains("").prints(str![[r#"
clean  run.trace: 3 events

"#]]);
}

#[test]
fn the_papers_interlocked_instructions() {
    let text = "p store d\np lock f\nq load f\nq load d\n";
    let scratch = Scratch::new("monitor_interlocked").file("run.trace", text);
    scratch.run(&["monitor", "-q", "run.trace"]).exits(0);
    scratch.run(&["monitor", "-q", "run.trace", "--interlocked", "own-address"]).exits(1).prints(str![[r#"
violations  run.trace: 1 under PSO, 4 events

"#]]);
}

#[test]
fn what_could_be_read_is_reported() {
    let cut = TRACE.trim_end().trim_end_matches("end");
    let scratch =
        Scratch::new("monitor_cut").file("cut.trace", cut).file("bad.trace", "p store x\np jump y\n");
    scratch
        .run(&["monitor", "-q", "cut.trace"])
        .exits(2)
        .prints(str![[r#"
violations  cut.trace: 1 under TSO, 1 under PSO, 4 events read

"#]])
        .complains(str![[r#"
error[cut-off-trace]: cut.trace: the trace is cut off: it ends without its end mark
 |
 = help: 4 events before it were read; the answer is about these

"#]]);
    scratch
        .run(&["monitor", "bad.trace"])
        .exits(2)
        .prints(str![[r#"
clean  bad.trace: 1 events read

"#]])
        .complains(str![[r#"
error[malformed-trace]: bad.trace: line 2: there is no event `jump`
 |
 = help: 1 events before it were read; the answer is about these

"#]]);
    scratch.run(&["monitor", "none.trace"]).exits(2).prints("").complains(str![[r#"
error[no-such-file]: none.trace: there is no such file or folder

"#]]);
}
