//! `palisade bench`: measures Palisade against other tools and against its own aims.
//!
//! | file | idea |
//! |---|---|
//! | `models/` | mutual exclusion algorithms, each as `.pal` and as Promela |
//! | `suites/` | one file per suite: what is run, and the table it prints |
//! | `ours.rs`, `spin.rs` | running a search in a separate process, and reading its output |
//! | `corpus.rs` | programs of the corpus |
//! | `measure.rs` | time of child processes, medians, facts about the machine |
//! | `table.rs` | tables in plain text, or as JSON |
//! | `verdict.rs` | verdicts about safety, without their runs and reasons |
//! | `watch.rs` | the observer of a suite, which may end it |
//!
//! Where possible, figures are ratios of two numbers from the same run of a suite, so that they depend on the
//! machine as little as possible.

mod corpus;
mod measure;
mod models;
mod ours;
mod plot;
mod spin;
mod suites;
mod table;
mod verdict;
mod watch;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use models::Model;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use suites::bounded::Extent;
use watch::say;

pub use watch::Watch;

const EXAMPLES: &str = "\
Examples:
  palisade bench --quick                    tables and figures of the papers, in two minutes
  palisade bench cover --plots figures      one suite, with its curves as pictures
  palisade bench fences > bench/runs/$(date +%F)-fences.txt

Tables say ok where an aim is reached and SHORT where it is not.";

/// `palisade bench`
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, arg_required_else_help = true, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// A small version of every suite with tables or figures of the papers, in less than two minutes
    #[arg(long, required = true)]
    quick: bool,
    /// One suite in full
    #[command(subcommand)]
    suite: Option<Suite>,
}

