//! The load-buffer engine (`--engine dual`).
//!
//! *Aims.*
//! 1. Every row of Tables 1 and 2 of Abdulla, Atig, Bouajjani and Ngo, "A load-buffer semantics for total
//!    store ordering" (LMCS 2018), with their verdict and never more configurations than theirs ([`paper`]).
//! 2. On the published `.rmm` files, at most a tenth more configurations than a first implementation of the
//!    same search, and fewer in the geometric mean ([`folder`]).
//! 3. Growth with the number of threads ([`growth`]).
//! 4. On large searches, a million configurations per second and at most 65 bytes for each.
//! 5. Proofs take less time to check than to find ([`proofs`]).
//!
//! *How.* One run per row, in this process on one core. Configurations are those generated, before
//! subsumption. The limit is wall-clock time. Seconds are processor time, with a resolution of 10 ms. A speed
//! is given for runs of at least a tenth of a second. Bytes are those of the engine's tables at the end, per
//! configuration generated.

pub mod folder;
pub mod growth;
pub mod paper;
pub mod proofs;

use crate::measure::{machine, timed};
use crate::table::thousands;
use crate::verdict::SafetyVerdict;
use crate::watch::{say, stop};
use anyhow::{Result, anyhow};
use palisade_base::Source;
use palisade_cover::Dual;
use palisade_engine::{Engine, Limits, Options, Outcome, Task, Threads, Witness};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::Language;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the suite: the folders if there are any, otherwise the paper's tables and the growth.
pub fn run(folders: &[PathBuf], seconds: u64, plots: Option<&Path>) -> Result<()> {
    say!("{}; at most {seconds} s per run\n", machine());
    let limit = Duration::from_secs(seconds);
    if folders.is_empty() {
        paper::run(limit)?;
        growth::run(limit, plots)?;
        proofs::run(limit)
    } else {
        folder::run(folders, limit)
    }
}

/// The headings of [`Run::cells`].
const HEADINGS: [&str; 7] =
    ["verdict", "configurations", "antichain", "subsumption tests", "seconds", "per second", "bytes each"];

/// The engine's answer, and what it cost.
#[derive(Clone, Debug)]
struct Run {
    verdict: SafetyVerdict,
    /// Why the verdict is unknown, if it is.
    reason: Option<String>,
    /// For `unsafe`, the largest number of threads in the run of a kind that may have any number of
    /// instances.
    threads: Option<u32>,
    configurations: u64,
    antichain: u64,
    tests: u64,
    bytes: u64,
    seconds: f64,
}

impl Run {
    /// Runs the engine under TSO.
    fn new(program: &Program, threads: Threads, limit: Duration) -> Run {
        let options = Options::default();
        let task = Task { program, threads, model: Model::Tso, interlocked: Interlocked::default(), options };
        let limits = Limits::unlimited(1).with_timeout(limit).with_memory(8 << 30).with_stop(stop());
        let (Outcome { verdict, stats, .. }, seconds) = timed(|| Dual.check(&task.analysis(), &limits));
        let counter = |name| stats.get(name).unwrap_or(0);
        let any = |witness: &Witness| task.is_parameterized().then_some(witness.instantiation.any);
        Run {
            verdict: SafetyVerdict::from(&verdict),
            reason: verdict.reason().map(ToString::to_string),
            threads: verdict.witness().and_then(any),
            configurations: counter("configurations"),
            antichain: counter("antichain"),
            tests: counter("subsumption_tests"),
            bytes: counter("table_bytes"),
            seconds,
        }
    }

    fn is_decided(&self) -> bool {
        self.verdict != SafetyVerdict::Unknown
    }

    /// Configurations per second, if the run was long enough to measure it.
    fn speed(&self) -> Option<f64> {
        (self.seconds >= 0.1).then(|| self.configurations as f64 / self.seconds)
    }

    /// Bytes per configuration.
    fn bytes_each(&self) -> u64 {
        self.bytes / self.configurations.max(1)
    }

    /// The cells under [`HEADINGS`].
    fn cells(&self) -> Vec<String> {
        let word = self.verdict.name();
        let verdict = match (self.threads, &self.reason) {
            (Some(threads), _) => format!("{word} (up to {threads} each)"),
            (None, Some(reason)) => reason.clone(),
            (None, None) => word.to_owned(),
        };
        vec![
            verdict,
            thousands(self.configurations),
            thousands(self.antichain),
            thousands(self.tests),
            format!("{:.2}", self.seconds),
            self.speed().map_or("-".to_owned(), |speed| thousands(speed as u64)),
            thousands(self.bytes_each()),
        ]
    }
}

/// Headings: some before those of a run, some after.
fn headings<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    before.iter().chain(&HEADINGS).chain(after).copied().collect()
}

/// Cells: some before those of a run, some after.
fn row(before: Vec<String>, run: &Run, after: Vec<String>) -> Vec<String> {
    before.into_iter().chain(run.cells()).chain(after).collect()
}

fn parse(language: Language, name: &str, text: String) -> Result<Program> {
    let source = Source::new(name, text);
    let parsed = palisade_syntax::parse(language, &source);
    Ok(parsed.map_err(|diagnostics| anyhow!("{name}: {diagnostics:?}"))?.program)
}
