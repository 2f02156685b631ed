//! Random programs that allocate, free and use blocks: the exhaustive search finds an error exactly if brute force
//! finds one.

use crate::common::{compile_with, failures, random, start};
use palisade_conformance::c::heap::{HeapError, generate};
use palisade_conformance::seeds;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::Options;
use palisade_memory::Model;
use std::collections::BTreeSet;

fn differential_errors_in_random_programs(model: Model) {
    let seeds = seeds(120);
    let path = compile_with("gcc", "heap.c", &[]).display().to_string();
    let (mut wrong, mut right) = (0, 0);
    for seed in seeds.range() {
        let program = generate(seed);
        let reachable: BTreeSet<&str> = program.errors(model).into_iter().map(HeapError::name).collect();
        let [one, two] = program.arguments();
        let command = vec![path.clone(), one.clone(), two.clone()];
        let options = Options { model, ..random(1) };
        let mut session = start(&Program { command, scheduling: Scheduling::Best }, &options);
        // One error is enough: it ends the execution in the middle, and the search is not complete after that.
        let searched = session.explore(None, 100_000, |findings| findings.failures.is_empty());
        let found: BTreeSet<&str> = failures(&session.findings).into_iter().collect();
        let what =
            format!("seed {seed} under {model:?}: {one} {two}: {found:?}, and brute force: {reachable:?}");
        assert_eq!(found.is_empty(), reachable.is_empty(), "{what}");
        assert!(found.is_subset(&reachable), "{what}");
        assert!(searched.complete || !found.is_empty(), "{what}: {searched:?}");
        if found.is_empty() { right += 1 } else { wrong += 1 }
    }
    assert!(wrong > 10 && right > 10 || !seeds.suffice(), "{wrong} wrong programs, {right} right ones");
}

#[test]
fn differential_errors_without_buffers() {
    differential_errors_in_random_programs(Model::Sc);
}

#[test]
fn differential_errors_under_tso() {
    differential_errors_in_random_programs(Model::Tso);
}

#[test]
fn differential_errors_under_pso() {
    differential_errors_in_random_programs(Model::Pso);
}