/// The command that runs this program again, with these arguments after `bench`.
fn again(args: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.arg("bench").args(args);
    Ok(command)
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// All engines side by side, compared with each engine alone, on the corpus
    Auto {
        /// How many seconds a program may take
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// Explicit search shared by two processes: speed, memory, bytes on the wire
    Cluster {
        /// Models to run, e.g. lamport-4; the default is all models of the suite
        models: Vec<Model>,
        /// How many times each measurement is taken; the median counts
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Instead: what several processes would have to exchange if they shared backward search
        #[arg(long, conflicts_with_all = ["models", "rounds"])]
        backward: bool,
        /// How many seconds a backward search may take
        #[arg(long, default_value_t = 120, requires = "backward")]
        seconds: u64,
    },
    /// SC search compared with Spin's verifier: states, speed, memory, and the speedup from a second job
    Spin {
        /// Models to run, e.g. lamport-3; the default is all models of the suite
        models: Vec<Model>,
        /// How many times each measurement is taken; the median counts
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Runs that break algorithms without fences under TSO and PSO: how long they are, and how long a
    /// shortest one is
    Witness,
    /// A folder of litmus tests: time per test, and agreement with its `expected.tsv`
    Litmus {
        /// The folder
        dir: PathBuf,
    },
    /// The load-buffer engine: the paper's tables and growth with the number of threads; or all `.rmm` files
    /// below some folders
    Cover {
        /// Folders with `.rmm` files
        folders: Vec<PathBuf>,
        /// A folder for the growth curves (SVG)
        #[arg(long)]
        plots: Option<PathBuf>,
        /// How many seconds a run may take
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// The single-buffer engine under TSO and PSO, compared with load buffers and Memorax: the corpus, or all
    /// `.rmm` files below some folders
    Single {
        /// Folders with `.rmm` files
        folders: Vec<PathBuf>,
        /// How many seconds a run may take
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// The monitors on long traces: events per second, and growth with the length
    Monitor {
        /// The longest trace, in events
        #[arg(long, default_value_t = 1_000_000_000)]
        events: u64,
    },
    /// Minimal fences: the paper's table, the corpus, and how many programs are checked on the way; or files
    /// published with other tools
    Fences {
        /// Folders with `.rmm` files, or with Trencher's files
        folders: Vec<PathBuf>,
        /// How many seconds a program may take
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
    /// Robustness of the corpus under TSO and PSO, or of Trencher's own files
    Robust {
        /// Folders with Trencher's files
        folders: Vec<PathBuf>,
        /// How many seconds a program may take
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// Lazy reachability: the paper's figures 6 to 11
    Lazy {
        /// How many seconds a program may take
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// A folder for the curves of figures 8 and 9
        #[arg(long)]
        curves: Option<PathBuf>,
    },
    /// Real programs in C and Rust under the scheduler and the monitors: the benchmarks of TACAS 2011, Table
    /// 1, all partial orders, and the slowdown
    Run {
        /// Random executions per program
        #[arg(long, default_value_t = 1000)]
        schedules: u64,
    },
    /// C programs: the corpus, growth with the number of threads beside other tools' figures, reading LLVM IR
    C {
        /// How many seconds a program may take under one model
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Bounded rounds and store age: the paper's table, and growth with the bound and the number of threads
    Bounded {
        /// Growth with bounds and threads up to 3 only
        #[arg(long)]
        quick: bool,
        /// How many seconds a run may take
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// A folder for the growth curves (SVG)
        #[arg(long)]
        plots: Option<PathBuf>,
    },
    /// Programs translated from TSO to SC: Spin on the exported model, compared with explicit search
    Translated,
    /// Parsing speed and memory on large generated texts of every input language
    Parse,
    /// One search, with its counters on one line (used by other suites, and for profilers)
    Search(ours::Search),
    /// One generated text, parsed in this process (used by the parse suite, and for profilers)
    Read(suites::parse::Read),
    /// Prints a model
    Show {
        /// The model
        model: Model,
        /// As Promela instead of `.pal`
        #[arg(long)]
        promela: bool,
    },
}

impl BenchArgs {
    /// Whether this is a suite, which takes a while, and not one of the commands that suites use.
    pub fn is_suite(&self) -> bool {
        !matches!(self.suite, Some(Suite::Search(_) | Suite::Read(_) | Suite::Show { .. }))
    }
}

/// Runs a suite and prints its tables. `watch` observes it, if given.
pub fn run(args: &BenchArgs, watch: Option<Box<dyn Watch>>) -> Result<()> {
    if let Some(watch) = watch {
        watch::set(watch);
    }
    match &args.suite {
        Some(suite) => suite.run(),
        None => quick(),
    }
}

/// The suites that reproduce tables and figures of the papers, with little time for each program.
fn quick() -> Result<()> {
    say!("{}\n", measure::machine());
    let suites: [(&str, &dyn Fn() -> Result<()>); 9] = [
        ("auto: all engines side by side", &|| suites::auto::run(1, 3)),
        ("cover: load buffers (LMCS 2018, Tables 1 and 2)", &|| suites::cover::run(&[], 1, None)),
        ("single: single buffer (TACAS 2012)", &|| suites::single::run(&[], 1)),
        ("fences: minimal fences (TACAS 2012, Table 1)", &|| suites::fences::run(&[], 2)),
        ("robust: robustness of the corpus", &|| suites::robust::run(&[], 1)),
        ("lazy: lazy reachability (FASE 2015, Figures 6 to 11)", &|| suites::lazy::run(2, None)),
        ("bounded: rounds and store age (CAV 2011, Table 1)", &|| {
            suites::bounded::run(Extent::QUICK, 5, None)
        }),
        ("monitor: monitors (TACAS 2011)", &|| suites::monitor::run(5_000_000)),
        ("run: real programs (TACAS 2011, Table 1), Rust only", &|| suites::run::quick(200)),
    ];
    // A suite that fails does not prevent the others, or the summary.
    let mut failed = Ok(());
    for (title, suite) in suites {
        say!("== {title}\n");
        let name = title.split(':').next().unwrap_or(title);
        watch::enter(name);
        match suite() {
            Err(error) if watch::is_stopped() => return Err(error),
            Err(error) if failed.is_ok() => failed = Err(error.context(name)),
            Ok(()) | Err(_) => {}
        }
        say!();
    }
    let summary = watch::summary();
    say!("== summary\n\n{}", summary.join("\n"));
    failed
}

impl Suite {
    fn name(&self) -> &'static str {
        match self {
            Suite::Auto { .. } => "auto",
            Suite::Cluster { .. } => "cluster",
            Suite::Spin { .. } => "spin",
            Suite::Witness => "witness",
            Suite::Litmus { .. } => "litmus",
            Suite::Cover { .. } => "cover",
            Suite::Single { .. } => "single",
            Suite::Monitor { .. } => "monitor",
            Suite::Fences { .. } => "fences",
            Suite::Robust { .. } => "robust",
            Suite::Lazy { .. } => "lazy",
            Suite::Run { .. } => "run",
            Suite::C { .. } => "c",
            Suite::Bounded { .. } => "bounded",
            Suite::Translated => "translated",
            Suite::Parse => "parse",
            Suite::Search(_) => "search",
            Suite::Read(_) => "read",
            Suite::Show { .. } => "show",
        }
    }

    fn run(&self) -> Result<()> {
        watch::enter(self.name());
        match self {
            Suite::Auto { seconds } => suites::auto::run(*seconds, 5),
            Suite::Cluster { backward: true, seconds, .. } => {
                suites::cluster::backward::run(Duration::from_secs(*seconds))
            }
            Suite::Cluster { models, rounds, .. } => suites::cluster::run(models, *rounds),
            Suite::Spin { models, rounds } => suites::spin::run(models, *rounds),
            Suite::Witness => suites::witness::run(),
            Suite::Translated => suites::translated::run(),
            Suite::Litmus { dir } => suites::litmus::run(dir),
            Suite::Cover { folders, plots, seconds } => {
                suites::cover::run(folders, *seconds, plots.as_deref())
            }
            Suite::Single { folders, seconds } => suites::single::run(folders, *seconds),
            Suite::Monitor { events } => suites::monitor::run(*events),
            Suite::Fences { folders, seconds } => suites::fences::run(folders, *seconds),
            Suite::Robust { folders, seconds } => suites::robust::run(folders, *seconds),
            Suite::Lazy { seconds, curves } => suites::lazy::run(*seconds, curves.as_deref()),
            Suite::Run { schedules } => suites::run::run(*schedules),
            Suite::C { seconds } => suites::c::run(*seconds),
            Suite::Bounded { quick, seconds, plots } => {
                let extent = if *quick { Extent::QUICK } else { Extent::FULL };
                suites::bounded::run(extent, *seconds, plots.as_deref())
            }
            Suite::Parse => suites::parse::run(),
            Suite::Search(search) => search.run(),
            Suite::Read(read) => read.run(),
            Suite::Show { model, promela } => {
                print!("{}", if *promela { model.promela() } else { model.pal() });
                Ok(())
            }
        }
    }
}
