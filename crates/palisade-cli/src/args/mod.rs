//! What can be typed.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use palisade::{IntRange, Interlocked, Language, Model, Reduction, Spot, Threads};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  palisade check peterson.pal                  safe under x86-TSO, or a run that breaks it
  palisade check lock.rmm --model pso          Memorax files, litmus tests and Trencher's files too
  palisade check tests/ --expect verdicts.tsv  every program below a folder, compared with a table
  palisade check mutex.pal --witness run.json  keep the run that breaks it,
  palisade replay run.json                     and check later that it does
  palisade show test.litmus --as pal           any input language as .pal

Exit codes: 0 safe or done, 1 unsafe, 2 usage or input error, 3 unknown.
Of several files the worst counts, in the order 2, 1, 3, 0.";

/// Checks concurrent programs on machines with store buffers: SC, TSO and PSO.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, max_term_width = 100)]
#[command(after_help = "Try `palisade check FILE`, or --help for examples.", after_long_help = EXAMPLES)]
pub struct Palisade {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// How to print results; json gives one object per file and line
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", help_heading = "Everywhere")]
    pub format: Format,
    /// Give up on a file after this time (the answer is then unknown)
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, help_heading = "Everywhere")]
    pub timeout: Option<Duration>,
    /// Memory an engine may use [default: three quarters of what is free]
    #[arg(long, global = true, value_name = "GIB", value_parser = gibibytes, help_heading = "Everywhere")]
    pub memory: Option<u64>,
    /// Threads to use [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = jobs, help_heading = "Everywhere")]
    pub jobs: Option<u32>,
    /// Seed of engines that choose at random (those there are now do not)
    #[arg(long, global = true, value_name = "N", default_value_t = 0, help_heading = "Everywhere")]
    pub seed: u64,
    /// Print the verdict only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Everywhere")]
    pub quiet: bool,
    /// Print all steps of a run and all counters
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub verbose: bool,
}

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Is a program safe? If not, show a run that breaks it
    Check(CheckArgs),
    /// Take the run of a witness file again, step by step
    Replay(ReplayArgs),
    /// Check the proof of a certificate file
    Certify(CertifyArgs),
    /// Does the memory model add any behaviour at all? If so, show a run and its cycle
    Robust(RobustArgs),
    /// Which fences make a program safe, or robust?
    Fences(FencesArgs),
    /// Read a recorded execution and tell what TSO and PSO could have made of it
    Monitor(MonitorArgs),
    /// Print a program in another form
    Show(ShowArgs),
}

const CHECK_EXAMPLES: &str = "\
Examples:
  palisade check peterson.pal                   under TSO, with the best engine for it
  palisade check peterson.pal --model sc        under sequential consistency
  palisade check lock.pal --threads 3           three instances of every process
  palisade check tests/ --model tso --expect expected.tsv --tsv verdicts.tsv
  palisade check counter.txt --int-range 0..7   bound integers that would grow for ever

The first word of each line is the verdict: safe, unsafe or unknown.
Exit codes: 0 safe, 1 unsafe, 2 usage or input error, 3 unknown; with --expect, 0 if all
verdicts are as expected and 1 if not.";

/// `palisade check`
#[derive(Debug, Args)]
#[command(after_long_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Programs, or folders with programs (- for standard input)
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Memory model
    #[arg(long, value_name = "MODEL", default_value = "tso", value_parser = models())]
    pub model: Model,
    /// Who decides; auto takes the best for the program
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engines())]
    pub engine: String,
    /// Longest store buffers that explicit search tries where they can grow for ever
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().max_buffer, value_parser = buffer)]
    pub max_buffer: usize,
    /// Instances of every process: a number, or any
    #[arg(long, value_name = "any|N", value_parser = threads)]
    pub threads: Option<Threads>,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// Which states explicit search leaves out
    #[arg(long, value_name = "LEVEL", default_value = "full")]
    pub reduction: ReductionArg,
    /// How often lazy reachability unrolls loops before it gives up
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().unroll)]
    pub unroll: usize,
    /// Bound integers that have no declared domain
    #[arg(long, value_name = "LO..HI", allow_hyphen_values = true)]
    pub int_range: Option<IntRange>,
    /// Input language, whatever the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<Language>,
    /// Write the run that breaks the program to a file, for palisade replay
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Write the proof that the program is safe to a file, for palisade certify
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Compare the verdicts with a table (see docs/command-line.md)
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Write a table of files and verdicts
    #[arg(long, value_name = "FILE")]
    pub tsv: Option<PathBuf>,
}

