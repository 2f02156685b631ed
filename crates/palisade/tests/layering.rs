//! The layers of the workspace: a crate depends only on crates above it in the list, ARCHITECTURE.md tells the same list, and only the binary prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All crates, from the ground up.
const LAYERS: &[&str] = &[
    "palisade-base",
    "palisade-files",
    "palisade-program",
    "palisade-memory",
    "palisade-trace",
    "palisade-syntax",
    "palisade-export",
    "palisade-engine",
    "palisade-automata",
    "palisade-certificate",
    "palisade-conformance",
    "palisade-search",
    "palisade-explore",
    "palisade-pushdown",
    "palisade-wqo",
    "palisade-cover",
    "palisade-robust",
    "palisade-bounded",
    "palisade-fences",
    "palisade-dpor",
    "palisade-monitor",
    "palisade-harness",
    "palisade-sync",
    "palisade-report",
    "palisade",
    "palisade-corpus",
    "palisade-serve",
    "palisade-browser",
    "palisade-cli",
];

/// The engines: they know neither text nor each other.
const ENGINES: &[&str] = &[
    "palisade-explore",
    "palisade-pushdown",
    "palisade-cover",
    "palisade-robust",
    "palisade-bounded",
    "palisade-monitor",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates of the workspace that a manifest's normal and build dependencies name.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.trim_end_matches(']');
            let (section, entry) = match heading.rsplit_once("dependencies.") {
                Some((before, entry)) => (format!("{before}dependencies"), Some(entry)),
                None => (heading.to_owned(), None),
            };
            counts = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            found.extend(entry.filter(|_| counts).map(str::to_owned));
        } else if counts && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or("");
            found.insert(name.to_owned());
        }
    }
    found.retain(|name| name == "palisade" || name.starts_with("palisade-"));
    found
}

fn layer(name: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| *layer == name)
        .unwrap_or_else(|| panic!("`{name}` is in no layer: add it to LAYERS"))
}

fn dependencies_of(name: &str) -> BTreeSet<String> {
    dependencies(&read(&root().join("crates").join(name).join("Cargo.toml")))
}

#[test]
fn manifests_are_understood() {
    let check = |manifest: &str, expected: &[&str]| {
        assert_eq!(
            dependencies(manifest).iter().map(String::as_str).collect::<Vec<_>>(),
            expected,
            "{manifest}"
        );
    };
    check("[dependencies]\npalisade-base.workspace = true\nserde = \"1\"\n", &["palisade-base"]);
    check(
        "[dependencies]\n# palisade-a = 1\npalisade = { path = \"x\" }\n[dev-dependencies]\npalisade-b = \"1\"\n",
        &["palisade"],
    );
    check(
        "[dependencies.palisade-a]\npath = \"x\"\n[dev-dependencies.palisade-b]\npath = \"y\"\n",
        &["palisade-a"],
    );
    check(
        "[target.'cfg(unix)'.dependencies]\npalisade-a = \"1\"\n[build-dependencies]\npalisade-b = \"1\"\n",
        &["palisade-a", "palisade-b"],
    );
}

#[test]
fn every_crate_is_in_a_layer() {
    let folders: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .expect("the workspace has a folder of crates")
        .map(|entry| entry.expect("the folder can be read"))
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().into_string().expect("crates have plain names"))
        .collect();
    assert_eq!(folders, LAYERS.iter().map(|&layer| layer.to_owned()).collect());
}

#[test]
fn crates_depend_on_crates_above_them_only() {
    for &name in LAYERS {
        for dependency in dependencies_of(name) {
            // Measurements are no layer: they call everything, and only the binary calls them.
            let is_called = if dependency == "palisade-bench" {
                name == "palisade-cli"
            } else {
                layer(&dependency) < layer(name)
            };
            assert!(is_called, "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn front_ends_engines_and_the_checker_keep_apart() {
    let allowed = |name: &str, allowed: &[&str]| {
        for dependency in dependencies_of(name) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    };
    allowed("palisade-syntax", &["palisade-base", "palisade-program"]);
    allowed("palisade-trace", &["palisade-base", "palisade-program", "palisade-memory"]);
    for &name in ENGINES {
        let dependencies = dependencies_of(name);
        assert!(!dependencies.contains("palisade-syntax"), "{name} must not see text");
        for &other in ENGINES {
            assert!(!dependencies.contains(other), "{name} must not see {other}");
        }
    }
    for &name in LAYERS {
        let tested_with = dependencies_of(name).contains("palisade-conformance");
        assert!(!tested_with, "{name}: palisade-conformance is for development only");
    }
}

#[test]
fn the_architecture_tells_the_same_layers() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let told: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### `"))
        .filter_map(|line| line.strip_suffix('`'))
        .collect();
    assert_eq!(told, LAYERS);
}

#[test]
fn only_the_binary_prints_and_exits() {
    // The conformance suite is a part of tests and prints what failed.
    for &name in LAYERS.iter().filter(|name| !["palisade-cli", "palisade-conformance"].contains(name)) {
        let mut folders = vec![root().join("crates").join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a crate has sources") {
                let path = entry.expect("the folder can be read").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = read(&path);
                let code = text.split("#[cfg(test)]").next().unwrap_or("");
                for forbidden in ["println!(", "print!(", "process::exit("] {
                    let used = code
                        .lines()
                        .any(|line| !line.trim_start().starts_with("//") && line.contains(forbidden));
                    assert!(!used, "{} uses {forbidden}…)", path.display());
                }
            }
        }
    }
}
