//! SC search compared with Spin's verifier (`spin -a`, `gcc -O2 -DSAFETY`, with and without `-DNOREDUCE`).
//!
//! *Aims.* Without reduction: at least as many states per second, and no more memory. With reduction: no more
//! states. Two jobs on the largest model: at least 1.6 times as fast as one.
//!
//! *How.* Both sides run in separate processes, alternating, several times in a row if one run is short. The
//! time is processor time, from the start of the process to its end, and the median counts. The speedup from
//! a second job is a ratio of wall-clock times instead. Memory is that of the tables: for Spin the states,
//! hash table and stack as it reports them, for us the visited set and the thread automaton. Our peak is that
//! of the whole process, including code and buffers.

use crate::measure::{machine, median, output, runs_for, time};
use crate::models::Model;
use crate::ours::{Level, Memory, OurSearch, Search};
use crate::spin::{Printed, Reduce, Verifier, check_installed};
use crate::table::{Table, judged, megabytes, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say};
use anyhow::{Context, Result, ensure};

/// Shorter runs measure how fast a process starts, not how fast it searches.
const TOO_SHORT: f64 = 0.02;

/// The models of the suite, smaller ones first.
const MODELS: [&str; 11] = [
    "peterson-2",
    "peterson-3",
    "peterson-4",
    "szymanski-3",
    "szymanski-4",
    "szymanski-5",
    "lamport-3",
    "lamport-4",
    "bakery-2",
    "bakery-3",
    "bakery-4",
];
/// The model on which the speedup from a second job is measured.
const LARGEST: &str = "lamport-4";

/// Both sides on one model.
struct Compared {
    model: Model,
    settings: String,
    theirs: Printed,
    ours: OurSearch,
    their_seconds: f64,
    our_seconds: f64,
}

/// Runs the suite on these models, or on all of its own.
pub fn run(models: &[Model], rounds: usize) -> Result<()> {
    let tools = check_installed()?;
    let own: Vec<Model> = MODELS.iter().map(|name| name.parse().expect("a model")).collect();
    let models = if models.is_empty() { &own } else { models };
    let rounds = rounds.max(1);
    say!("{}\n{tools}; median of {rounds}\n", machine());
    let folder = std::env::temp_dir().join(format!("palisade-bench-{}", std::process::id()));
    let result = in_folder(models, rounds, &folder);
    std::fs::remove_dir_all(&folder).ok();
    result
}

