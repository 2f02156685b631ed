//! One search by the explicit engine in a separate process, so that its time and memory can be measured
//! separately.

use crate::models::Model;
use crate::verdict::SafetyVerdict;
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use palisade_base::Source;
use palisade_engine::{Engine, Limits, Options, Outcome, Reduction, Stats, Task, peak_memory_bytes};
use palisade_explore::Explicit;
use palisade_memory::Model as MemoryModel;
use palisade_program::written::Program;
use palisade_syntax::Language;
use std::process::Command;
use std::time::Instant;

/// What to search, and how.
#[derive(Args, Clone, Copy, Debug)]
pub struct Search {
    /// The program
    pub program: Model,
    /// The memory model
    #[arg(long, value_enum, default_value = "sc")]
    pub model: Memory,
    /// Which states may be left out
    #[arg(long, value_enum, default_value = "none")]
    pub reduction: Level,
    /// Threads to use
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
}

/// Which states may be left out.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Nothing
    None,
    /// Only states between local steps
    Local,
    /// Whatever cannot matter
    Full,
}

impl Level {
    /// The engines' own type for it.
    fn reduction(self) -> Reduction {
        match self {
            Level::None => Reduction::None,
            Level::Local => Reduction::Local,
            Level::Full => Reduction::Full,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Local => "local",
            Level::Full => "full",
        }
    }
}

/// A memory model.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Sequential consistency
    Sc,
    /// Total store order
    Tso,
    /// Partial store order
    Pso,
}

impl Memory {
    /// The engines' own type for it.
    pub fn model(self) -> MemoryModel {
        match self {
            Memory::Sc => MemoryModel::Sc,
            Memory::Tso => MemoryModel::Tso,
            Memory::Pso => MemoryModel::Pso,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.model().name()
    }
}

/// The result of a search in a separate process.
#[derive(Clone, Debug)]
pub struct OurSearch {
    /// The verdict.
    pub verdict: SafetyVerdict,
    /// States stored.
    pub states: u64,
    /// Bytes of the tables at the end.
    pub table_bytes: u64,
    /// The peak memory of the process.
    pub peak_bytes: u64,
    /// Seconds the search took.
    pub seconds: f64,
}

/// The program of a model.
pub fn program(model: Model) -> Result<Program> {
    let source = Source::new(model.to_string(), model.pal());
    let parsed = palisade_syntax::parse(Language::Pal, &source);
    Ok(parsed.map_err(|diagnostics| anyhow!("{model}: {diagnostics:?}"))?.program)
}

/// The task of checking a program.
pub fn task(program: &Program, model: MemoryModel, reduction: Reduction) -> Task<'_> {
    let options = Options { reduction, ..Options::default() };
    Task { options, ..Task::new(program, model) }
}

impl Search {
    /// Searches in this process and prints one line: the verdict and the counters.
    pub fn run(self) -> Result<()> {
        let program = program(self.program)?;
        let task = task(&program, self.model.model(), self.reduction.reduction());
        let start = Instant::now();
        let outcome: Outcome = Explicit.check(&task.analysis(), &Limits::unlimited(self.workers));
        let seconds = start.elapsed().as_secs_f64();
        let peak = peak_memory_bytes().unwrap_or(0);
        println!("{} {} peak_bytes={peak} seconds={seconds:.6}", outcome.word(), counters(&outcome.stats));
        Ok(())
    }

    /// The command that does the same in a separate process.
    pub fn command(self) -> Result<Command> {
        let (program, workers) = (self.program.to_string(), self.workers.to_string());
        let (model, reduction) = (self.model.name(), self.reduction.name());
        crate::again(&["search", &program, "--model", model, "--reduction", reduction, "--workers", &workers])
    }
}

fn counters(stats: &Stats) -> String {
    stats.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

impl OurSearch {
    /// Reads the line that [`Search::run`] prints.
    pub fn parse(line: &str) -> Option<OurSearch> {
        let field = |name: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
        };
        Some(OurSearch {
            verdict: SafetyVerdict::parse(line.split_whitespace().next()?)?,
            states: field("states")?.parse().ok()?,
            table_bytes: field("table_bytes")?.parse().ok()?,
            peak_bytes: field("peak_bytes")?.parse().ok()?,
            seconds: field("seconds")?.parse().ok()?,
        })
    }
}
