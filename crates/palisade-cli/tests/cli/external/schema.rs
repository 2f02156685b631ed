//! The output of `--format json` matches the published schema, field by field.

use crate::common;

use boon::{Compiler, SchemaIndex, Schemas};
use common::{STORE_BUFFERING, Scratch, interrupt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Store buffering, with a race of plain accesses. It does not repeat itself.
const PROCESS_ID: &str = "\
#include <pthread.h>
#include <unistd.h>
volatile int cells[1 << 16];
static void *run(void *nothing) { cells[getpid() % 65521 + 1] = 1; return nothing; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    cells[0] = 2;
    pthread_join(thread, 0);
    for (int i = 0; i < 64; i++) cells[i]++;
    return 0;
}
";

const PROGRAM: &str = "\
#include <pthread.h>
#include <stdatomic.h>
atomic_int x, y;
int plain, r1, r2;
static void *p(void *_) {
    (void)_;
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    r1 = atomic_load_explicit(&y, memory_order_relaxed);
    plain = 1;
    return 0;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, p, 0);
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    r2 = atomic_load_explicit(&x, memory_order_relaxed);
    plain = 2;
    pthread_join(t, 0);
    return 0;
}
";

struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    /// The schema as published: readers ignore fields that they do not know.
    fn published() -> Schema {
        let text = std::fs::read_to_string(root().join("docs/schema/output.schema.json"));
        let schema = serde_json::from_str(&text.expect("the schema exists")).expect("it is JSON");
        Schema::compiled(schema)
    }

    /// A strict version, which must contain every field that is printed.
    fn strict() -> Schema {
        fn close(schema: &mut Value) {
            match schema {
                Value::Object(fields) => {
                    if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                        fields.insert("additionalProperties".to_owned(), false.into());
                    }
                    fields.values_mut().for_each(close);
                }
                Value::Array(values) => values.iter_mut().for_each(close),
                _ => {}
            }
        }
        let text = std::fs::read_to_string(root().join("docs/schema/output.schema.json"));
        let mut schema = serde_json::from_str(&text.expect("the schema exists")).expect("it is JSON");
        close(&mut schema);
        Schema::compiled(schema)
    }

    fn compiled(schema: Value) -> Schema {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("output.json", schema).expect("it is a resource");
        let index = compiler.compile("output.json", &mut schemas).expect("the schema is one");
        Schema { schemas, index }
    }

    /// Validates these lines and returns which commands and verdicts occurred.
    fn validate(&self, lines: &str) -> BTreeSet<(String, String)> {
        let mut seen = BTreeSet::new();
        for line in lines.lines() {
            let record: Value = serde_json::from_str(line).expect("each line is JSON");
            if let Err(error) = self.schemas.validate(&record, self.index) {
                panic!("{line}\n{error:#}");
            }
            let word = |name: &str| record[name].as_str().unwrap_or("refused").to_owned();
            seen.insert((word("command"), word("verdict")));
        }
        seen
    }
}

