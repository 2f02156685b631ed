//! Compares the exhaustive search with others that do not use partial orders. Everything that random
//! schedules, or all schedules with few preemptions, show of a random program, the search shows too.

use crate::common::{compile, random, start};
use palisade_conformance::seeds;
use palisade_harness::process::{Program, Scheduling};
use palisade_harness::session::{Findings, Options};
use std::collections::BTreeSet;

/// Everything that was shown: outcomes, deadlocks, violations.
fn shown(findings: &Findings) -> BTreeSet<String> {
    let failures = findings.failures.iter().map(|found| {
        let threads: Vec<&str> = found.what.places.iter().map(|(_, thread)| thread.as_str()).collect();
        format!("{} {}", found.what.message, threads.join(" "))
    });
    let violations = findings.violations.iter().map(|found| {
        let name = |instruction| findings.instructions.name(instruction).to_owned();
        let names = [found.what.store, found.what.previous, found.what.access].map(name);
        format!("{} {}", found.what.model.name(), names.join(" | "))
    });
    let races = findings.races.iter().map(|found| {
        let mut both =
            [&found.what.first, &found.what.second].map(|(name, writes)| format!("{name} {writes}"));
        both.sort();
        both.join(" & ")
    });
    failures.chain(violations).chain(races).collect()
}

/// Tries every second seed.
fn the_search_misses_nothing(first: u64) {
    let seeds = seeds(24);
    let path = compile("random.c", &[]).display().to_string();
    let mut complete = 0;
    for seed in seeds.range().filter(|seed| seed % 2 == first) {
        let program = Program { command: vec![path.clone(), seed.to_string()], scheduling: Scheduling::Best };
        let options = Options { steps: 5_000, ..random(300) };
        let mut search = start(&program, &options);
        let searched = search.explore(None, 3_000, |_| true);
        assert!(!searched.broken, "seed {seed}: {searched:?}");
        if !searched.complete {
            continue;
        }
        complete += 1;
        let all = shown(&search.findings);
        let mut by_chance = start(&program, &options);
        by_chance.run(|_| true);
        let mut bounded = start(&program, &options);
        bounded.explore(Some(2), 1_000, |_| true);
        for (other, how) in [(&by_chance, "at random"), (&bounded, "with few preemptions")] {
            // Under random schedules, loops that change nothing never end.
            let missing: Vec<String> = shown(&other.findings)
                .difference(&all)
                .filter(|shown| !shown.contains("its step limit"))
                .cloned()
                .collect();
            assert!(missing.is_empty(), "seed {seed}, {how}: {missing:#?}\n{all:#?}");
        }
    }
    let enough = complete * 4 > seeds.count();
    assert!(enough || !seeds.suffice(), "{complete} of {} / 2 searches were complete", seeds.count());
}

#[test]
fn the_search_misses_nothing_with_even_seeds() {
    the_search_misses_nothing(0);
}

#[test]
fn the_search_misses_nothing_with_odd_seeds() {
    the_search_misses_nothing(1);
}
