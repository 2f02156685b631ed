//! Transcripts of `palisade monitor`.

use crate::common;

use common::{Ran, Scratch, interrupt, start};
use snapbox::str;
use std::io::Write;
use std::process::Stdio;

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
  a.c:1  x = 1; // raise the flag  this store can still be buffered
  b.c:3                            while another thread, having passed here,
  b.c:4                            makes this access before the store reaches memory

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
fn a_binary_trace_from_standard_input() {
    use palisade::monitor::{Access, Action, BinaryWriter, Bytes, Event, Process};
    let mut writer = BinaryWriter::new(Vec::new()).expect("memory can be written");
    let instructions =
        ["a.c:1", "a.c:2", "b.c:3", "b.c:4"].map(|name| writer.instruction(name).expect("written"));
    let accesses = [(0, Access::Store, 0), (0, Access::Load, 8), (1, Access::Store, 8), (1, Access::Load, 0)];
    for ((process, access, address), instruction) in accesses.into_iter().zip(instructions) {
        let bytes = Bytes::new(address, 8).expect("a small access");
        let event = Event { process: Process(process), instruction, action: Action::Access(access, bytes) };
        writer.event(&event).expect("memory can be written");
    }
    let trace = writer.finish().expect("memory can be written");
    let run = |trace: &[u8]| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_palisade"))
            .args(["monitor", "-q", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        Write::write_all(&mut child.stdin.take().expect("a pipe"), trace).expect("the command reads");
        let output = child.wait_with_output().expect("the command ends");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let whole = "violations  -: 1 under TSO, 1 under PSO, 4 events\n".to_owned();
    assert_eq!(run(&trace), (Some(1), whole));
    let cut =
        "unknown  -: no violation in 3 events read; the trace is cut off: it ends without its end mark\n";
    assert_eq!(run(&trace[..trace.len() - 4]), (Some(2), cut.to_owned()));
}

#[test]
fn nothing_to_report() {
    let scratch = Scratch::new("monitor_clean").file("run.trace", "p store x\np fence\nq load x\nend\n");
    scratch.run(&["monitor", "run.trace"]).exits(0).complains("").prints(str![[r#"
clean  run.trace: 3 events

"#]]);
}

#[test]
fn memory_is_limited() {
    use std::fmt::Write;
    let mut text = "palisade trace 1\n".to_owned();
    for process in 0..64 {
        writeln!(text, "p{process} store 8 a.c:1").expect("writing to a string");
    }
    for event in 0..200_000 {
        writeln!(text, "p{} store {} a.c:1", event % 64, 4096 + 8 * event).expect("writing to a string");
    }
    text += "end\n";
    let scratch = Scratch::new("monitor_memory").file("run.trace", text);
    let ran = scratch.run(&["monitor", "run.trace", "--memory", "0.0625", "--format", "json"]).exits(3);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(json["verdict"], "unknown");
    assert!(ran.stderr.contains("reading was stopped: out of memory (0.06 GiB)"), "{}", ran.stderr);
    let peak = json["peak_memory_bytes"].as_u64().expect("Linux reports it");
    assert!(peak <= (64 + 32) << 20, "{peak}");
    // With enough memory, the whole trace is read.
    scratch.run(&["monitor", "-q", "run.trace", "--memory", "2"]).exits(0);
}

#[test]
fn the_papers_interlocked_instructions() {
    let text = "p store d\np lock f\nq load f\nq load d\nend\n";
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
 = help: the answer covers the 4 events that were read before it

"#]]);
    scratch
        .run(&["monitor", "bad.trace"])
        .exits(2)
        .prints(str![[r#"
unknown  bad.trace: no violation in 1 event read; line 2: unknown operation `jump`

"#]])
        .complains(str![[r#"
error[malformed-trace]: bad.trace: line 2: unknown operation `jump`
 |
 = help: the answer covers the 1 event that was read before it

"#]]);
    scratch.run(&["monitor", "none.trace"]).exits(2).prints("").complains(str![[r#"
error[no-such-file]: none.trace: there is no such file or folder

"#]]);
}

/// The output of `monitor -` if this is written to it, nothing follows, and it is then stopped.
#[cfg(target_os = "linux")]
fn waits(name: &str, written: &str, timeout: Option<&str>) -> Ran {
    let scratch = Scratch::new(name);
    let mut command = scratch.command(&["monitor", "-q", "-"]);
    command.args(timeout.iter().flat_map(|timeout| ["--timeout", timeout])).stdin(Stdio::piped());
    let mut child = start(&mut command);
    // It stays open until the command has ended.
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(written.as_bytes()).expect("the command reads");
    if timeout.is_none() {
        interrupt(&child);
    }
    Ran::new(child.wait_with_output().expect("the command ends"))
}

#[test]
#[cfg(target_os = "linux")]
fn waiting_for_input_ends_with_the_time_or_control_c() {
    let late = waits("monitor_late", TRACE.trim_end().trim_end_matches("end"), Some("0.5"));
    late.exits(3)
        .prints(str![[r#"
violations  -: 1 under TSO, 1 under PSO, 4 events read

"#]])
        .complains(str![[r#"
error[stopped]: -: reading was stopped
 |
 = help: the answer covers the 4 events that were read before it

"#]]);
    let stopped = waits("monitor_stopped", "", None);
    stopped.exits(3).prints(str![[r#"
unknown  -: no violation in 0 events read; reading was stopped

"#]]);
}

/// A trace of many events without violations, as text and binary.
fn harmless() -> [Vec<u8>; 2] {
    use palisade::monitor::{Access, Action, BinaryWriter, Bytes, Event, Process, TextWriter};
    let mut text = TextWriter::new(Vec::new()).expect("memory can be written");
    let mut binary = BinaryWriter::new(Vec::new()).expect("memory can be written");
    let instruction = binary.instruction("a.c:1").expect("memory can be written");
    for number in 0..12 {
        let bytes = Bytes::new(0x1000 + 8 * number, 8).expect("a small access");
        let action = Action::Access(Access::Store, bytes);
        let event = Event { process: Process(0), instruction, action };
        text.event(&event, "a.c:1").expect("memory can be written");
        binary.event(&event).expect("memory can be written");
    }
    [text.finish().expect("memory can be written"), binary.finish().expect("memory can be written")]
}

#[test]
fn a_trace_that_is_cut_off_anywhere_is_not_clean() {
    let scratch = Scratch::new("monitor_cut_anywhere");
    let [text, binary] = harmless();
    let header = text.iter().position(|&byte| byte == b'\n').expect("a first line") + 1;
    for whole in [&text[..], &text[header..], &binary] {
        // The line break after the end mark belongs to it.
        for length in (0..whole.len()).step_by(7).chain(whole.len() - 5..=whole.len()) {
            std::fs::write(scratch.path("t"), &whole[..length]).expect("a file can be written");
            let ran = scratch.run(&["monitor", "-q", "t"]);
            let word = ran.stdout.split(' ').next().unwrap_or("");
            if length == whole.len() {
                assert_eq!((word, ran.code), ("clean", Some(0)), "{}", ran.stdout);
            } else {
                assert_eq!(word, "unknown", "{length}: {}", ran.stdout);
                assert!(matches!(ran.code, Some(2 | 3)), "{length}: {:?}", ran.code);
            }
            let json = scratch.run(&["monitor", "--format", "json", "t"]);
            let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
            assert_eq!(json["verdict"], word);
            assert_eq!(json["reason"].is_string(), word == "unknown", "{json}");
        }
    }
}

#[test]
fn a_trace_without_an_end_mark_says_so() {
    let scratch = Scratch::new("monitor_unmarked").file("t", "p store x\nq load x\n");
    scratch
        .run(&["monitor", "t"])
        .exits(3)
        .prints(str![[r#"
unknown  t: no violation in 2 events read; the trace has no end mark, so events may be missing

"#]])
        .complains(str![[r#"
error[unmarked-trace]: t: the trace has no end mark, so events may be missing
 |
 = help: end a complete trace with the line `end`

"#]]);
    // Earlier findings are kept, whatever follows.
    let scratch = Scratch::new("monitor_unmarked_found")
        .file("t", TRACE.trim_start_matches("palisade trace 1\n").replace("end\n", ""));
    scratch.run(&["monitor", "-q", "t"]).exits(1).complains("").prints(str![[r#"
violations  t: 1 under TSO, 1 under PSO, 4 events

"#]]);
}
