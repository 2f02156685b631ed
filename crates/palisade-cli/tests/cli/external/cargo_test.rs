//! `palisade cargo test`: each `#[test]` has a verdict of its own.

use crate::common;

use common::{Ran, Scratch};

const MANIFEST: &str = "[package]\nname = \"flags\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

/// One test fails with store buffers only, others are fine, and one is ignored. The documentation test would fail.
const LIBRARY: &str = "\
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// ```
/// panic!(\"documentation tests are not run\");
/// ```
pub fn is_seen(order: Ordering) -> bool {
    let (x, y) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (a, b) = (x.clone(), y.clone());
    let other = std::thread::spawn(move || {
        a.store(true, order);
        b.load(Ordering::SeqCst)
    });
    y.store(true, order);
    let seen = x.load(Ordering::SeqCst);
    other.join().unwrap() || seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release() {
        assert!(is_seen(Ordering::Release), \"nobody is seen\");
    }

    #[test]
    fn seq_cst() {
        assert!(is_seen(Ordering::SeqCst));
    }

    #[test]
    fn alone() {
        assert_eq!(1 + 1, 2);
    }

    #[test]
    #[ignore]
    fn slow() {
        panic!(\"this test was not asked for\");
    }
}
";

const INTEGRATION: &str =
    "#[test]\nfn outside() {\n    assert!(flags::is_seen(std::sync::atomic::Ordering::SeqCst));\n}\n";

fn cargo(scratch: &Scratch, args: &[&str]) -> Ran {
    let mut command = scratch.command(args);
    // The folder of the tests' own build must not be reused.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    Ran::new(command.output().expect("the binary was built"))
}

/// The verdict lines, without what comes after the name of the test.
fn verdicts(ran: &Ran) -> Vec<String> {
    let words = ["clean  ", "failed  ", "races  ", "unknown  "];
    let lines = ran.stdout.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.map(|line| line.split(": ").next().unwrap_or(line).to_owned()).collect()
}

#[test]
fn every_test_has_a_verdict_of_its_own() {
    let scratch = Scratch::new("cargo_test")
        .file("Cargo.toml", MANIFEST)
        .file("src/lib.rs", LIBRARY)
        .file("known.txt", "race nowhere.rs:1\n")
        .file("tests/outside.rs", INTEGRATION);
    let ran = cargo(&scratch, &["cargo", "--schedules", "100", "test", "--offline", "--quiet"]).exits(4);
    let expected =
        ["clean  tests::alone", "failed  tests::release", "clean  tests::seq_cst", "clean  outside"];
    assert_eq!(verdicts(&ran), expected, "{}", ran.stdout);
    assert!(ran.stdout.contains("with store buffers (TSO, PSO)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("nobody is seen"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("4 tests: 3 clean, 1 failed\n"), "{}", ran.stdout);

    // The schedule of the test that fails can be repeated. How many steps a test takes depends on the environment, and
    // cargo's is different, so the test is run again in this one.
    let kept = scratch.read("tests.release.schedule");
    let program = kept.lines().find_map(|line| line.strip_prefix("program ")).expect("the test program");
    scratch.run(&["run", "-q", "--schedules", "100", "--tests", "--", program, "release"]).exits(4);
    scratch.run(&["run", "--replay", "tests.release.schedule", "-q"]).exits(4);

    // Names and libtest's own options choose tests. Options of `palisade run` come first, with paths from here.
    let options = ["--schedules", "7", "--suppress", "known.txt"];
    let words = [&["cargo"], &options[..], &["test", "--offline", "--quiet", "--lib", "alone"]].concat();
    let ran = cargo(&scratch, &words).exits(0);
    assert_eq!(verdicts(&ran), ["clean  tests::alone"], "{}", ran.stdout);
    assert!(ran.stdout.contains(": 7 schedules, "), "{}", ran.stdout);
    cargo(&scratch, &["cargo", "--html", "x.html", "test", "--offline"]).exits(2);
    let words = ["cargo", "--schedules", "100", "test", "--offline", "--quiet", "--lib", "--", "--ignored"];
    let ran = cargo(&scratch, &words).exits(4);
    assert_eq!(verdicts(&ran), ["failed  tests::slow"], "{}", ran.stdout);

    // What cannot be done is refused, and a test that does not compile is not a verdict.
    cargo(&scratch, &["cargo", "test", "--offline", "--doc"]).exits(2);
    let broken = scratch.file("tests/broken.rs", "fn main() { no }");
    cargo(&broken, &["cargo", "test", "--offline", "--quiet"]).exits(2);
}
