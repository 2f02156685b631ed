//! What questions about deadlocks cost, compared with the question about bad states, on the corpus. States are
//! counted, not seconds.

use palisade::{Language, Model, Source};
use palisade_engine::{DeadlockFreedom, Engine, Limits, Options, Outcome, Safety, Stats, Task, Verdict};
use palisade_explore::{Explicit, Progress};
use palisade_program::Waits;
use std::path::{Path, PathBuf};

/// The programs below a folder.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("there is a corpus")
        .map(|entry| entry.expect("readable").path())
        .collect();
    entries.sort();
    for path in entries {
        // The explicit engine decides none of the recursive programs, and takes long to find out.
        if path.is_dir() && !path.ends_with("recursive") {
            programs(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pal") {
            found.push(path);
        }
    }
}

fn states(stats: &Stats) -> u64 {
    // States on chains are visited, too.
    stats.iter().filter(|(name, _)| ["states", "chain_steps"].contains(name)).map(|(_, value)| value).sum()
}

#[test]
fn deadlocks_cost_at_most_three_times_as_much() {
    let mut paths = Vec::new();
    programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus"), &mut paths);
    let (mut safety, mut deadlocks, mut compared) = (0, 0, 0);
    let mut costly: Vec<(f64, String)> = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let input = palisade::read(Source::new("p.pal", text), Language::Pal, None).expect("it is valid");
        for model in Model::ALL {
            let limits = Limits::unlimited(1).with_work(1_000);
            let task = Task::new(&input.program, model);
            let plain: Outcome<Safety> = Explicit.check(&task.analysis(), &limits);
            if plain.verdict != Verdict::Holds {
                continue;
            }
            let options = Options { waits: Waits::Retry, ..Options::default() };
            let retrying = Task { options, ..task };
            let limits = Limits::unlimited(1).with_work(5_000);
            let stuck: Outcome<DeadlockFreedom> = Progress.check(&retrying.analysis(), &limits);
            // A search that was cut off counts with what it has visited.
            let holds = |verdict: &Verdict| verdict.reason().is_none_or(|why| why.what_ran_out().is_some());
            if stuck.verdict.witness().is_some() || !holds(&stuck.verdict) {
                continue;
            }
            let (one, other) = (states(&plain.stats), states(&stuck.stats));
            (safety, deadlocks, compared) = (safety + one, deadlocks + other, compared + 1);
            costly.push((
                other as f64 / one as f64,
                format!("{} {}: {one} {other}", path.display(), model.name()),
            ));
        }
    }
    costly.sort_by(|a, b| b.0.total_cmp(&a.0));
    assert!(compared > 50, "{compared}");
    let (most, worst) = &costly[0];
    assert!(*most <= 3.0, "{most} times as many states for deadlocks as for bad states: {worst}");
    assert!(deadlocks <= 3 * safety, "{deadlocks} states for deadlocks, {safety} for bad states: {costly:?}");
}
