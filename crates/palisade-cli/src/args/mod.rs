//! The command line. The options of every command are here. The arguments of each command are in a file of
//! its own.

mod asked;
mod bench;
mod c;
mod cargo;
mod cc;
mod certify;
mod check;
mod cluster;
mod fences;
mod fmt;
mod group;
mod lsp;
mod monitor;
mod outcomes;
mod replay;
mod robust;
mod run;
pub mod run_options;
mod serve;
mod shell;
mod show;
mod translate;

pub use asked::Asked;
pub use bench::{NOT_OF_BENCH, command};
pub use c::CArgs;
pub use cargo::CargoArgs;
pub use cc::CcArgs;
pub use certify::CertifyArgs;
pub use check::CheckArgs;
pub use cluster::ClusterArgs;
pub use fences::{ChangesArg, FencesArgs, GoalArg, PerArg, PlacementArg};
pub use fmt::FmtArgs;
pub use group::GroupArgs;
pub use lsp::LspArgs;
pub use monitor::MonitorArgs;
pub use outcomes::OutcomesArgs;
pub use replay::ReplayArgs;
pub use robust::{RobustArgs, WeakModelsArg};
pub use run::{RunArgs, SchedulingArg, StrategyArg};
pub use serve::ServeArgs;
pub use shell::{CompletionsArgs, ManArgs};
pub use show::{Form, ShowArgs};
pub use translate::{TargetArg, TranslateArgs};

use clap::builder::{PossibleValuesParser, StyledStr, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use palisade::report::visible;
use palisade::{Bound, Costs, InputLanguage, IntRange, Interlocked, Model, Reduction, Spot, Threads};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The maximum width of the help.
const WIDTH: usize = 100;

const EXAMPLES: &str = "\
Examples:
  palisade check peterson.pal                  safe under x86-TSO, or a run that breaks it
  palisade check lock.rmm --model pso          Memorax files, litmus tests and Trencher's files too
  palisade check tests/ --expect verdicts.tsv  every program below a folder, compared with a table
  palisade check mutex.pal --witness run.json  keep the run that breaks it,
  palisade replay run.json                     and check later that it does
  palisade show test.litmus --as pal           any input language as .pal

Exit codes: 0 safe or done, 1 unsafe, 2 usage or input error, 3 unknown;
palisade run also uses 4 (the program fails) and 5 (data races).
With several files, the worst one counts, in the order 2, 1, 3, 0.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  palisade doctor                   what `palisade run` needs, what is installed, what is missing
  palisade doctor --format json     for scripts

Exit codes: 0 ready to run C programs, 3 something is missing.";

/// Checks concurrent programs under SC and on machines with store buffers: TSO and PSO.
#[derive(Debug, Parser)]
#[command(name = "palisade", version = env!("PALISADE_VERSION"), max_term_width = WIDTH)]
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
    /// Output format
    ///
    /// `json` prints one object per file, each on its own line.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", help_heading = "Everywhere")]
    pub format: Format,
    /// Give up on a file after this time (the answer is then unknown)
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, help_heading = "Everywhere")]
    pub timeout: Option<Duration>,
    /// Memory the process may use [default: three quarters of what is free]
    #[arg(long, global = true, hide_short_help = true, value_name = "GIB", value_parser = gibibytes, help_heading = "Everywhere")]
    pub memory: Option<u64>,
    /// Threads to use [default: one per core]
    #[arg(long, global = true, hide_short_help = true, value_name = "N", value_parser = jobs, help_heading = "Everywhere")]
    pub jobs: Option<u32>,
    /// Seed for random choices, such as the schedules of palisade run
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Everywhere"
    )]
    pub seed: u64,
    /// Print the verdict only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Everywhere")]
    pub quiet: bool,
    /// Print all steps of a run and all counters
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub verbose: bool,
    /// What was asked, for the other processes of a group.
    #[arg(skip)]
    pub asked: Asked,
}

/// Options about processes and their locked instructions.
#[derive(Clone, Copy, Debug, Args)]
pub struct MachineArgs {
    /// Number of instances of every process; `any` for those that are declared with several, `any=all` for all
    #[arg(long, value_name = "any|any=all|N", value_parser = threads)]
    pub threads: Option<Threads>,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
}

