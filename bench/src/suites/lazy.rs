//! Lazy reachability: Figures 6 to 11 of Bouajjani, Calin, Derevenetc and Meyer, "Lazy TSO reachability"
//! (FASE 2015).
//!
//! *Aims.*
//! - Figure 6: all seven programs, with no more searches under SC than the paper's column RQ.
//! - Figure 7: Lamport's fast mutex for 2 to 6 threads. The paper's tools managed 4.
//! - Figures 8, 9 and 11: diamonds up to 200 branches and loops up to 100 stores with three searches each,
//!   and time that grows no faster than N².
//!
//! *How.* On one core. Wall-clock time, the median of [`ROUNDS`] runs. It does not include shortening the run
//! and rendering it, which `palisade check` does with every run. `growth` is log(t/t') / log(N/N') relative
//! to the row before: 2 means N². Rows that are too fast to measure are excluded from it.

use crate::measure::{machine, median};
use crate::plot::Chart;
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say, stop};
use anyhow::{Context, Result, anyhow};
use palisade_corpus::Safety;
use palisade_corpus::figures::{delayed_loop, diamond};
use palisade_corpus::mutex::lamport_fast_1;
use palisade_engine::{Engine, Limits, Outcome, Task};
use palisade_explore::Explicit;
use palisade_memory::Model;
use palisade_program::written::Program;
use palisade_robust::Lazy;
use palisade_syntax::{Language, parse};
use std::path::Path;
use std::time::{Duration, Instant};

const LAZY: Lazy = Lazy { sc: &Explicit };
/// Runs per measurement.
const ROUNDS: usize = 3;
/// Below this many seconds, growth cannot be measured.
const TOO_FAST: f64 = 0.02;

/// Figure 6: the program of the corpus, the verdict, and the paper's columns RQ, CPU and Real (ms).
const FIGURE_6: [(&str, &str, Safety, u64, u64, u64); 7] = [
    ("Parker (non-rob)", "locks/parker.pal", Safety::Unsafe, 4, 8, 5),
    ("Peterson (non-rob)", "mutex/peterson.pal", Safety::Unsafe, 12, 21, 13),
    ("Dekker (non-rob)", "mutex/dekker.pal", Safety::Unsafe, 30, 171, 70),
    ("Lamport (non-rob)", "mutex/lamport_fast_1_3.pal", Safety::Unsafe, 27, 1839, 694),
    ("MCS lock", "locks/mcs.pal", Safety::Safe, 30, 127, 61),
    ("CLH lock", "locks/clh.pal", Safety::Safe, 70, 10, 7),
    ("Lock-free stack", "data-structures/lock_free_stack.pal", Safety::Safe, 14, 9, 7),
];

/// The result of a run.
struct Measured {
    verdict: SafetyVerdict,
    queries: u64,
    states: u64,
    seconds: f64,
}

