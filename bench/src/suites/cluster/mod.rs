//! Explicit search shared by several processes (`palisade check --processes N`).
//!
//! *Aims*, on the largest searches of `spin`: two processes with one thread each at least 1.4 times as fast as one
//! process; one process on timely at least 0.6 times as fast as the engine without it; memory per process at most 0.6 of
//! that of one alone. Also measured: bytes on the wire per state.
//!
//! *How.* The command itself is run, on files in a folder of its own, alternating. The time is wall-clock time from
//! reading the program to the answer; the time to start and connect processes is printed apart. The median counts. The
//! figures mean something only on an idle machine with at least two cores; processor time, of all processes together, is
//! hardly affected by other work. Memory is that of the tables. States are
//! compared with the engine without timely, and must be the same.
//!
//! *Backward search* is not shared. [`backward`] measures what that would take.

pub mod backward;

use crate::measure::{children_cpu, machine, median, output};
use crate::models::Model;
use crate::table::{Table, judged, megabytes, thousands};
use crate::watch::{measuring, say};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The models of the suite.
const MODELS: [&str; 3] = ["szymanski-5", "bakery-4", "lamport-4"];
/// The model that is searched in single steps, as for the second job in `spin`. The others have too many for that.
const SINGLE_STEPS: &str = "lamport-4";

/// How a search is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// One thread, without timely.
    Alone,
    /// This many processes.
    Processes(u32),
}

/// One run.
struct Run {
    states: u64,
    /// Seconds for the answer, and for everything.
    seconds: f64,
    whole: f64,
    /// Seconds of processor time, of all processes.
    cpu: f64,
    /// The most table bytes, and the most memory, of a process.
    table_bytes: f64,
    peak_bytes: f64,
    /// Bytes that all processes sent.
    sent_bytes: f64,
}

/// Runs the suite on these models, or on all of its own.
pub fn run(models: &[Model], rounds: usize) -> Result<()> {
    let own: Vec<Model> = MODELS.iter().map(|name| name.parse().expect("a model")).collect();
    let models = if models.is_empty() { &own } else { models };
    say!("{}; median of {rounds}; SC, without partial-order reduction\n", machine());
    let folder = std::env::temp_dir().join(format!("palisade-bench-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("cannot make a folder")?;
    let result = in_folder(models, rounds.max(1), &folder);
    std::fs::remove_dir_all(&folder).ok();
    result
}

fn in_folder(models: &[Model], rounds: usize, folder: &Path) -> Result<()> {
    let mut speed = Table::new(&[
        "model",
        "states",
        "alone, s",
        "1 process",
        "of alone",
        "",
        "2 processes",
        "gain",
        "",
        "connecting, s",
        "cpu s, 1",
        "cpu s, 2",
    ]);
    let mut memory = Table::new(&[
        "model",
        "B/state",
        "alone MB",
        "per process MB",
        "of alone",
        "",
        "peak MB",
        "per process",
        "sent MB",
        "B/state",
    ]);
    for model in models {
        let file = folder.join(format!("{model}.pal"));
        std::fs::write(&file, model.pal()).context("cannot write a program")?;
        let hows = [How::Alone, How::Processes(1), How::Processes(2)];
        let mut runs: [Vec<Run>; 3] = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (how, runs) in hows.iter().zip(&mut runs) {
                measuring(&model.to_string())?;
                let level = if model.to_string() == SINGLE_STEPS { "none" } else { "local" };
                runs.push(search(&file, level, *how)?);
            }
        }
        let states = runs[0][0].states;
        for run in runs.iter().flatten() {
            ensure!(run.states == states, "{model}: {} and {states} states", run.states);
        }
        let of = |runs: &[Run], field: fn(&Run) -> f64| median(runs.iter().map(field));
        let [alone, one, two] = [0, 1, 2].map(|index| of(&runs[index], |run| run.seconds));
        let connecting = of(&runs[2], |run| run.whole - run.seconds);
        speed.row(vec![
            model.to_string(),
            thousands(states),
            format!("{alone:.3}"),
            format!("{one:.3}"),
            format!("{:.2}", alone / one),
            judged(alone / one >= 0.6),
            format!("{two:.3}"),
            format!("{:.2}", one / two),
            judged(one / two >= 1.4),
            format!("{connecting:.2}"),
            format!("{:.2}", of(&runs[1], |run| run.cpu)),
            format!("{:.2}", of(&runs[2], |run| run.cpu)),
        ]);
        let [bytes, shared] = [0, 2].map(|index| of(&runs[index], |run| run.table_bytes));
        let sent = of(&runs[2], |run| run.sent_bytes);
        memory.row(vec![
            model.to_string(),
            format!("{:.1}", bytes / states as f64),
            megabytes(bytes),
            megabytes(shared),
            format!("{:.2}", shared / bytes),
            judged(shared / bytes <= 0.6),
            megabytes(of(&runs[0], |run| run.peak_bytes)),
            megabytes(of(&runs[2], |run| run.peak_bytes)),
            megabytes(sent),
            format!("{:.1}", sent / states as f64),
        ]);
    }
    say!("Time");
    speed.print();
    say!("of alone: speed of one process on timely over the engine without it; gain: of a second process\n");
    say!("Memory and network, with two processes");
    memory.print();
    say!("sent: by both processes together, per state of the whole search");
    Ok(())
}

/// Runs the command once.
fn search(file: &Path, level: &str, how: How) -> Result<Run> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.arg("check").arg(file);
    command.args(["--model", "sc", "--engine", "explicit", "--reduction", level, "--format", "json"]);
    match how {
        How::Alone => command.args(["--jobs", "1"]),
        How::Processes(processes) => command.args(["--jobs", "1", "--processes", &processes.to_string()]),
    };
    let (start, cpu) = (Instant::now(), children_cpu().unwrap_or(0.0));
    let text = output(&mut command)?;
    let whole = start.elapsed().as_secs_f64();
    let cpu = children_cpu().unwrap_or(0.0) - cpu;
    let answer: Value = serde_json::from_str(text.trim()).context("the answer is JSON")?;
    ensure!(answer["verdict"] == "safe", "{}: {}", file.display(), answer["verdict"]);
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let processes = answer["processes"].as_array().cloned().unwrap_or_default();
    let most = |name: &str| processes.iter().map(|process| number(&process[name])).fold(0.0, f64::max);
    let is_alone = how == How::Alone;
    Ok(Run {
        states: answer["stats"]["states"].as_u64().context("states are counted")?,
        seconds: number(&answer["seconds"]),
        whole,
        cpu,
        table_bytes: if is_alone { number(&answer["stats"]["table_bytes"]) } else { most("table_bytes") },
        peak_bytes: if is_alone { number(&answer["peak_memory_bytes"]) } else { most("peak_memory_bytes") },
        sent_bytes: processes.iter().map(|process| number(&process["sent_bytes"])).sum(),
    })
}
