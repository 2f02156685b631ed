//! Loops in which threads wait: the exhaustive search ends on them.

use crate::common::{compile_with, failures, program, random, start};
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;

fn check(compiler: &str, source: &str, hows: &[&str]) {
    let path = compile_with(compiler, source, &[]).display().to_string();
    for how in hows {
        for model in [Model::Sc, Model::Tso, Model::Pso] {
            let program =
                Program { command: vec![path.clone(), (*how).to_owned()], scheduling: Scheduling::Best };
            let options = Options { model, steps: 10_000, ..random(1) };
            let mut session = start(&program, &options);
            let searched = session.explore(None, 3_000, |_| true);
            let findings = &session.findings;
            assert!(searched.complete, "{compiler} {how} {model:?}: {searched:?} {:?}", findings.divergence);
            assert_eq!(failures(findings), [""; 0], "{compiler} {how} {model:?}: {:?}", findings.failures);
            assert_eq!(findings.races.len(), 0, "{compiler} {how} {model:?}");
        }
    }
}

#[test]
fn loops_in_c() {
    for compiler in ["gcc", "clang"] {
        check(compiler, "spinning.c", &["", "cas", "exit", "flag"]);
    }
}

/// The usual C++ lambda captures everything by reference, so the stack of `main` is shared.
#[test]
fn captured_locals() {
    for compiler in ["g++", "clang++"] {
        check(compiler, "spinning.cpp", &[""]);
    }
}

/// A loop that advances in a file, a pipe or a key is not a loop that changes nothing.
#[test]
fn state_outside_of_memory() {
    for state in ["KEY", "PIPE", "STREAM"] {
        for model in Model::ALL {
            let all = compile_with("gcc", "outside.c", &[&format!("-D{state}")]);
            let mut session = start(&program(&all), &Options { model, ..random(1) });
            session.explore(None, 3_000, |_| true);
            assert_eq!(failures(&session.findings), ["assertion"], "{state} {model:?}");
        }
    }
    // Long enough to be taken for a run that never ends. A pipe does not hold that much.
    for state in ["KEY", "STREAM"] {
        let flags = [&format!("-D{state}"), "-DALONE", "-DROUNDS=40000"];
        let path = compile_with("gcc", "outside.c", &flags);
        for model in [Model::Sc, Model::Tso] {
            let mut session = start(&program(&path), &Options { model, ..random(2) });
            session.run(|_| true);
            assert_eq!(failures(&session.findings), ["assertion"], "{state} {model:?}");
        }
    }
}
