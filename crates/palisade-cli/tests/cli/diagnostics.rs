//! Compares the ids of diagnostics that are not about the text of a program with the page that lists them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose diagnostics are about files, options and the machine. Diagnostics of the other crates point
/// into a program and explain themselves.
const CRATES: [&str; 7] = [
    "palisade",
    "palisade-bounded",
    "palisade-cli",
    "palisade-export",
    "palisade-harness",
    "palisade-serve",
    "palisade-x86",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a crate has sources") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(&path).expect("a source is text"));
        }
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// The quoted string at the beginning of a text.
fn quoted(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('"')?.split('"').next()
}

/// The ids in a source file: those with which diagnostics are created, and those that a `match` selects for
/// one.
fn ids(source: &str) -> BTreeSet<String> {
    let made = ["Diagnostic::error(", "Diagnostic::warning("]
        .into_iter()
        .flat_map(|start| source.split(start).skip(1).filter_map(quoted));
    let choices = ["id = match ", "(id, help) = match ", "(id, message, help) = match "]
        .into_iter()
        .flat_map(|start| source.split(start).skip(1));
    let chosen =
        choices.flat_map(|choice| choice.split("};").next().unwrap_or("").split('"').skip(1).step_by(2));
    made.chain(chosen).filter(|id| is_id(id)).map(str::to_owned).collect()
}

#[test]
fn all_ids_are_listed() {
    let page = fs::read_to_string(root().join("docs/command-line.md")).expect("there is a page");
    let mut found = Vec::new();
    for name in CRATES {
        sources(&root().join("crates").join(name).join("src"), &mut found);
    }
    let ids: BTreeSet<String> = found.iter().flat_map(|source| ids(source)).collect();
    for known in ["no-such-file", "cut-off-trace", "no-start", "any-number"] {
        assert!(ids.contains(known), "{known} is not found any more: {ids:?}");
    }
    let missing: Vec<&String> = ids.iter().filter(|id| !page.contains(&format!("`{id}`"))).collect();
    assert!(missing.is_empty(), "docs/command-line.md does not describe {missing:?}");
    let listed = page.lines().filter(|line| line.starts_with("| `") && line.contains(" | "));
    let listed = listed.skip_while(|line| !line.contains("no-such-file"));
    for line in listed {
        let names = line.split(" | ").next().unwrap_or("");
        for id in names.split('`').skip(1).step_by(2) {
            assert!(ids.contains(id), "docs/command-line.md describes `{id}`, which does not exist");
        }
    }
}
