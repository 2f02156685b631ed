//! Functions of the libraries of C and C++ that access the program's memory: what they do is followed, or the
//! call is reported.

use crate::common::{compile_with, failures, random, run};
use palisade_harness::execution::Unfollowed;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Findings;
use std::path::Path;

fn findings(path: &Path, arguments: &[&str]) -> Findings {
    let path = path.display().to_string();
    let command = std::iter::once(path).chain(arguments.iter().map(|&argument| argument.to_owned()));
    run(&Program { command: command.collect(), scheduling: Scheduling::Best }, &random(20))
}

/// Functions whose calls are reported.
fn reported(findings: &Findings) -> Vec<&str> {
    let calls = findings.unfollowed.keys().map(|(what, _)| match what {
        Unfollowed::Call(number) => findings.calls.get(number).map_or("?", String::as_str),
        what => panic!("{what:?}"),
    });
    calls.collect()
}

/// What `calls.c` does on memory that two threads share. On memory of its own each thread does the same, and
/// nothing is wrong.
const FOLLOWED: &[&str] = &[
    "qsort",
    "fread",
    "fgets",
    "read",
    "snprintf",
    "sprintf",
    "vsnprintf",
    "%n",
    "strtol",
    "strtod",
    "time",
    "clock_gettime",
    "gmtime_r",
    "frexp",
    "modf",
    "pthread_mutex_init",
    "%s",
    "%.3s",
    "puts",
    "fwrite",
    "write",
    "atoi",
    "getenv",
];

fn check_calls(compiler: &str, flags: &[&str]) {
    let name = format!("calls_{compiler}{}", flags.concat());
    let path = compile_with(compiler, "calls.c", &[&["-w", "-lm"], flags].concat());
    for call in FOLLOWED {
        let shared = findings(&path, &[call, "shared"]);
        assert!(!shared.races.is_empty(), "{name} {call}");
        assert_eq!(reported(&shared), [""; 0], "{name} {call}");
        let own = findings(&path, &[call, "own"]);
        assert_eq!((own.races.len(), own.violations.len()), (0, 0), "{name} {call}: {:?}", own.races);
        assert_eq!(failures(&own), [""; 0], "{name} {call}: {:?}", own.failures);
        assert_eq!(reported(&own), [""; 0], "{name} {call}");
    }
    // Programs that only print numbers and fixed texts.
    assert_eq!(reported(&findings(&path, &[])), [""; 0], "{name}");
    assert_eq!(reported(&findings(&path, &["strftime", "own"])), ["strftime"], "{name}");
    assert_eq!(reported(&findings(&path, &["dlsym", "own"])), ["dlsym"], "{name}");
    assert_eq!(reported(&findings(&path, &["numbered", "own"])), ["?"], "{name}");
    // System calls by number: one that writes memory, and one that does not.
    assert_eq!(reported(&findings(&path, &["getcwd by number", "own"])), ["?"], "{name}");
    assert_eq!(reported(&findings(&path, &["getpid by number", "own"])), [""; 0], "{name}");
    let scans = findings(&path, &["sscanf", "own"]);
    assert!(reported(&scans)[0].contains("sscanf"), "{name}: {:?}", scans.unfollowed);
}

#[test]
fn functions_of_c() {
    check_calls("gcc", &["-O0"]);
    check_calls("clang", &["-O2"]);
}

#[test]
fn functions_of_c_with_checks() {
    check_calls("gcc", &["-O2", "-D_FORTIFY_SOURCE=2"]);
}

#[test]
fn functions_of_cxx() {
    for (compiler, flag) in [("g++", "-O0"), ("clang++", "-O2")] {
        let name = format!("calls_cxx_{compiler}{flag}");
        let path = compile_with(compiler, "calls.cpp", &["-w", flag, "-pthread"]);
        let tree = findings(&path, &["tree"]);
        let calls = reported(&tree);
        assert!(calls.iter().any(|call| call.contains("_Rb_tree_insert_and_rebalance")), "{name}: {calls:?}");
    }
}