#[test]
fn all_output_fits_the_schema() {
    let schema = Schema::strict();
    let started = "shared x: 0..1; process P { spawn Q; } process Q on spawn { x = 1; assert(x == 0); }";
    let scratch = Scratch::new("schema")
        .file("sb.pal", STORE_BUFFERING)
        .file("started.pal", started)
        .file("fault.pal", "shared a[2]: 0..1; process P { let i: 0..5 = 3; a[i] = 1; }")
        .file(
            "any.pal",
            "shared x, y: 0..1; process P[*] { x = 1; await y == 0; a: skip; } forbid count(P@a) >= 2;",
        )
        .file("grows.pal", "shared x: 0..1; process P { loop { x = 1 - x; } }")
        .file("litmus.litmus", "X86 T\n{ }\n P0 ;\n MOV [x],$1 ;\n MOV EAX,[x] ;\nexists (0:EAX=1)\n")
        .file("unreached.pal", "shared x: 0..1; process P { await x == 1; l: assert(x == 0); }")
        .file("plain.pal", "shared x: 0..1; process P { x = 1; }")
        .file("program.c", PROGRAM)
        .file("process_id.c", PROCESS_ID)
        .file("main.c", super::c::MAIN)
        .file("load.c", super::c::LOAD)
        .file("wrong.pal", "shared x: 0..1;\nprocess P { x = ; }\n")
        .file(
            "run.trace",
            "palisade trace 1\np store x a.c:3\np load y a.c:4\nq store y b.c:3\nq load x b.c:4\n",
        );
    let folders = ["litmus", "litmus-x86", "locks", "mutex", "rmm", "spawning", "trencher"];
    let folders = folders.map(|folder| root().join("corpus").join(folder).display().to_string());
    let corpus: Vec<&str> = folders.iter().map(String::as_str).collect();
    let mut seen = BTreeSet::new();
    let mut check = |args: &[&str]| {
        let ran = scratch.run(&[&["--format", "json"], args].concat());
        assert!(!ran.stdout.is_empty(), "{args:?}: {}", ran.stderr);
        seen.extend(schema.validate(&ran.stdout));
    };
    for model in ["sc", "tso", "pso"] {
        check(&[&["check"], &corpus[..], &["--model", model, "--timeout", "3"]].concat());
        check(&["check", "sb.pal", "started.pal", "fault.pal", "any.pal", "--model", model]);
    }
    check(&["check", "sb.pal", "--witness", "run.json", "--int-range", "0..3"]);
    check(&["check", "sb.pal", "--shortest"]);
    check(&["check", "sb.pal", "unreached.pal", "grows.pal", "any.pal", "--coverage", "--max-buffer", "1"]);
    check(&["replay", "run.json"]);
    check(&["check", "sb.pal", "--model", "sc", "--certificate", "proof.json"]);
    check(&["certify", "proof.json"]);
    check(&["check", "sb.pal", "--model", "sc", "--certify"]);
    check(&["check", "grows.pal", "--engine", "explicit", "--max-buffer", "1"]);
    check(&["check", "any.pal", "--engine", "explicit"]);
    check(&["check", "wrong.pal"]);
    check(&["outcomes", "sb.pal", "--model", "all", "--run", "1"]);
    check(&["outcomes", "grows.pal", "--all", "--int-range", "0..3"]);
    check(&["outcomes", "litmus.litmus", "--run", "1"]);
    check(&["outcomes", "wrong.pal"]);
    check(&["check", "missing.pal"]);
    for args in [&["--model", "tso"][..], &["--model", "pso"], &["--triangular"]] {
        check(&[&["robust", "sb.pal"], args].concat());
        check(&[&["robust", corpus[0], corpus[5]], args, &["--timeout", "1"]].concat());
    }
    check(&["fences", "sb.pal", "--all"]);
    check(&["fences", "sb.pal", "--model", "pso", "--goal", "robustness"]);
    check(&["fences", "started.pal"]);
    check(&["fences", "sb.pal", "--never", "1-99"]);
    check(&["fences", "plain.pal"]);
    check(&["fences", "plain.pal", "--goal", "robustness"]);
    let peterson = root().join("docs/c/peterson.c").display().to_string();
    check(&["fences", "--minimise", &peterson]);
    check(&["fences", "--minimise", &peterson, "--", "-Datomic_store=atomic_init"]);
    check(&["monitor", "run.trace"]);
    for to in ["pal", "c", "promela"] {
        check(&["translate", "sb.pal", "--rounds", "1", "--to", to]);
    }
    check(&["translate", "sb.pal", "--age", "1", "--to", "pal", "-o", "translated.pal"]);
    check(&["doctor"]);
    check(&["show", "sb.pal", "--as", "pal"]);
    check(&["show", "sb.pal", "--as", "dot"]);
    check(&["check", "plain.pal"]);
    scratch.run(&["cc", "-o", "program", "program.c"]).exits(0);
    check(&["run", "--schedules", "20", "--", "./program"]);
    check(&["run", "--strategy", "exhaustive", "--", "./program"]);
    scratch.run(&["cc", "-o", "process_id", "process_id.c"]).exits(0);
    check(&["run", "--strategy", "exhaustive", "--", "./process_id"]);
    check(&["run", "--", "./missing"]);
    // Runs that pass through several files.
    for command in ["check", "robust", "fences", "outcomes"] {
        check(&[command, "main.c", "--", "load.c"]);
    }
    check(&["check", "main.c", "--witness", "c.json", "--", "load.c"]);
    check(&["replay", "c.json"]);
    check(&["outcomes", "main.c", "--run", "1", "--", "load.c"]);
    check(&["robust", "main.c", "--triangular", "--", "load.c"]);
    check(&["check", "main.c", "--model", "sc", "--certificate", "c_proof.json", "--", "load.c"]);
    check(&["certify", "c_proof.json"]);
    check(&["check", "main.c", "--", "-DBROKEN", "load.c"]);
    check(&["fmt", "sb.pal", "--check"]);
    check(&["translate", "sb.pal", "--rounds", "1", "--to", "c"]);
    check(&["translate", "sb.pal", "--age", "1", "--to", "promela", "-o", "sb.pml"]);
    check(&["translate", "any.pal", "--as-is", "--to", "c"]);
    let mut server = scratch.command(&["serve", "--listen", "127.0.0.1:0", "--format", "json"]);
    let mut server = server.stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("it prints its address");
    interrupt(&server);
    server.wait().expect("it ends");
    seen.extend(schema.validate(&line));
    let expected = [
        ("certify", "valid"),
        ("check", "refused"),
        ("check", "safe"),
        ("check", "unknown"),
        ("check", "unsafe"),
        ("fmt", "refused"),
        ("fences", "repairable"),
        ("fences", "robust"),
        ("fences", "safe"),
        ("fences", "unsafe"),
        ("monitor", "violations"),
        ("outcomes", "complete"),
        ("outcomes", "refused"),
        ("replay", "valid"),
        ("doctor", "ready"),
        ("robust", "not-robust"),
        ("robust", "racy"),
        ("robust", "robust"),
        ("run", "refused"),
        // These have no verdict.
        ("serve", "refused"),
        ("show", "refused"),
        ("translate", "refused"),
    ];
    let missing: Vec<_> = expected
        .iter()
        .filter(|(command, verdict)| !seen.contains(&((*command).to_owned(), (*verdict).to_owned())))
        .collect();
    assert!(missing.is_empty(), "not seen: {missing:?}, but {seen:?}");
}

