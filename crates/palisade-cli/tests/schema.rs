//! What `--format json` prints is what the published schema says, field by field.

mod common;

use boon::{Compiler, SchemaIndex, Schemas};
use common::{STORE_BUFFERING, Scratch};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Store buffering, with a race of plain accesses.
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
    fn published() -> Schema {
        let text = std::fs::read_to_string(root().join("docs/schema/output.schema.json"));
        let schema: Value = serde_json::from_str(&text.expect("the schema is there")).expect("it is JSON");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("output.json", schema).expect("it is a resource");
        let index = compiler.compile("output.json", &mut schemas).expect("the schema is one");
        Schema { schemas, index }
    }

    /// Which commands and verdicts were seen in these lines, all of which fit.
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
fn all_that_is_printed_fits() {
    let schema = Schema::published();
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
        .file("program.c", PROGRAM)
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
    check(&["replay", "run.json"]);
    check(&["check", "sb.pal", "--model", "sc", "--certificate", "proof.json"]);
    check(&["certify", "proof.json"]);
    check(&["check", "sb.pal", "--model", "sc", "--certify"]);
    check(&["check", "grows.pal", "--engine", "explicit", "--max-buffer", "1"]);
    check(&["check", "any.pal", "--engine", "explicit"]);
    check(&["check", "wrong.pal"]);
    check(&["check", "missing.pal"]);
    for args in [&["--model", "tso"][..], &["--model", "pso"], &["--triangular"]] {
        check(&[&["robust", "sb.pal"], args].concat());
        check(&[&["robust", corpus[0], corpus[5]], args, &["--timeout", "1"]].concat());
    }
    check(&["fences", "sb.pal", "--all"]);
    check(&["fences", "sb.pal", "--model", "pso", "--goal", "robustness"]);
    check(&["fences", "started.pal"]);
    check(&["fences", "sb.pal", "--never", "1-99"]);
    check(&["monitor", "run.trace"]);
    for to in ["pal", "c", "promela"] {
        check(&["translate", "sb.pal", "--rounds", "1", "--to", to]);
    }
    check(&["translate", "sb.pal", "--age", "1", "--to", "pal", "-o", "translated.pal"]);
    check(&["doctor"]);
    scratch.run(&["cc", "-o", "program", "program.c"]).exits(0);
    check(&["run", "--schedules", "20", "--", "./program"]);
    check(&["run", "--strategy", "exhaustive", "--", "./program"]);
    check(&["run", "--", "./missing"]);
    check(&["translate", "sb.pal", "--rounds", "1", "--to", "c"]);
    check(&["translate", "sb.pal", "--age", "1", "--to", "promela", "-o", "sb.pml"]);
    check(&["translate", "any.pal", "--as-is", "--to", "c"]);
    let expected = [
        ("certify", "valid"),
        ("check", "refused"),
        ("check", "safe"),
        ("check", "unknown"),
        ("check", "unsafe"),
        ("fences", "robust"),
        ("fences", "safe"),
        ("fences", "unsafe"),
        ("monitor", "violations"),
        ("replay", "valid"),
        ("doctor", "ready"),
        ("robust", "not-robust"),
        ("robust", "racy"),
        ("robust", "robust"),
        ("translate", "refused"),
    ];
    let missing: Vec<_> = expected
        .iter()
        .filter(|(command, verdict)| !seen.contains(&((*command).to_owned(), (*verdict).to_owned())))
        .collect();
    assert!(missing.is_empty(), "not seen: {missing:?}, but {seen:?}");
}

#[test]
fn what_is_not_published_does_not_fit() {
    let schema = Schema::published();
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
}