/// Runs the suite. If a folder is given, the curves are written there as `.svg`.
pub fn run(seconds: u64, curves: Option<&Path>) -> Result<()> {
    say!("{}; at most {seconds} s per program\n", machine());
    let limit = Duration::from_secs(seconds);
    say!("Figure 6\n");
    figure_6(limit)?;
    say!(
        "\nFigure 7: Lamport's fast mutex (the paper's Memorax and Trencher ran out of memory at 5 threads)\n"
    );
    family("threads", &[2, 3, 4, 5, 6], None, limit, &lamport_fast_1)?;
    say!("\nFigures 8, 10 and 11: diamonds (the paper's Memorax took 84 s at N = 50)\n");
    let diamonds = family("N", &[5, 10, 20, 50, 100, 150, 200], Some(3), limit, &diamond)?;
    say!("\nFigures 9 and 11: loops (the paper's CBMC took 515 s at N = 20)\n");
    let loops = family("N", &[3, 5, 10, 20, 40, 60, 80, 100], Some(3), limit, &delayed_loop)?;
    if let Some(folder) = curves {
        for (name, title, points) in [
            ("diamonds.svg", "Figure 8: diamonds with N branches", &diamonds),
            ("loops.svg", "Figure 9: loops of N stores", &loops),
        ] {
            palisade_files::write(&folder.join(name), curve(title, points).as_bytes())
                .with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}

fn figure_6(limit: Duration) -> Result<()> {
    let mut table =
        Table::new(&["program", "verdict", "queries", "RQ", "states", "ms", "paper: CPU ms", "Real ms", ""]);
    for (name, file, verdict, queries, cpu, real) in FIGURE_6 {
        measuring(name)?;
        let text = palisade_corpus::text(file).with_context(|| format!("the corpus has no {file}"))?;
        let measured = measure(text, limit)?;
        table.row(vec![
            name.to_owned(),
            measured.verdict.name().to_owned(),
            measured.queries.to_string(),
            queries.to_string(),
            thousands(measured.states),
            format!("{:.1}", measured.seconds * 1e3),
            cpu.to_string(),
            real.to_string(),
            judged(measured.verdict == SafetyVerdict::from(verdict) && measured.queries <= queries),
        ]);
    }
    table.print();
    Ok(())
}

/// A program in several sizes, each of which must be found unsafe, with this many queries if a number is
/// given. Returns the times by size.
fn family(
    heading: &str,
    sizes: &[u32],
    queries: Option<u64>,
    limit: Duration,
    program: &dyn Fn(u32) -> String,
) -> Result<Vec<(u32, f64)>> {
    let mut table = Table::new(&[heading, "verdict", "queries", "states", "ms", "growth", ""]);
    let mut times: Vec<(u32, f64)> = Vec::new();
    for &size in sizes {
        measuring(&format!("{heading} = {size}"))?;
        let measured = measure(&program(size), limit)?;
        let before = times.last().filter(|(_, seconds)| *seconds >= TOO_FAST);
        let growth = before.map(|&(other, seconds)| {
            (measured.seconds / seconds).ln() / (f64::from(size) / f64::from(other)).ln()
        });
        // More threads multiply states in any case.
        let slow = queries.is_some() && growth.is_some_and(|growth| growth > 2.0);
        let as_expected = queries.is_none_or(|queries| measured.queries == queries);
        table.row(vec![
            size.to_string(),
            measured.verdict.name().to_owned(),
            measured.queries.to_string(),
            thousands(measured.states),
            format!("{:.1}", measured.seconds * 1e3),
            growth.map_or_else(String::new, |growth| format!("{growth:.2}")),
            judged(measured.verdict == SafetyVerdict::Unsafe && as_expected && !slow),
        ]);
        times.push((size, measured.seconds));
    }
    table.print();
    Ok(times)
}

fn measure(text: &str, limit: Duration) -> Result<Measured> {
    let source = palisade_base::Source::new("program", text);
    let program = parse(Language::Pal, &source).map_err(|errors| anyhow!("{errors:?}"))?.program;
    let mut times = Vec::new();
    let mut last: Option<Outcome> = None;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        last = Some(LAZY.check(
            &task(&program).analysis(),
            &Limits::unlimited(1).with_timeout(limit).with_memory(2 << 30).with_stop(stop()),
        ));
        times.push(start.elapsed().as_secs_f64());
    }
    let outcome = last.context("there is at least one round")?;
    Ok(Measured {
        verdict: SafetyVerdict::from(&outcome.verdict),
        queries: outcome.stats.get("sc_queries").unwrap_or(0),
        states: outcome.stats.get("states").unwrap_or(0),
        seconds: median(times),
    })
}

fn task(program: &Program) -> Task<'_> {
    Task::new(program, Model::Tso)
}

/// Milliseconds over N, as a drawing.
fn curve(title: &str, points: &[(u32, f64)]) -> String {
    let points = points.iter().map(|&(n, seconds)| (f64::from(n), (seconds * 1e4).round() / 10.0));
    Chart {
        title: title.to_owned(),
        across: "N".to_owned(),
        upwards: "milliseconds".to_owned(),
        curves: vec![("lazy".to_owned(), points.collect())],
    }
    .svg()
}
