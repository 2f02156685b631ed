//! `palisade bench`: which of the common options it accepts. What it measures is not tested here.

use crate::common;

use boon::{Compiler, Schemas};
use common::{Ran, Scratch, interrupt};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

#[test]
fn without_arguments_it_lists_the_suites() {
    let ran = Scratch::new("bench_alone").run(&["bench"]).exits(2);
    for suite in ["auto", "cover", "monitor", "parse"] {
        let listed = ran.stderr.lines().any(|line| line.trim_start().starts_with(suite));
        assert!(listed, "{suite}: {}", ran.stderr);
    }
    assert_eq!(ran.stdout, "");
}

#[test]
fn options_that_it_does_not_accept_are_refused() {
    let scratch = Scratch::new("bench_refused");
    for option in [&["--timeout", "3"][..], &["--memory", "1"], &["--jobs", "1"], &["-v"]] {
        let ran = scratch.run(&[&["bench", "robust"], option].concat()).exits(2);
        assert!(ran.stderr.starts_with("error[no-such-option]"), "{option:?}: {}", ran.stderr);
    }
}

#[test]
fn rows_as_objects() {
    let ran = Scratch::new("bench_json").run(&["bench", "robust", "-q", "--format", "json"]).exits(0);
    assert_eq!(ran.stderr, "");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/output.schema.json");
    let schema = std::fs::read_to_string(path).expect("the schema exists");
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let schema = serde_json::from_str(&schema).expect("it is JSON");
    compiler.add_resource("output.json", schema).expect("it is a resource");
    let index = compiler.compile("output.json", &mut schemas).expect("the schema is one");
    let rows: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert!(rows.len() > 100, "the corpus is larger than that");
    for row in &rows {
        schemas.validate(row, index).unwrap_or_else(|error| panic!("{row}\n{error:#}"));
        assert_eq!(row["suite"], "robust");
        assert_ne!(row["row"]["answer"], Value::Null);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn interrupted_between_rows() {
    let scratch = Scratch::new("bench_interrupted");
    let mut command = scratch.command(&["bench", "monitor"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    // The machine is printed once the command handles Ctrl-C, and before there are rows.
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    reader.read_line(&mut first).expect("the child prints text");
    interrupt(&child);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut reader, &mut rest).expect("the child prints text");
    let ran = Ran::new(child.wait_with_output().expect("the child ends")).exits(3);
    assert!(first.starts_with("machine: "), "{first}");
    assert!(ran.stderr.contains("error[stopped]"), "{}", ran.stderr);
    assert!(!rest.contains("readers(13)"), "{rest}");
}
