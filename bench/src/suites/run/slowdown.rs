//! How much longer a program takes under our scheduler and monitors than on its own, and than with gcc's
//! ThreadSanitizer.

use super::native::{Folder, Settings, session};
use crate::measure::{children_cpu, timed};
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say};
use anyhow::{Context, Result, bail, ensure};
use palisade_harness::schedule::{Strategy, Turns};
use palisade_memory::Interlocked;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Programs, and how many operations each of two threads performs.
const PROGRAMS: [(&str, usize); 4] =
    [("dekker", 100_000), ("msn", 50_000), ("ms2", 50_000), ("harris", 50_000)];
const ROUNDS: usize = 15;
const AIM: f64 = 10e6;

pub fn run(folder: &Folder) -> Result<()> {
    say!("One execution with many operations, with fences: wall-clock seconds, the shortest of {ROUNDS}");
    let mut table = Table::new(&[
        "program",
        "gcc -O0",
        "gcc -O2",
        "TSan",
        "ours",
        "/ -O0",
        "/ TSan",
        "events",
        "M events/s",
        "",
        "program s",
        "monitors s",
    ]);
    let mut scheduling = String::new();
    for (name, ops) in PROGRAMS {
        measuring(&format!("{name}, one long execution"))?;
        let settings = Settings { threads: 2, ops, fenced: true };
        let mut seconds = Vec::new();
        for flags in [&["-O0"][..], &["-O2"], &["-O0", "-g", "-fsanitize=thread"]] {
            let path = folder.plain(name, settings, flags)?;
            seconds.push(shortest(|| alone(&path))?);
        }
        let path = folder.compile(name, settings)?;
        let mut events = 0;
        let (mut program, mut monitors) = (f64::INFINITY, f64::INFINITY);
        let ours = shortest(|| {
            let before = children_cpu();
            let mut session = session(&path, Interlocked::WholeBuffer, 1)?;
            scheduling = session.scheduling().to_owned();
            let command = session.command(Strategy::Random, 1, 0, Turns::default());
            let start = Instant::now();
            let (execution, own) = timed(|| session.execute(&command));
            let seconds = start.elapsed().as_secs_f64();
            let Some(execution) = execution else { bail!("{name}: the execution was lost") };
            events = execution.events;
            drop(session);
            let child = before.zip(children_cpu()).map_or(seconds, |(before, after)| after - before);
            (program, monitors) = (program.min(child), monitors.min(own));
            Ok(seconds)
        })?;
        let rate = events as f64 / ours;
        table.row(vec![
            name.to_owned(),
            format!("{:.3}", seconds[0]),
            format!("{:.3}", seconds[1]),
            format!("{:.3}", seconds[2]),
            format!("{ours:.3}"),
            format!("{:.1}", ours / seconds[0]),
            format!("{:.1}", ours / seconds[2]),
            thousands(events),
            format!("{:.1}", rate / 1e6),
            if name == "dekker" { judged(rate >= AIM) } else { String::new() },
            format!("{program:.2}"),
            format!("{monitors:.2}"),
        ]);
    }
    table.print();
    say!(
        "ours: scheduled ({scheduling}), recorded, monitored for both models and for races; M events/s: wall-clock time; aim for dekker: {} million\n\
         program, monitors: processor time of the program with our runtime, and of the process that reads its log, which works on two threads; they run side by side",
        AIM / 1e6
    );
    Ok(())
}

fn shortest(mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        best = best.min(measure()?);
    }
    Ok(best)
}

fn alone(path: &Path) -> Result<f64> {
    let start = Instant::now();
    let output = Command::new(path).output().with_context(|| format!("cannot run {}", path.display()))?;
    ensure!(output.status.success(), "{} failed: {}", path.display(), output.status);
    Ok(start.elapsed().as_secs_f64())
}