/// `palisade replay`
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Witness file, as written by check --witness
    pub witness: PathBuf,
    /// The program, if it is not where the witness says
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

const ROBUST_EXAMPLES: &str = "\
Examples:
  palisade robust mcs.pal                       robust under TSO, or a run that no SC run is like
  palisade robust mcs.pal --model pso           under PSO
  palisade robust dekker.txt --dot cycle.dot    the cycle as a graph for Graphviz

The first word of each line is the verdict: robust, not-robust or unknown.
Exit codes: 0 robust, 1 not robust, 2 usage or input error, 3 unknown.";

/// `palisade robust`
#[derive(Debug, Args)]
#[command(after_long_help = ROBUST_EXAMPLES)]
pub struct RobustArgs {
    /// Programs, or folders with programs (- for standard input)
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Memory model
    #[arg(long, value_name = "MODEL", default_value = "tso")]
    pub model: WeakModelArg,
    /// Who decides; auto takes the best for the program
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = robustness_engines())]
    pub engine: String,
    /// Look for triangular races instead: without any, a program is robust under TSO
    #[arg(long, conflicts_with_all = ["model", "engine", "interlocked", "dot", "witness"])]
    pub triangular: bool,
    /// Instances of every process: a number, or any
    #[arg(long, value_name = "any|N", value_parser = threads)]
    pub threads: Option<Threads>,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// Bound integers that have no declared domain
    #[arg(long, value_name = "LO..HI", allow_hyphen_values = true)]
    pub int_range: Option<IntRange>,
    /// Input language, whatever the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<Language>,
    /// Write the cycle to a file, as a graph for Graphviz
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Write the run to a file, for palisade replay
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
}

const FENCES_EXAMPLES: &str = "\
Examples:
  palisade fences peterson.pal                        a smallest set of fences, and why each is needed
  palisade fences peterson.pal --all                  all minimal sets
  palisade fences lock.rmm --write fenced.rmm         the program with the fences in it
  palisade fences bakery.pal --all --place anywhere   not only after writes
  palisade fences lock.pal --never 12 --never P@cs    but not there
  palisade fences lock.pal --loop-weight 10           a fence in a loop costs as much as ten others
  palisade fences lock.pal --threads any              for any number of threads
  palisade fences mcs.pal --goal robustness           no behaviour but that of sequential consistency

A PLACE is a line, LINE-LINE, a label or a process; or PROCESS@LINE, PROCESS@LABEL.

The first word is the verdict of the program with the fences: safe (or robust), unsafe (or not-robust) if
no fences help, unknown. Exit codes: 0 found, 1 no fences help, 2 usage or input error, 3 unknown.";

