//! Transcripts of `palisade cargo`.

use crate::common;

use common::{Ran, Scratch};

const MANIFEST: &str = "[package]\nname = \"flags\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

/// A build script runs while the program is built, and is not instrumented.
const SCRIPT: &str = "fn main() { println!(\"cargo::rustc-env=MADE=by a script\"); }\n";

const PROGRAM: &str = "\
use std::sync::atomic::{AtomicBool, Ordering};
static X: AtomicBool = AtomicBool::new(false);
static Y: AtomicBool = AtomicBool::new(false);
fn main() {
    assert_eq!(env!(\"MADE\"), \"by a script\");
    let other = std::thread::spawn(|| {
        X.store(true, Ordering::Release);
        Y.load(Ordering::Acquire)
    });
    Y.store(true, Ordering::Release);
    let seen = X.load(Ordering::Acquire);
    assert!(other.join().unwrap() || seen);
}
";

fn cargo(scratch: &Scratch, args: &[&str]) -> Ran {
    let mut command = scratch.command(args);
    // The folder of the tests' own build must not be reused.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    Ran::new(command.output().expect("the binary was built"))
}

#[test]
fn programs_are_built_and_run() {
    let scratch = Scratch::new("cargo_run")
        .file("Cargo.toml", MANIFEST)
        .file("build.rs", SCRIPT)
        .file("src/main.rs", PROGRAM);
    let ran = cargo(&scratch, &["cargo", "run", "--offline", "--quiet"]).exits(4);
    assert!(ran.stdout.starts_with("failed  "), "{}", ran.stdout);
    assert!(ran.stdout.contains("with store buffers (TSO, PSO); not seen without them"), "{}", ran.stdout);
    assert!(ran.stdout.contains("src/main.rs:10:7 ") && ran.stdout.contains("Y.store"), "{}", ran.stdout);
    cargo(&scratch, &["cargo", "build", "--offline", "--quiet"]).exits(0);
    assert!(scratch.path("target/palisade").is_dir());
    cargo(&scratch, &["cargo", "build", "--offline", "--no-such-option"]).exits(2);
    // Cargo's own exit code 1 must not look like a violation.
    cargo(&scratch, &["cargo", "run", "--offline", "--no-such-option"]).exits(2);
}