#[test]
fn other_output_does_not_fit_the_schema() {
    let schema = Schema::strict();
    let right = json!({
        "schema_version": 1, "command": "check", "file": "a.pal", "model": "tso", "engine": "dual", "verdict": "safe",
        "seconds": 0.5, "peak_memory_bytes": null, "stats": { "configurations": 3 },
    });
    assert!(schema.schemas.validate(&right, schema.index).is_ok());
    let check = |field: &str, value: Value| {
        let mut wrong = right.clone();
        wrong[field] = value;
        assert!(schema.schemas.validate(&wrong, schema.index).is_err(), "{wrong}");
    };
    check("verdict", json!("maybe"));
    check("schema_version", json!(2));
    check("surprise", json!(1));
    check("seconds", json!("0.5"));
    check("stats", json!({ "configurations": -1 }));
    check("witness", json!({}));
    // Fields may be added. A schema published earlier still accepts the output.
    let mut later = right.clone();
    later["surprise"] = json!(1);
    let published = Schema::published();
    assert!(published.schemas.validate(&later, published.index).is_ok());
    later["verdict"] = json!("maybe");
    assert!(published.schemas.validate(&later, published.index).is_err());
}

/// Whatever prevents a command from answering, it prints one object that says so.
#[test]
fn every_command_refuses_in_the_same_way() {
    let schema = Schema::strict();
    let scratch = Scratch::new("schema_refused")
        .file("sb.pal", STORE_BUFFERING)
        .file("wrong.pal", "shared x: 0..1;\nprocess P { x = ; }\n")
        .file("bad.tsv", "sb.pal\tperhaps\n")
        .file("empty/readme.md", "")
        .file("bad.schedule", "nonsense");
    let check = |args: &[&str], error: &str| {
        let ran = scratch.run(&[args, &["--format", "json"]].concat()).exits(2);
        let seen = schema.validate(&ran.stdout);
        assert_eq!(seen, [(args[0].to_owned(), "refused".to_owned())].into(), "{args:?}");
        assert_eq!(ran.stdout.lines().count(), 1, "{args:?}");
        let record: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
        assert_eq!(record["error"], error, "{args:?}: {record}");
        assert!(ran.stderr.contains(error), "{args:?}: {}", ran.stderr);
    };
    for command in ["check", "robust", "fences"] {
        check(&[command, "missing.pal"], "no-such-file");
        check(&[command, "empty"], "no-input-files");
    }
    check(&["show", "missing.pal", "--as", "pal"], "no-such-file");
    check(&["fmt", "missing.pal"], "no-such-file");
    check(&["fmt", "bad.tsv"], "not-pal");
    check(&["translate", "missing.pal", "--as-is", "--to", "c"], "no-such-file");
    check(&["translate", "sb.pal", "--as-is", "--to", "c", "-o", "no/such/folder"], "unwritable-file");
    check(&["check", "sb.pal", "--expect", "bad.tsv"], "bad-expectation");
    check(&["check", "sb.pal", "--expect", "missing.tsv"], "no-such-file");
    check(&["check", "sb.pal", "sb.pal", "--witness", "run.json"], "witness-of-many");
    check(&["certify", "missing.json"], "no-such-file");
    check(&["certify", "sb.pal"], "bad-certificate");
    check(&["replay", "missing.json"], "no-such-file");
    check(&["replay", "sb.pal"], "bad-witness");
    check(&["monitor", "missing.trace"], "no-such-file");
    check(&["run", "--replay", "bad.schedule"], "malformed-schedule");
    check(&["serve", "--listen", "203.0.113.1:1"], "cannot-listen");
    // The program of a witness or a proof.
    scratch.run(&["check", "sb.pal", "--witness", "run.json", "-q"]).exits(1);
    scratch.run(&["check", "sb.pal", "--model", "sc", "--certificate", "proof.json", "-q"]).exits(0);
    check(&["replay", "run.json", "--program", "wrong.pal"], "unexpected-token");
    check(&["certify", "proof.json", "--program", "wrong.pal"], "unexpected-token");
}