/// `palisade fences`
#[derive(Debug, Args)]
#[command(after_long_help = FENCES_EXAMPLES)]
pub struct FencesArgs {
    /// The program (- for standard input)
    pub file: PathBuf,
    /// What the fences are for
    #[arg(long, value_name = "GOAL", default_value = "safety")]
    pub goal: GoalArg,
    /// Where fences may stand
    #[arg(long, value_name = "WHERE", default_value = "after-writes")]
    pub place: PlacementArg,
    /// Fences only beside these statements
    #[arg(long, value_name = "PLACE", action = clap::ArgAction::Append)]
    pub only: Vec<Spot>,
    /// No fences beside these statements
    #[arg(long, value_name = "PLACE", action = clap::ArgAction::Append)]
    pub never: Vec<Spot>,
    /// All minimal sets, not only a cheapest one
    #[arg(long)]
    pub all: bool,
    /// What is one fence: a place in the source, or in one instance of a process
    #[arg(long, value_name = "WHAT", default_value = "source")]
    pub per: PerArg,
    /// What a fence beside these statements costs, instead of 1
    #[arg(long, value_name = "PLACE=COST", value_parser = weight, action = clap::ArgAction::Append)]
    pub weight: Vec<(Spot, u64)>,
    /// What a fence in a loop costs, instead of 1
    #[arg(long, value_name = "COST", value_parser = cost)]
    pub loop_weight: Option<u64>,
    /// Write the program with the fences of the (first) set to a file
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Memory model
    #[arg(long, value_name = "MODEL", default_value = "tso")]
    pub model: WeakModelArg,
    /// Who decides; auto takes the best for the program
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = all_engines())]
    pub engine: String,
    /// Longest store buffers that explicit search tries where they can grow for ever
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().max_buffer, value_parser = buffer)]
    pub max_buffer: usize,
    /// Instances of every process: a number, or any
    #[arg(long, value_name = "any|N", value_parser = threads)]
    pub threads: Option<Threads>,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// Bound integers that have no declared domain
    #[arg(long, value_name = "LO..HI", allow_hyphen_values = true)]
    pub int_range: Option<IntRange>,
    /// Input language, whatever the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<Language>,
}

/// What fences are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum GoalArg {
    /// No run breaks a property
    Safety,
    /// Every run is like a sequentially consistent one
    Robustness,
}

/// Where fences may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PlacementArg {
    /// Behind statements that store to shared memory
    AfterWrites,
    /// In front of statements that load from it
    BeforeReads,
    /// Between any two statements
    Anywhere,
}

/// What is one fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PerArg {
    /// A place in one instance of a process
    Instance,
    /// A place in the source
    Source,
}

/// Models that can add behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum WeakModelArg {
    /// One buffer per process
    Tso,
    /// One buffer per process and address
    Pso,
}

impl From<WeakModelArg> for Model {
    fn from(arg: WeakModelArg) -> Model {
        match arg {
            WeakModelArg::Tso => Model::Tso,
            WeakModelArg::Pso => Model::Pso,
        }
    }
}

/// `palisade certify`
#[derive(Debug, Args)]
pub struct CertifyArgs {
    /// Certificate file, as written by check --certificate
    pub certificate: PathBuf,
    /// The program, if it is not where the certificate says
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

const MONITOR_EXAMPLES: &str = "\
Examples:
  palisade monitor run.trace                    every place where TSO or PSO could break SC
  my_recorder ./test | palisade monitor -       while it runs
  palisade monitor run.trace --sarif out.sarif  for code scanning

The first word is clean or violations. docs/traces.md describes the two forms of traces.
Exit codes: 0 no violations, 1 violations, 2 the trace is cut off or malformed (what could be
read is reported), 3 stopped.";

/// `palisade monitor`
#[derive(Debug, Args)]
#[command(after_long_help = MONITOR_EXAMPLES)]
pub struct MonitorArgs {
    /// The trace, as text or binary (- for standard input)
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Report violations under this memory model only [default: both]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<WeakModelArg>,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// Write the violations to a file as SARIF, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
}

/// `palisade show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The program (- for standard input)
    pub file: PathBuf,
    /// In which form
    #[arg(long = "as", value_name = "FORM")]
    pub form: Form,
    /// Input language, whatever the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<Language>,
}

/// Forms of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Form {
    /// Palisade's own language
    Pal,
    /// Control flow as a graph for Graphviz
    Dot,
}

/// Which states explicit search leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ReductionArg {
    /// None
    None,
    /// Only those between local steps
    Local,
    /// All that cannot matter
    Full,
}