/// Options about reading programs.
#[derive(Clone, Debug, Default, Args)]
pub struct ReadingArgs {
    /// Range of integers that have no declared domain
    #[arg(long, value_name = "LO..HI", allow_hyphen_values = true)]
    pub int_range: Option<IntRange>,
    /// Value of a constant of a `.pal` program, instead of the one in the file
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = constant)]
    pub constants: Vec<(String, i64)>,
    /// Input language, regardless of the file's extension
    #[arg(long, value_name = "LANGUAGE", value_parser = languages())]
    pub input: Option<InputLanguage>,
    /// Whether there is any number of the processes declared with several instances. Not an option: `--threads any`
    /// says so.
    #[arg(skip)]
    pub several: bool,
    /// How C programs are read.
    #[command(flatten)]
    pub c: CArgs,
}

/// Reads the command line. If there is no command to run, returns what to print instead: help, the version,
/// or an error message. The arguments of compilers are passed on unchanged.
pub fn parse() -> Result<Palisade, clap::Error> {
    // File names need not be valid text. Those for compilers have to be.
    let words: Result<Vec<String>, _> = std::env::args_os().map(OsString::into_string).collect();
    if let Ok([program, name, rest @ ..]) = words.as_deref()
        && let Some(args) = CcArgs::raw(rest).filter(|_| matches!(name.as_str(), "cc" | "c++"))
    {
        let mut palisade = Palisade::try_parse_from([program, name])?;
        palisade.command = if name == "cc" { Command::Cc(args) } else { Command::Cxx(args) };
        return Ok(palisade);
    }
    let mut command = command();
    let words = run_options::with_passed_on(std::env::args_os().collect());
    let refused = refused_file(&words);
    let mut matches = command.try_get_matches_from_mut(words).map_err(|mut error| {
        if let Some(name) = refused.filter(|_| error.kind() == ErrorKind::MissingRequiredArgument) {
            let tip = StyledStr::from(format!("write './{name}' instead of '-- {name}': it is a file"));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        error
    })?;
    let asked = Asked::new(&command, &matches);
    let mut palisade =
        Palisade::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    palisade.common.asked = asked;
    Ok(palisade)
}

/// A file whose name looks like an option, after `--`, where arguments for compilers are.
fn refused_file(words: &[OsString]) -> Option<String> {
    let end = words.iter().position(|word| word == "--")?;
    let name = words.get(end + 1)?.to_str()?;
    (name.starts_with('-') && Path::new(name).is_file()).then(|| visible(name).into_owned())
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
    /// List the values that a program can end with, per memory model
    Outcomes(OutcomesArgs),
    /// Replay the run of a witness file, step by step
    Replay(ReplayArgs),
    /// Check the proof of a certificate file
    Certify(CertifyArgs),
    /// Does the memory model add any behaviour at all? If so, show a run and its cycle
    Robust(RobustArgs),
    /// Which fences make a program safe, or robust?
    Fences(FencesArgs),
    /// Read a recorded execution and report where TSO or PSO could break it
    Monitor(MonitorArgs),
    /// Print or run the commands that share a check among several machines
    Cluster(ClusterArgs),
    /// Serve a web page on this machine for writing and checking programs
    Serve(ServeArgs),
    /// Run a real program under many schedules, with store buffers, and report failures
    Run(RunArgs),
    /// Compile C for `palisade run`
    Cc(CcArgs),
    /// Compile C++ for `palisade run`
    #[command(name = "c++")]
    Cxx(CcArgs),
    /// Build Rust programs for `palisade run`
    Cargo(CargoArgs),
    /// Show what works on this machine, and what to install
    #[command(after_long_help = DOCTOR_EXAMPLES)]
    Doctor,
    /// Translate a program under TSO into one under SC, for other tools
    Translate(TranslateArgs),
    /// Print a program in another form
    Show(ShowArgs),
    /// Format .pal files
    Fmt(FmtArgs),
    /// Language server for editors: errors, verdicts, fences and more while you write
    Lsp(LspArgs),
    /// Benchmark Palisade: the papers' tables and figures next to ours
    Bench(palisade_bench::BenchArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
}

impl Command {
    /// How the command is shared with other processes, if it can be.
    pub fn group(&self) -> Option<&GroupArgs> {
        match self {
            Command::Check(args) => Some(&args.group),
            Command::Fences(args) => Some(&args.group),
            Command::Monitor(args) => Some(&args.group),
            Command::Run(args) => Some(&args.group),
            _ => None,
        }
    }

    /// The command, as typed.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Check(_) => "check",
            Command::Outcomes(_) => "outcomes",
            Command::Replay(_) => "replay",
            Command::Certify(_) => "certify",
            Command::Robust(_) => "robust",
            Command::Fences(_) => "fences",
            Command::Monitor(_) => "monitor",
            Command::Cluster(_) => "cluster",
            Command::Serve(_) => "serve",
            Command::Run(_) => "run",
            Command::Cc(_) => "cc",
            Command::Cxx(_) => "c++",
            Command::Cargo(_) => "cargo",
            Command::Doctor => "doctor",
            Command::Translate(_) => "translate",
            Command::Show(_) => "show",
            Command::Fmt(_) => "fmt",
            Command::Lsp(_) => "lsp",
            Command::Bench(_) => "bench",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
        }
    }
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

/// One memory model, or all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelChoice {
    /// This one.
    One(Model),
    /// SC, TSO and PSO, one by one.
    All,
}

