//! Runs that break algorithms without fences under TSO and PSO.
//!
//! *Aim.* The bug is found, and its run, shortened as for the user, is at most twice as long as a shortest
//! one.
//!
//! *How.* The shortest length is that of `palisade check --shortest`.

use crate::measure::machine;
use crate::models::Model;
use crate::ours::{program, task};
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say};
use anyhow::{Context, Result, anyhow};
use palisade_engine::{Engine, Limits, Reduction, Verdict};
use palisade_explore::{Explicit, Shortest, shortest};
use palisade_memory::Model as MemoryModel;
use palisade_program::lower;
use palisade_trace::{replay, shorten};
use std::time::Instant;

/// The models of the suite.
const MODELS: [&str; 10] = [
    "dekker-2",
    "peterson-2",
    "peterson-3",
    "lamport-2",
    "lamport-3",
    "szymanski-2",
    "szymanski-3",
    "burns-3",
    "bakery-2",
    "bakery-3",
];

/// The search for a shortest run gives up after this many states.
const MAX_STATES: u64 = 4_000_000;

/// Runs the suite.
pub fn run() -> Result<()> {
    say!("{}\n", machine());
    let mut table = Table::new(&[
        "model",
        "memory",
        "verdict",
        "states",
        "ms",
        "found",
        "shortened",
        "ms",
        "shortest",
        "ratio",
        "",
    ]);
    for name in MODELS {
        let model: Model = name.parse().map_err(|error: String| anyhow!(error))?;
        for memory in [MemoryModel::Tso, MemoryModel::Pso] {
            measuring(&format!("{name} under {}", memory.name()))?;
            table.row(row(model, memory)?);
        }
    }
    table.print();
    say!("found, shortened, shortest: steps of the run as the engine gives it, as the user sees it, at best");
    say!("the times are those of the search and of shortening, on one core");
    Ok(())
}

fn row(model: Model, memory: MemoryModel) -> Result<Vec<String>> {
    let program = program(model)?;
    let task = task(&program, memory, Reduction::Full);
    let start = Instant::now();
    let outcome = Explicit.check(&task.analysis(), &Limits::unlimited(1));
    let searched = start.elapsed();
    let states = outcome.stats.get("states").unwrap_or(0);
    let mut cells = vec![
        model.to_string(),
        memory.name().to_owned(),
        outcome.word().to_owned(),
        thousands(states),
        format!("{:.1}", searched.as_secs_f64() * 1e3),
    ];
    let Verdict::Violated(witness) = outcome.verdict else {
        cells.extend(["-", "-", "-", "-", "-", "SHORT"].map(str::to_owned));
        return Ok(cells);
    };
    let system = lower(&program, witness.instantiation);
    let machine = task.machine(&system);
    let found = witness.run.steps.len();
    let start = Instant::now();
    let run = shorten(machine, witness.run);
    let shortened = start.elapsed();
    replay(machine, &run).map_err(|error| anyhow!("{error}")).context("a shortened run does not replay")?;
    let limits = Limits::unlimited(1).with_work(MAX_STATES);
    let shortest = match shortest(machine, &task.options, &limits) {
        Shortest::Known(run) => Some(run.steps.len()),
        _ => None,
    };
    let ratio = shortest.map(|shortest| run.steps.len() as f64 / shortest as f64);
    cells.extend([
        found.to_string(),
        run.steps.len().to_string(),
        format!("{:.1}", shortened.as_secs_f64() * 1e3),
        shortest.map_or("?".to_owned(), |length| length.to_string()),
        ratio.map_or("?".to_owned(), |ratio| format!("{ratio:.2}")),
        ratio.map_or("?".to_owned(), |ratio| judged(ratio <= 2.0)),
    ]);
    Ok(cells)
}
