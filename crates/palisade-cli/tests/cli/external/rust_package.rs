//! Cargo packages on the command line: their dependencies are compiled with them, and nothing is fetched.

use crate::common::{Ran, Scratch};

const MANIFEST: &str = r#"[package]
name = "two-counters"
version = "0.1.0"
edition = "2021"
[features]
broken = ["latch/broken"]
[dependencies]
latch = { path = "latch" }
[workspace]
"#;

/// Variables of a dependency, functions that are never inlined, a derived trait, and what a build script says.
const LATCH: &str = r#"#![no_std]
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
static TAKEN: AtomicBool = AtomicBool::new(false);
static VISITS: AtomicU32 = AtomicU32::new(0);
#[derive(latch_names::Numbered)]
pub struct Latch;
pub fn enter() {
    if cfg!(feature = "broken") {
        while TAKEN.load(Ordering::Acquire) {}
        TAKEN.store(true, Ordering::Release);
    } else {
        while TAKEN.swap(true, Ordering::Acquire) {}
    }
    visit();
}
#[inline(never)]
fn visit() {
    VISITS.fetch_add(1, Ordering::Relaxed);
}
pub fn leave() {
    TAKEN.store(false, Ordering::Release);
}
pub fn visits() -> u32 {
    VISITS.load(Ordering::Relaxed) + Latch::number() - 7
}
pub const FROM_SCRIPT: &str = env!("LATCH_WORD");
"#;

const NAMES: &str = r#"use proc_macro::TokenStream;
#[proc_macro_derive(Numbered)]
pub fn numbered(_: TokenStream) -> TokenStream {
    "impl Latch { pub fn number() -> u32 { 7 } }".parse().unwrap()
}
"#;

const LIBRARY: &str = r#"use std::cell::UnsafeCell;
pub struct Counter(UnsafeCell<u32>);
unsafe impl Sync for Counter {}
pub static COUNTER: Counter = Counter(UnsafeCell::new(0));
pub fn count() -> u32 {
    latch::enter();
    let now = unsafe { *COUNTER.0.get() += 1; *COUNTER.0.get() };
    latch::leave();
    now
}
#[cfg(test)]
mod tests {
    #[test]
    fn alone() {
        assert_eq!(super::count(), 1);
        assert_eq!(latch::FROM_SCRIPT.len(), 4);
    }
}
"#;

const PROGRAM: &str = r#"fn main() {
    let other = std::thread::spawn(two_counters::count);
    let here = two_counters::count();
    assert_eq!(here + other.join().unwrap(), 3);
    assert_eq!(latch::visits(), 2);
}
"#;

fn package(name: &str) -> Scratch {
    let latch = "[package]\nname = \"latch\"\nversion = \"0.1.0\"\nedition = \"2018\"\n[features]\nbroken = []\n\
                 [dependencies]\nlatch_names = { path = \"../names\" }\n";
    let names = "[package]\nname = \"latch_names\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\nproc-macro = true\n";
    let script = "fn main() { println!(\"cargo:rustc-env=LATCH_WORD=word\"); }";
    let outside = "#[test]\nfn from_outside() {\n    assert_eq!(two_counters::count(), 2);\n}\n";
    Scratch::new(name)
        .file("Cargo.toml", MANIFEST)
        .file("src/lib.rs", LIBRARY)
        .file("src/main.rs", PROGRAM)
        .file("tests/outside.rs", outside)
        .file("latch/Cargo.toml", latch)
        .file("latch/build.rs", script)
        .file("latch/src/lib.rs", LATCH)
        .file("names/Cargo.toml", names)
        .file("names/src/lib.rs", NAMES)
}

/// The program and its tests, as they should be and with a lock that two threads can enter.
#[test]
fn programs_and_tests() {
    let scratch = package("rust-package");
    let safe = "safe  Cargo.toml: free of deadlocks, `main` can always finish\n";
    scratch.run(&["check", "-q", "."]).exits(0).prints(safe);
    let broken = ["check", "-q", "Cargo.toml", "--", "--features", "broken"];
    scratch
        .run(&broken)
        .exits(1)
        .prints("unsafe  Cargo.toml: the program panicked in main at line 4 of src/main.rs: [..]\n");
    let certified = ["check", "-q", ".", "--test", "tests::alone", "--certificate", "proof.json"];
    scratch.run(&certified).exits(0).prints("safe  Cargo.toml: [..]\n");
    for test in ["outside", "outside::from_outside", "from_outside"] {
        let panicked =
            "unsafe  Cargo.toml: the program panicked in main at line 3 of tests/outside.rs: [..]\n";
        scratch.run(&["check", "-q", ".", "--test", test]).exits(1).prints(panicked);
    }
    // A file must not decide that a build script is run.
    let unnamed = "error[bad-certificate]: proof.json: [..]building a package can run code: name it with --program\n...\n";
    scratch.run(&["certify", "proof.json"]).exits(2).complains(unnamed);
    scratch
        .run(&["certify", "-q", "proof.json", "--program", "Cargo.toml"])
        .exits(0)
        .prints("valid  proof.json: [..]\n");
    // Nothing is written elsewhere.
    let entries = std::fs::read_dir(scratch.path(".")).expect("it is there").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let expected = ["Cargo.lock", "Cargo.toml", "latch", "names", "proof.json", "src", "target", "tests"];
    assert_eq!(names, expected);
    let built = std::fs::read_dir(scratch.path("target")).expect("it is there").flatten();
    assert_eq!(built.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["palisade"]);
}

/// What cannot be built, and parts that are not there.
#[test]
fn what_is_wrong_with_packages() {
    let manifest =
        |rest: &str| format!("[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}");
    let missing = manifest("[dependencies]\nno-such-crate-anywhere = \"1\"\n[workspace]\n");
    let scratch = Scratch::new("rust-bad-packages")
        .file("none/Cargo.toml", missing)
        .file("none/src/main.rs", "fn main() {}\n")
        .file("bad/Cargo.toml", manifest("[workspace]\n"))
        .file("bad/src/main.rs", "mod other;\nfn main() {}\n")
        .file("bad/src/other.rs", "pub fn run() -> u32 {\n    true\n}\n")
        .file("two/Cargo.toml", manifest("[workspace]\n"))
        .file("two/src/bin/b.rs", "fn main() {}\n")
        .file("two/src/bin/c.rs", "fn main() {}\n")
        .file("all/Cargo.toml", "[workspace]\nmembers = [\"m\"]\nresolver = \"2\"\n")
        .file("all/m/Cargo.toml", manifest(""))
        .file("all/m/src/lib.rs", "");
    let complains = |arguments: &[&str], expected: &str| {
        let ran: Ran = scratch.run(arguments);
        ran.exits(2).complains(format!("error[{expected}\n..."));
    };
    complains(
        &["check", "none"],
        "cannot-build]: none/Cargo.toml: cargo cannot build it: [..]no-such-crate[..]",
    );
    complains(&["check", "bad"], "rust-error]: mismatched types (E0308)\n[..]--> bad/src/other.rs:2:5");
    complains(&["check", "two"], "no-such-target]: two/Cargo.toml: the package `a` has several programs");
    complains(&["check", "all"], "no-such-package]: all/Cargo.toml: this is a workspace, not a package");
    complains(
        &["check", "all", "--", "-p", "a"],
        "no-such-target]: all/Cargo.toml: the package `a` has no program",
    );
    complains(
        &["check", "two", "--", "--release"],
        "compiler-argument]: two/Cargo.toml: `--release` is not passed[..]",
    );
    complains(&["check", "two", "--test", "x"], "no-such-test]: two/Cargo.toml: there is no test `x`");
}
