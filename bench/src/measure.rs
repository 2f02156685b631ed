//! Time of child processes, medians, facts about the machine.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How long a child process took, averaged over several runs.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Seconds of wall-clock time.
    pub wall: f64,
    /// Seconds of processor time, user and system. Other load on the machine hardly affects it.
    pub cpu: f64,
}

/// Runs a command once and returns its output.
pub fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}\n{text}{errors}", output.status);
    Ok(text)
}

/// Runs a command several times in a row.
pub fn time(command: &mut Command, runs: usize) -> Result<Timing> {
    let (start, cpu) = (Instant::now(), children_cpu());
    for _ in 0..runs {
        output(command)?;
    }
    let wall = start.elapsed().as_secs_f64() / runs as f64;
    let cpu = match (cpu, children_cpu()) {
        (Some(before), Some(after)) => (after - before) / runs as f64,
        _ => wall,
    };
    Ok(Timing { wall, cpu })
}

/// The result of a piece of work, and its processor time in seconds (wall-clock time if the host does not
/// report processor time).
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let (start, cpu) = (Instant::now(), own_cpu());
    let result = work();
    let seconds = match (cpu, own_cpu()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    };
    (result, seconds)
}

/// Processor time of all child processes that have ended, in seconds, if the host reports it. The resolution
/// is 10 ms.
pub fn children_cpu() -> Option<f64> {
    cpu(13)
}

/// Processor time of this process, in seconds, if the host reports it. The resolution is 10 ms.
fn own_cpu() -> Option<f64> {
    cpu(11)
}

/// User and system time from the status of this process. `field` counts the fields after the process name.
fn cpu(field: usize) -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process, in parentheses, may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(field);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}

/// How many runs make a measurement of about a third of a second.
pub fn runs_for(seconds: f64) -> usize {
    ((0.3 / seconds.max(1e-4)).ceil() as usize).clamp(1, 100)
}

/// The median.
///
/// # Panics
/// If there are no numbers.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Processor and cores, on one line.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    format!("machine: {model}, {cores} cores; load at the start {load}")
}