impl From<ReductionArg> for Reduction {
    fn from(arg: ReductionArg) -> Reduction {
        match arg {
            ReductionArg::None => Reduction::None,
            ReductionArg::Local => Reduction::Local,
            ReductionArg::Full => Reduction::Full,
        }
    }
}

/// What a locked instruction waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum InterlockedArg {
    /// The whole store buffer, as under TSO
    WholeBuffer,
    /// The pending stores to its own address
    OwnAddress,
}

impl From<InterlockedArg> for Interlocked {
    fn from(arg: InterlockedArg) -> Interlocked {
        match arg {
            InterlockedArg::WholeBuffer => Interlocked::WholeBuffer,
            InterlockedArg::OwnAddress => Interlocked::OwnAddress,
        }
    }
}

fn models() -> impl TypedValueParser<Value = Model> {
    PossibleValuesParser::new(Model::ALL.map(Model::name))
        .map(|name| Model::ALL.into_iter().find(|model| model.name() == name).expect("a possible value"))
}

fn languages() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.map(Language::name))
        .map(|name| Language::from_name(&name).expect("a possible value"))
}

fn all_engines() -> PossibleValuesParser {
    let mut names: Vec<&str> = palisade::engines().iter().map(|engine| engine.name()).collect();
    names.extend(palisade::engines::robustness_engines().iter().map(|engine| engine.name()));
    names.insert(0, "auto");
    let mut known = std::collections::HashSet::new();
    names.retain(|name| known.insert(*name));
    PossibleValuesParser::new(names)
}

fn engines() -> PossibleValuesParser {
    PossibleValuesParser::new(
        std::iter::once("auto").chain(palisade::engines().iter().map(|engine| engine.name())),
    )
}

fn robustness_engines() -> PossibleValuesParser {
    let engines = palisade::engines::robustness_engines();
    PossibleValuesParser::new(std::iter::once("auto").chain(engines.iter().map(|engine| engine.name())))
}

/// More instances of a process than this are a slip of the finger.
const MOST_INSTANCES: u32 = 4096;
/// More threads than this no host has cores for.
const MOST_JOBS: u32 = 1024;

fn threads(text: &str) -> Result<Threads, String> {
    match text {
        "any" => Ok(Threads::Any),
        _ => {
            up_to(MOST_INSTANCES, text).map(Threads::Each).map_err(|expected| format!("{expected}, or `any`"))
        }
    }
}

fn weight(text: &str) -> Result<(Spot, u64), String> {
    let (place, number) = text.rsplit_once('=').ok_or("a weight is written PLACE=COST, e.g. 12=5")?;
    Ok((place.parse()?, cost(number)?))
}

fn cost(text: &str) -> Result<u64, String> {
    up_to(1_000_000, text).map(u64::from)
}

fn jobs(text: &str) -> Result<u32, String> {
    up_to(MOST_JOBS, text)
}

fn buffer(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&length| length > 0).ok_or_else(|| "expected a number from 1".to_owned())
}

fn up_to(most: u32, text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {most}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|&seconds| seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

fn gibibytes(text: &str) -> Result<u64, String> {
    let gibibytes = text.parse::<f64>().ok().filter(|&gibibytes| gibibytes > 0.0 && gibibytes < 1e9);
    gibibytes
        .map(|gibibytes| (gibibytes * (1u64 << 30) as f64) as u64)
        .ok_or_else(|| "expected a number of GiB above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Palisade::command().debug_assert();
    }

    #[test]
    fn numbers() {
        assert_eq!(threads("any"), Ok(Threads::Any));
        assert_eq!(threads("3"), Ok(Threads::Each(3)));
        for wrong in ["0", "-1", "4097", "99999999999", "all", ""] {
            assert!(threads(wrong).is_err() && jobs(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "1e300", "ten", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
            assert!(gibibytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(gibibytes("0.5"), Ok(1 << 29));
    }
}