fn in_folder(models: &[Model], rounds: usize, folder: &std::path::Path) -> Result<()> {
    say!("Without reduction: states per second and memory");
    let mut table = Table::new(&[
        "model",
        "Spin states",
        "s",
        "M/s",
        "B/state",
        "MB",
        "our states",
        "s",
        "M/s",
        "B/state",
        "MB",
        "peak MB",
        "time",
        "speed",
        "",
        "memory",
        "",
    ]);
    let mut settings = Vec::new();
    for &model in models {
        let row = compare(model, Reduce::No, rounds, folder)?;
        let their_rate = row.theirs.states as f64 / row.their_seconds;
        let our_rate = row.ours.states as f64 / row.our_seconds;
        let their_bytes = row.theirs.total_megabytes * 1048576.0;
        let our_bytes = row.ours.table_bytes as f64;
        table.row(vec![
            model.to_string(),
            thousands(row.theirs.states),
            format!("{:.3}", row.their_seconds),
            format!("{:.2}", their_rate / 1e6),
            format!("{:.1}", their_bytes / row.theirs.states as f64),
            megabytes(their_bytes),
            thousands(row.ours.states),
            format!("{:.3}", row.our_seconds),
            format!("{:.2}", our_rate / 1e6),
            format!("{:.1}", our_bytes / row.ours.states as f64),
            megabytes(our_bytes),
            megabytes(row.ours.peak_bytes as f64),
            format!("{:.2}", row.our_seconds / row.their_seconds),
            format!("{:.2}", our_rate / their_rate),
            if row.their_seconds < TOO_SHORT {
                "start-up".to_owned()
            } else {
                judged(our_rate >= their_rate)
            },
            format!("{:.2}", our_bytes / their_bytes),
            judged(our_bytes <= their_bytes),
        ]);
        settings.push(format!("{}: {}", row.model, row.settings));
    }
    table.print();
    say!("time, memory: ours over Spin's, less is better; speed: states per second, more is better");
    say!("Spin's settings: {}\n", settings.join("; "));

    say!("With reduction: states");
    let mut table =
        Table::new(&["model", "Spin states", "s", "MB", "our states", "s", "MB", "time", "states", ""]);
    for &model in models {
        let row = compare(model, Reduce::Yes, rounds, folder)?;
        table.row(vec![
            model.to_string(),
            thousands(row.theirs.states),
            format!("{:.3}", row.their_seconds),
            megabytes(row.theirs.total_megabytes * 1048576.0),
            thousands(row.ours.states),
            format!("{:.3}", row.our_seconds),
            megabytes(row.ours.table_bytes as f64),
            format!("{:.2}", row.our_seconds / row.their_seconds),
            format!("{:.2}", row.ours.states as f64 / row.theirs.states as f64),
            judged(row.ours.states <= row.theirs.states),
        ]);
    }
    table.print();
    say!("time, states: ours over Spin's, less is better\n");

    let largest: Model = LARGEST.parse().expect("a model");
    if models.contains(&largest) {
        say!("A second job on {largest}");
        let mut table = Table::new(&["reduction", "one job, s", "two jobs, s", "gain", ""]);
        for reduction in [Level::None, Level::Full] {
            measuring(&format!("two jobs, reduction {}", reduction.name()))?;
            let (one, two) = second_job(largest, reduction, rounds)?;
            let gain = one / two;
            table.row(vec![
                reduction.name().to_owned(),
                format!("{one:.3}"),
                format!("{two:.3}"),
                format!("{gain:.2}"),
                judged(gain >= 1.6),
            ]);
        }
        table.print();
    }
    Ok(())
}

fn compare(model: Model, reduce: Reduce, rounds: usize, folder: &std::path::Path) -> Result<Compared> {
    measuring(&model.to_string())?;
    let verifier = Verifier::new(model, reduce, folder)?;
    let reduction = if reduce == Reduce::Yes { Level::Full } else { Level::Local };
    let search = Search { program: model, model: Memory::Sc, reduction, workers: 1 };
    let theirs = verifier.run()?;
    let ours = found(search)?;
    ensure!(
        theirs.errors == 0 && ours.verdict == SafetyVerdict::Safe,
        "{model}: Spin {theirs:?}, ours {ours:?}"
    );
    let their_runs = runs_for(time(&mut verifier.command(), 1)?.wall);
    let our_runs = runs_for(time(&mut search.command()?, 1)?.wall);
    let (mut their_times, mut our_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        their_times.push(time(&mut verifier.command(), their_runs)?.cpu);
        our_times.push(time(&mut search.command()?, our_runs)?.cpu);
    }
    Ok(Compared {
        model,
        settings: verifier.settings(),
        theirs,
        ours,
        their_seconds: median(their_times),
        our_seconds: median(our_times),
    })
}

/// Wall-clock times of the same search with one job and with two, alternating.
fn second_job(program: Model, reduction: Level, rounds: usize) -> Result<(f64, f64)> {
    let search = |workers| Search { program, model: Memory::Sc, reduction, workers };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        one.push(found(search(1))?.seconds);
        two.push(found(search(2))?.seconds);
    }
    Ok((median(one), median(two)))
}

fn found(search: Search) -> Result<OurSearch> {
    let text = output(&mut search.command()?)?;
    OurSearch::parse(&text).with_context(|| format!("not the output of a search: {text}"))
}
