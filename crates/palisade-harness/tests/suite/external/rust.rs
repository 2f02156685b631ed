//! Rust programs by instrumented builds, as `palisade cargo` makes them.

use crate::common::{program, random, start, violations};
use palisade_harness::cache::Cache;
use palisade_harness::{runtime, rust};
use palisade_memory::Model;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of `tests/programs` with this rustc.
fn compile(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust");
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    let cache = Cache::in_folder(&folder.join("cache")).expect("a cache can be made");
    let runtime = runtime::object("gcc", &cache)
        .unwrap_or_else(|error| panic!("gcc is needed (Debian package gcc; `./test` installs it): {error}"));
    let output = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.rs"));
    let compiled = Command::new("rustc")
        .args(["--edition=2021", "-o"])
        .arg(&output)
        .arg(&source)
        .args(rust::flags(&runtime.path.expect("it is kept")))
        .output()
        .expect("rustc is there, as cargo is");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "rustc does not instrument {name}.rs (see `palisade doctor`): {said}");
    output
}

#[test]
fn atomics() {
    let path = compile("buffering");
    let mut session = start(&program(&path), &random(100));
    session.run(|_| true);
    let findings = &session.findings;
    assert!(findings.failures.is_empty() && findings.races.is_empty(), "{findings:?}");
    assert!(violations(findings, Model::Tso) > 0);
    let first = &findings.violations[0].what;
    for instruction in [first.store, first.previous, first.access] {
        let name = findings.instructions.name(instruction);
        assert!(name.contains("buffering.rs:"), "lines of the program, not of the standard library: {name}");
    }
    let mut strong = program(&path);
    strong.command.push("strong".to_owned());
    let mut session = start(&strong, &random(100));
    session.run(|_| true);
    assert_eq!(session.findings.violations.len(), 0);
}

#[test]
fn locks() {
    let path = compile("mutex");
    let mut session = start(&program(&path), &random(300));
    session.run(|_| true);
    let findings = &session.findings;
    assert!(findings.failures.is_empty() && findings.races.is_empty(), "{findings:?}");
    assert_eq!(findings.violations.len(), 0, "{:?}", findings.violations);
}
