//! The claims of ARCHITECTURE.md about crates hold: which crates depend on which, read files, or print.
//!
//! - `layers.txt` lists what each crate may depend on, and what only its tests may depend on. This is
//!   compared with what cargo reports.
//! - Other claims are checked by looking for calls in the sources, without comments and unit tests. Each
//!   claim has an exact list of the files in which these calls occur.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engines: they know neither text nor each other.
const ENGINES: &[&str] = &[
    "palisade-explore",
    "palisade-pushdown",
    "palisade-cover",
    "palisade-robust",
    "palisade-bounded",
    "palisade-monitor",
];

/// What only tests may contain.
const TESTS_ONLY: &str = "palisade-conformance";

/// What users get: the command, and the library for their own tests.
const USERS_GET: [&str; 2] = ["palisade-cli", "palisade-sync"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a crate depends on.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Uses {
    /// What it is built with.
    normal: BTreeSet<String>,
    /// What only its tests are built with.
    tests: BTreeSet<String>,
}

/// The crates of a list like `layers.txt`, in its order.
fn listed(text: &str) -> Vec<(String, Uses)> {
    let mut crates: Vec<(String, Uses)> = Vec::new();
    let mut for_tests = false;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if !line.starts_with(' ') {
            crates.push((line.to_owned(), Uses::default()));
            continue;
        }
        let (_, uses) = crates.last_mut().expect("a crate comes first");
        for word in line.split_whitespace() {
            match word {
                "uses:" => for_tests = false,
                "tests:" => for_tests = true,
                name if for_tests => assert!(uses.tests.insert(name.to_owned()), "{name} is listed twice"),
                name => assert!(uses.normal.insert(name.to_owned()), "{name} is listed twice"),
            }
        }
    }
    crates
}

fn layers() -> Vec<(String, Uses)> {
    listed(include_str!("layers.txt"))
}

/// A crate of the workspace, as cargo knows it.
struct Package {
    folder: PathBuf,
    uses: Uses,
    library: Option<Library>,
}

/// What cargo looks for in a library.
struct Library {
    unit_tests: bool,
    examples: bool,
}

/// All crates of the workspace, from `cargo metadata`.
fn packages() -> BTreeMap<String, Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = |value: &Value| value.as_array().expect("a list").clone();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            let mut uses = Uses::default();
            for dependency in list(&package["dependencies"]) {
                let name = text(&dependency["name"]);
                // What a build script needs counts as what the crate is built with.
                match dependency["kind"].as_str() {
                    Some("dev") => uses.tests.insert(name),
                    _ => uses.normal.insert(name),
                };
            }
            let is_library = |target: &&Value| list(&target["kind"]).contains(&"lib".into());
            let library = list(&package["targets"]).iter().find(is_library).map(|target| Library {
                unit_tests: target["test"] == true,
                examples: target["doctest"] == true,
            });
            let folder = manifest.parent().expect("a file is in a folder").to_owned();
            (text(&package["name"]), Package { folder, uses, library })
        })
        .collect()
}

#[test]
fn lists_are_understood() {
    let crates = listed("# a comment\n\na\n\nb\n  uses:  a x\n         y\n  tests: z\n");
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let b = Uses { normal: set(&["a", "x", "y"]), tests: set(&["z"]) };
    assert_eq!(crates, [("a".to_owned(), Uses::default()), ("b".to_owned(), b)]);
}

