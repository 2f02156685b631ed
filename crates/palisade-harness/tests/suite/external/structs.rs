//! Copies of structs: the load comes before the store. gcc announces them in the opposite order.

use crate::common::{compile_with, program, random, start};
use palisade_harness::session::Options;
use palisade_memory::Model;
use std::collections::BTreeSet;

/// The exit codes of all executions.
fn outcomes(compiler: &str, flags: &[&str], model: Model) -> BTreeSet<String> {
    let name = format!("structs-{compiler}{}", flags.concat());
    let program = program(&compile_with(compiler, "structs.c", flags));
    let mut session = start(&program, &Options { model, ..random(1) });
    let searched = session.explore(None, 10_000, |_| true);
    assert!(searched.complete, "{name}: {searched:?}");
    let ended = session.findings.failures.iter().filter_map(|found| {
        found.what.message.strip_prefix("the program ended with exit code ").map(str::to_owned)
    });
    ended.collect()
}

/// All orders of the copy, as one step, with the store and the load of the other thread. The store can wait in a buffer,
/// but that changes nothing: whoever reads it late might as well have come early.
fn expected() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for copy_at in 0..3 {
        let (mut x, mut y, mut seen) = (0, 0, 0);
        for step in 0..3 {
            match step {
                _ if step == copy_at => y = x,
                _ if step == usize::from(copy_at == 0) => x = 1,
                _ => seen = y,
            }
        }
        all.insert((1 + seen + 2 * y + 4 * x).to_string());
    }
    all
}

#[test]
fn the_load_comes_before_the_store() {
    assert_eq!(expected(), ["5", "7", "8"].map(str::to_owned).into());
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        for size in ["-DSMALL", "-DREST=1", "-DREST=2", "-DREST=50"] {
            for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O0")] {
                if size == "-DREST=50" && compiler == "clang" {
                    // One step per word and direction: too many executions, and the same question as with two words.
                    continue;
                }
                let found = outcomes(compiler, &[size, level], model);
                assert_eq!(found, expected(), "{compiler} {size} {level} {model:?}");
            }
        }
    }
}

/// gcc makes both calls for this, and then no copy.
#[test]
fn a_struct_that_is_assigned_to_itself_is_not_written() {
    for model in [Model::Sc, Model::Tso, Model::Pso] {
        let found = outcomes("gcc", &["-DREST=2", "-DSAME", "-O0"], model);
        assert_eq!(found, BTreeSet::from(["5".to_owned()]), "{model:?}");
    }
}
