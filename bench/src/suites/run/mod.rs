//! Real programs under our scheduler and monitors: the seven benchmarks of Burnim, Sen and Stergiou (TACAS
//! 2011, Table 1), rewritten by us in C (`bench/programs/run`) and in Rust, and other common programs.
//!
//! *Aims.*
//! - In 1000 random executions each: TSO violations in Dekker and the bakery and in none of the five data
//!   structures, PSO violations in all seven, and no violations of either kind with fences.
//! - All partial orders of the seven with two threads and two operations each.
//! - Under TSO, no more executions than GenMC and Nidhugg, whichever needs fewer.
//! - At least 10 million scheduled events per second on Dekker.
//!
//! *How.* The C programs are compiled as `palisade cc` does and run by `palisade-harness`; the Rust programs
//! run under `palisade-sync`. In the paper's PSO, a locked instruction waits only for stores to its own
//! address. On x86, locked instructions wait for all stores. With these, a program has no violations under
//! PSO either, provided that each of its stores is followed by a locked instruction before it matters. The
//! paper's programs and tests are not published, so the numbers are comparable only in kind: which programs
//! have violations, and in how many of the traces.

#[allow(dead_code, reason = "the tests of palisade-sync use all of it")]
#[path = "../../../../crates/palisade-sync/tests/suite/algorithms/mod.rs"]
mod algorithms;
mod exhaustive;
mod native;
mod peers;
mod slowdown;

use crate::measure::machine;
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say};
use anyhow::Result;
use native::{Folder, Settings};
use palisade_memory::{Interlocked, Model};
use palisade_sync::Checker;

/// The figures of the paper's Table 1: events per trace, traces with TSO violations and how many distinct
/// ones, the same for PSO.
struct Paper {
    events: u64,
    tso: (u64, u64),
    pso: (u64, u64),
}

const PAPER: [Paper; 7] = [
    Paper { events: 140, tso: (973, 10), pso: (977, 15) },
    Paper { events: 515, tso: (992, 3), pso: (1000, 4) },
    Paper { events: 337, tso: (0, 0), pso: (943, 3) },
    Paper { events: 193, tso: (0, 0), pso: (73, 2) },
    Paper { events: 1332, tso: (0, 0), pso: (976, 2) },
    Paper { events: 443, tso: (0, 0), pso: (18, 2) },
    Paper { events: 376, tso: (0, 0), pso: (951, 10) },
];

/// Programs outside the paper that have violations under TSO without fences.
const TSO_TOO: [&str; 5] = ["dekker", "bakery", "chase_lev", "treiber", "spsc"];

/// Runs the suite with this many random executions per program.
pub fn run(schedules: u64) -> Result<()> {
    say!("{}\n", machine());
    let folder = Folder::new()?;
    random(&folder, schedules)?;
    fenced(&folder, schedules)?;
    rust(schedules)?;
    exhaustive::run(&folder)?;
    peers::run(&folder)?;
    slowdown::run(&folder)
}

/// The part that needs no compiler, with this many random executions per program.
pub fn quick(schedules: u64) -> Result<()> {
    rust(schedules)
}

/// Traces with violations, and how many of them are distinct.
fn cell((traces, distinct): (u64, u64)) -> String {
    if traces == 0 { "-".to_owned() } else { format!("{traces} ({distinct})") }
}

fn random(folder: &Folder, schedules: u64) -> Result<()> {
    say!(
        "{schedules} random executions in C without fences: traces with violations (distinct violations), next to the paper's, out of 1000"
    );
    let mut table = Table::new(&[
        "program",
        "threads",
        "events",
        "paper",
        "TSO",
        "paper",
        "",
        "PSO",
        "paper",
        "",
        "PSO, whole buffer",
        "schedules/s",
    ]);
    for (index, (name, _)) in algorithms::SEVEN.iter().chain(&algorithms::MORE).enumerate() {
        measuring(name)?;
        let settings = Settings { threads: if index == 0 { 2 } else { 3 }, ops: 4, fenced: false };
        let program = folder.compile(name, settings)?;
        let own = native::random(&program, schedules, Interlocked::OwnAddress)?;
        let whole = native::random(&program, schedules, Interlocked::WholeBuffer)?;
        let paper = PAPER.get(index);
        let or_empty = |value: Option<String>| value.unwrap_or_default();
        table.row(vec![
            (*name).to_owned(),
            settings.threads.to_string(),
            (own.events / schedules.max(1)).to_string(),
            or_empty(paper.map(|paper| paper.events.to_string())),
            cell(own.tso),
            or_empty(paper.map(|paper| cell(paper.tso))),
            judged((own.tso.0 > 0) == TSO_TOO.contains(name)),
            cell(own.pso),
            or_empty(paper.map(|paper| cell(paper.pso))),
            judged(own.pso.0 > 0),
            cell(whole.pso),
            thousands((schedules as f64 / own.seconds) as u64),
        ]);
    }
    table.print();
    say!(
        "events: per trace; PSO: locked instructions wait for stores to their own address, as in the paper\n"
    );
    Ok(())
}

fn fenced(folder: &Folder, schedules: u64) -> Result<()> {
    let mut clean = 0;
    let mut rest = Vec::new();
    for (index, (name, _)) in algorithms::SEVEN.iter().chain(&algorithms::MORE).enumerate() {
        measuring(&format!("{name} with fences"))?;
        let settings = Settings { threads: if index == 0 { 2 } else { 3 }, ops: 4, fenced: true };
        let program = folder.compile(name, settings)?;
        let found = native::random(&program, schedules, Interlocked::OwnAddress)?;
        if found.tso.0 + found.pso.0 == 0 { clean += 1 } else { rest.push(*name) }
    }
    say!(
        "With fences, {schedules} random executions each: {clean} programs without violations {}\n",
        judged(rest.is_empty())
    );
    if !rest.is_empty() {
        say!("still with violations: {}\n", rest.join(", "));
    }
    Ok(())
}

fn rust(schedules: u64) -> Result<()> {
    say!("{schedules} random executions in Rust (palisade-sync) without fences");
    let mut table = Table::new(&["program", "events", "TSO", "", "PSO", "", "schedules/s"]);
    for (index, (name, program)) in algorithms::SEVEN.into_iter().chain(algorithms::MORE).enumerate() {
        measuring(&format!("{name} in Rust"))?;
        let variant = algorithms::Variant { threads: if index == 0 { 2 } else { 3 }, ops: 4, fenced: false };
        let checker = Checker::new().robust().schedules(schedules).interlocked(Interlocked::OwnAddress);
        let start = std::time::Instant::now();
        let [tso, pso] = [Model::Tso, Model::Pso]
            .map(|model| checker.clone().model(model).check(move || program(variant)));
        let seconds = start.elapsed().as_secs_f64() / 2.0;
        let found = |outcome: &palisade_sync::Outcome| (outcome.violating, outcome.violations.len() as u64);
        table.row(vec![
            name.to_owned(),
            (tso.events / schedules.max(1)).to_string(),
            cell(found(&tso)),
            judged((tso.violating > 0) == TSO_TOO.contains(&name) && tso.failed.is_none()),
            cell(found(&pso)),
            judged(pso.violating > 0 && pso.failed.is_none()),
            thousands((schedules as f64 / seconds) as u64),
        ]);
    }
    table.print();
    say!();
    Ok(())
}