#[test]
fn crates_depend_on_what_the_list_allows() {
    let packages = packages();
    let layers = layers();
    let names: BTreeSet<&String> = layers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, packages.keys().collect(), "every crate is in layers.txt");
    let mut wrong = String::new();
    for (name, allowed) in &layers {
        let found = &packages[name].uses;
        for (what, found, allowed) in
            [("depends on", &found.normal, &allowed.normal), ("is tested with", &found.tests, &allowed.tests)]
        {
            for other in found.difference(allowed) {
                wrong += &format!("{name} {what} {other}, which layers.txt does not allow\n");
            }
            for other in allowed.difference(found) {
                wrong += &format!("layers.txt says that {name} {what} {other}, but it does not\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn crates_depend_on_crates_above_them_only() {
    let layers = layers();
    let layer = |name: &String| layers.iter().position(|(other, _)| other == name);
    for (at, (name, uses)) in layers.iter().enumerate() {
        for dependency in &uses.normal {
            assert!(
                layer(dependency).is_none_or(|other| other < at),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

/// Each layer is listed with what it may use. So the claims of ARCHITECTURE.md about dependencies can be
/// checked on the list.
#[test]
fn front_ends_engines_and_the_checker_keep_apart() {
    let layers = layers();
    let names: BTreeSet<&str> = layers.iter().map(|(name, _)| name.as_str()).collect();
    let uses = |name: &str| -> BTreeSet<&str> {
        let (_, uses) = layers.iter().find(|(other, _)| other == name).expect("the crate is listed");
        uses.normal.iter().map(String::as_str).filter(|name| names.contains(name)).collect()
    };
    let check = |name: &str, allowed: &[&str]| {
        let others: Vec<&str> = uses(name).into_iter().filter(|other| !allowed.contains(other)).collect();
        assert!(others.is_empty(), "{name} must not depend on {others:?}");
    };
    for name in ["palisade-base", "palisade-files", "palisade-packed", "palisade-wqo", "palisade-dpor"] {
        check(name, &[]);
    }
    check("palisade-corpus", &["palisade-packed"]);
    check("palisade-program", &["palisade-base"]);
    check("palisade-memory", &["palisade-base", "palisade-program"]);
    check("palisade-trace", &["palisade-base", "palisade-program", "palisade-memory"]);
    check("palisade-syntax", &["palisade-base", "palisade-program"]);
    check("palisade-llvm", &["palisade-base"]);
    check("palisade-export", &["palisade-base", "palisade-program"]);
    let definitions =
        ["palisade-base", "palisade-program", "palisade-memory", "palisade-trace", "palisade-engine"];
    check("palisade-certificate", &[&definitions[..], &["palisade-automata"]].concat());
    for &name in ENGINES {
        let uses = uses(name);
        assert!(!uses.contains("palisade-syntax"), "{name} must not see text");
        let other = ENGINES.iter().find(|&&other| uses.contains(other));
        assert!(other.is_none(), "{name} must not see {other:?}");
    }
    for name in ["palisade-engine", "palisade-fences", "palisade-conformance", "palisade-automata"] {
        let engine = ENGINES.iter().find(|&&engine| uses(name).contains(engine));
        assert!(engine.is_none(), "{name} must not know {engine:?}");
    }
}

#[test]
fn what_users_run_contains_nothing_that_is_for_tests() {
    let packages = packages();
    for (name, package) in &packages {
        assert!(!package.uses.normal.contains(TESTS_ONLY), "{name}: {TESTS_ONLY} is for tests only");
    }
    for name in USERS_GET {
        let mut contained = BTreeSet::from([name]);
        let mut open = vec![name];
        while let Some(package) = open.pop().and_then(|name| packages.get(name)) {
            for other in package.uses.normal.iter().filter(|other| packages.contains_key(*other)) {
                if contained.insert(other.as_str()) {
                    open.push(other);
                }
            }
        }
        assert!(!contained.contains(TESTS_ONLY), "{name} contains {TESTS_ONLY}");
    }
}

/// Libraries without unit tests or without examples in their documentation say so, and are not built to look for them.
/// Those that have some must not say so: they would never run.
#[test]
fn unit_tests_and_examples_are_run_where_there_are_some() {
    for (name, package) in packages() {
        let Some(library) = package.library else { continue };
        let texts: Vec<String> =
            sources(&package.folder.join("src")).into_iter().map(|(_, text)| text).collect();
        let unit_tests = texts.iter().any(|text| text.contains("#[test]"));
        assert_eq!(library.unit_tests, unit_tests, "`test` of the library of {name}");
        let examples = texts.iter().any(|text| has_examples(text));
        assert_eq!(library.examples, examples, "`doctest` of the library of {name}");
    }
}

/// Whether code blocks in the documentation are compiled.
fn has_examples(text: &str) -> bool {
    let comments = text.lines().map(str::trim_start);
    let comments = comments.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    let fences = comments.filter_map(|line| line.trim_start().strip_prefix("```"));
    // Every second one ends a block.
    fences.step_by(2).any(|language| language != "text")
}

#[test]
fn the_architecture_lists_the_same_layers() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let described: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### `"))
        .filter_map(|line| line.strip_suffix('`'))
        .collect();
    let layers = layers();
    assert_eq!(described, layers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
}

/// The Rust files below a folder, with their texts.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((path.clone(), read(&path)));
            }
        }
    }
    found
}

/// A text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.to_owned() + "\n").collect()
}

/// No dependency is unused: each is mentioned where it is allowed.
#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for (name, Package { folder, uses, .. }) in packages() {
        let src: String = sources(&folder.join("src")).into_iter().map(|(_, text)| text).collect();
        let tests: String = sources(&folder.join("tests")).into_iter().map(|(_, text)| text).collect();
        let mentions = |text: &str, dependency: &str| text.contains(&dependency.replace('-', "_"));
        for dependency in &uses.normal {
            if !mentions(&src, dependency) {
                unused.push(format!("{name}: {dependency}"));
            }
        }
        for dependency in &uses.tests {
            if !mentions(&src, dependency) && !mentions(&tests, dependency) {
                unused.push(format!("{name}: {dependency} (for tests)"));
            }
        }
    }
    assert!(unused.is_empty(), "{unused:#?}");
}