impl ModelChoice {
    /// The models, strongest first.
    pub fn models(self) -> Vec<Model> {
        match self {
            ModelChoice::One(model) => vec![model],
            ModelChoice::All => Model::ALL.to_vec(),
        }
    }
}

fn model_choices() -> impl TypedValueParser<Value = ModelChoice> {
    PossibleValuesParser::new(Model::ALL.map(Model::name).into_iter().chain(["all"])).map(|name| {
        let model = Model::ALL.into_iter().find(|model| model.name() == name);
        model.map_or(ModelChoice::All, ModelChoice::One)
    })
}

fn languages() -> impl TypedValueParser<Value = InputLanguage> {
    PossibleValuesParser::new(InputLanguage::all().map(InputLanguage::name))
        .map(|name| InputLanguage::from_name(&name).expect("a possible value"))
}

/// A larger number of instances of a process is probably a typo.
const MAX_INSTANCES: u32 = 4096;
/// No host has cores for more threads than this.
const MAX_JOBS: u32 = 1024;

/// `N=3`
fn constant(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("write the name and the value, e.g. -D N=3")?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() {
        return Err("the name of the constant is missing: write e.g. -D N=3".to_owned());
    }
    let value = match value {
        "true" => 1,
        "false" => 0,
        _ => value.parse().map_err(|_| format!("`{value}` is not a 64-bit integer, `true` or `false`"))?,
    };
    Ok((name.to_owned(), value))
}

fn threads(text: &str) -> Result<Threads, String> {
    match text {
        "any" => Ok(Threads::Several),
        "any=all" => Ok(Threads::Any),
        _ => up_to(MAX_INSTANCES, text)
            .map(Threads::Each)
            .map_err(|expected| format!("{expected}, `any` or `any=all`")),
    }
}

fn jobs(text: &str) -> Result<u32, String> {
    up_to(MAX_JOBS, text)
}

fn buffer(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&length| length > 0).ok_or_else(|| "expected a number from 1".to_owned())
}

/// A larger number of rounds is probably a typo.
const MAX_ROUNDS: u32 = 255;

fn bound(text: &str) -> Result<Bound, String> {
    match text {
        "auto" => Ok(Bound::Auto),
        _ => {
            let number = text.parse().ok().filter(|number| *number <= MAX_ROUNDS).map(Bound::Fixed);
            number.ok_or_else(|| format!("expected a number from 0 to {MAX_ROUNDS}, or `auto`"))
        }
    }
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

    /// All commands, at any depth.
    fn all(command: &clap::Command) -> Vec<&clap::Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(all)).collect()
    }

    #[test]
    fn the_lines_of_examples_are_not_broken() {
        let palisade = Palisade::command();
        for command in all(&palisade) {
            let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines() {
                assert!(line.chars().count() <= WIDTH, "{}: {line}", command.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_those_with_a_verdict_list_their_exit_codes() {
        for command in Palisade::command().get_subcommands() {
            let name = command.get_name();
            let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:"), "{name}");
            let prints_only = ["bench", "completions", "man", "serve"].contains(&name);
            assert!(prints_only || after.contains("Exit codes:"), "{name}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(threads("any"), Ok(Threads::Several));
        assert_eq!(threads("any=all"), Ok(Threads::Any));
        assert_eq!(threads("3"), Ok(Threads::Each(3)));
        for wrong in ["0", "-1", "4097", "99999999999", "all", ""] {
            assert!(threads(wrong).is_err() && jobs(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bound("auto"), Ok(Bound::Auto));
        assert_eq!(bound("0"), Ok(Bound::Fixed(0)));
        for wrong in ["-1", "256", "any", ""] {
            assert!(bound(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "1e300", "ten", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
            assert!(gibibytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(gibibytes("0.5"), Ok(1 << 29));
    }
}
