//! Threads that still run when the program ends: the exhaustive search knows everything that they can do before.

use crate::common::{compile_with, failures, program, random, start};
use palisade_harness::explore::Searched;
use palisade_harness::session::{Findings, Options};
use palisade_memory::Model;
use std::collections::BTreeSet;

fn all(compiler: &str, flags: &[&str], model: Model) -> (Findings, Searched) {
    let name = format!("detached-{compiler}{}", flags.concat());
    let program = program(&compile_with(compiler, "detached.c", flags));
    let mut session = start(&program, &Options { model, ..random(1) });
    let searched = session.explore(None, 1_000, |_| true);
    assert!(!searched.broken, "{name} {model:?}: {:?}", session.findings.divergence);
    (session.findings, searched)
}

#[test]
fn what_detached_threads_do_before_the_end() {
    for compiler in ["gcc", "clang"] {
        for model in [Model::Sc, Model::Tso, Model::Pso] {
            let how = format!("{compiler} {model:?}");
            // The end comes before each step of the thread, or after all of them.
            let (findings, searched) = all(compiler, &[], model);
            assert!(searched.complete && findings.failures.is_empty(), "{how}: {findings:?}");
            assert!(searched.executions >= 3, "{how}: {searched:?}");
            let (findings, _) = all(compiler, &["-DFAILS"], model);
            assert_eq!(failures(&findings), ["assertion"], "{how}");
            // y is read first: that it is seen without x needs stores that change places, which only PSO allows.
            let (findings, searched) = all(compiler, &["-DREADS"], model);
            let codes: BTreeSet<&str> = findings
                .failures
                .iter()
                .filter_map(|found| found.what.message.strip_prefix("the program ended with exit code "))
                .collect();
            let expected: &[&str] =
                if model == Model::Pso { &["1", "2", "3", "4"] } else { &["1", "3", "4"] };
            assert!(searched.complete, "{how}: {searched:?}");
            assert_eq!(codes, expected.iter().copied().collect(), "{how}");
        }
    }
}