/// Some of these calls occur in exactly these files, or below these folders, of the crates that users get.
#[track_caller]
fn check_calls(calls: &[&str], allowed: &[&str]) {
    let mut missing: BTreeSet<&str> = allowed.iter().copied().collect();
    let mut wrong = Vec::new();
    let root = root().canonicalize().expect("the workspace exists");
    for (name, Package { folder, .. }) in packages() {
        if name == TESTS_ONLY {
            continue;
        }
        for (path, text) in sources(&folder.join("src")) {
            let code = code(&text);
            let Some(call) = calls.iter().find(|call| code.contains(*call)) else { continue };
            let path = path.canonicalize().expect("the file exists");
            let path = path.strip_prefix(&root).expect("it is in the workspace");
            match allowed.iter().find(|allowed| path.starts_with(allowed)) {
                Some(found) => _ = missing.remove(found),
                None => wrong.push(format!("{} uses {call}", path.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(missing.is_empty(), "listed, but without such calls: {missing:?}");
}

#[test]
fn only_the_command_and_the_bench_print_and_exit() {
    // The crate for files checks whether a path is the terminal or file to which the command prints.
    check_calls(
        &["print!(", "println!(", "dbg!(", "stdout()", "stderr()"],
        &["bench/src", "crates/palisade-cli/src", "crates/palisade-files/src/lib.rs"],
    );
    check_calls(&["process::exit(", "process::abort("], &["crates/palisade-cli/src"]);
}

#[test]
fn files_are_read_and_written_in_few_places() {
    check_calls(
        &["std::fs", " fs::", "(fs::", "File::open(", "File::create(", "OpenOptions"],
        &[
            "bench/src",
            "crates/palisade-cli/src",
            "crates/palisade-files/src",
            "crates/palisade-harness/src",
            // For build scripts.
            "crates/palisade-packed/src",
            // The kernel's figures about memory.
            "crates/palisade-engine/src/memory.rs",
            "crates/palisade-engine/src/stats.rs",
            "crates/palisade-serve/src/worker.rs",
            // The web page that the command wrote about a C program.
            "crates/palisade-lsp/src/c.rs",
            // Lines of a test's source.
            "crates/palisade-sync/src/outcome.rs",
        ],
    );
}

#[test]
fn other_programs_are_started_in_few_places() {
    check_calls(
        &["Command::new("],
        &[
            "bench/src",
            "crates/palisade-cli/src",
            "crates/palisade-harness/src",
            "crates/palisade-serve/src/worker.rs",
            "crates/palisade-lsp/src/c.rs",
        ],
    );
    check_calls(
        &["TcpListener", "TcpStream"],
        &[
            "crates/palisade-serve/src",
            // Processes that share a search.
            "crates/palisade-cluster/src",
            "crates/palisade-cli/src/group/local.rs",
        ],
    );
}

/// What engines share does not single one out, and neither does the search for fences.
#[test]
fn shared_code_names_no_engine() {
    let packages = packages();
    let names: BTreeSet<&str> = palisade::engines().iter().map(|engine| engine.name()).collect();
    assert!(names.len() > 5, "{names:?}");
    for crate_name in ["palisade-engine", "palisade-fences"] {
        for (path, text) in sources(&packages[crate_name].folder.join("src")) {
            let code = code(&text);
            for name in &names {
                assert!(!code.contains(&format!("\"{name}\"")), "{} names `{name}`", path.display());
            }
        }
    }
}
