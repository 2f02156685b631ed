//! The arguments of `palisade run`.

use super::*;

const RUN_EXAMPLES: &str = "\
Examples:
  palisade cc -o queue_test queue_test.c             compile it first, or with palisade c++
  palisade run -- ./queue_test                       1000 random schedules, with store buffers
  palisade run --model pso -- ./queue_test           with SPARC PSO's store buffers
  palisade run --robust -- ./queue_test              do store buffers make any difference at all?
  palisade run --strategy pct --depth 3 -- ./t       schedules with few switches
  palisade run --strategy exhaustive -- ./t          every partial order, for programs that end
  palisade run --replay t.schedule --shorten         replay a schedule, then shorten it
  palisade run --suppress known.txt -- ./t           without findings such as `race queue.c:41`
  palisade run --sarif out.sarif -- ./t              for code scanning
  palisade run --html run.html -- ./t                a timeline of the execution that fails
  palisade run --tests -- target/.../deps/t-1234     each #[test] of a Rust test program

The first word is clean, failed, races or unknown; with --robust also violations.
docs/run.md has more.
Exit codes: 0 clean, 1 violations of sequential consistency (--robust), 2 not instrumented or
cannot be started, 3 unknown, 4 the program fails (assertion, crash, deadlock, exit code,
threads left over), 5 data races and nothing worse.";

/// `palisade run`
#[derive(Clone, Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// How many schedules to run [default: 1000; exhaustive: all]
    #[arg(long, value_name = "N")]
    pub schedules: Option<u64>,
    /// How schedules are chosen
    #[arg(long, value_name = "STRATEGY", default_value = "random")]
    pub strategy: StrategyArg,
    /// For pct: how many events have to happen in the right order [default: 3]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: Option<u32>,
    /// For exhaustive: only schedules with at most this many preemptions and delayed stores
    #[arg(long, value_name = "N")]
    pub preemptions: Option<usize>,
    /// The store buffers that threads have [default: tso]; with --robust: the violations to report [default: both]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<RunModelArg>,
    /// Ask whether store buffers can make any difference: run without them, and report violations
    #[arg(long)]
    pub robust: bool,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// Replay the schedule in this file instead
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Keep the schedule of the first finding in this file [default: PROGRAM.schedule]
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Do not keep a schedule
    #[arg(long, conflicts_with = "save")]
    pub no_save: bool,
    /// Look for a schedule with fewer switches before keeping it
    #[arg(long)]
    pub shorten: bool,
    /// Stop at the first finding
    #[arg(long)]
    pub stop_at_first: bool,
    /// Do not report the findings that this file lists, one `KIND PLACE` per line
    #[arg(long, value_name = "FILE")]
    pub suppress: Option<PathBuf>,
    /// Do not report threads that still run, or were never joined, when the program ends
    #[arg(long)]
    pub allow_leaked_threads: bool,
    /// End an execution after this many steps
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: u64,
    /// End an execution after this time, as with --max-steps [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub execution_timeout: Option<Duration>,
    /// End an execution when nothing has happened for this long
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    pub patience: Duration,
    /// How threads are switched
    #[arg(long, value_name = "HOW", default_value = "best")]
    pub scheduling: SchedulingArg,
    /// Write what was found to a file as SARIF, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write a web page with the execution that shows the most important finding
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The program is a Rust test program: run each of its tests on its own
    #[arg(long, conflicts_with_all = ["replay", "html", "sarif", "save", "processes", "hosts"])]
    pub tests: bool,
    /// Other processes that run executions.
    #[command(flatten)]
    pub group: GroupArgs,
    /// Name of the program in reports [default: its path]
    #[arg(skip)]
    pub label: Option<String>,
    /// The program and its arguments; options of this command come before it
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required_unless_present = "replay", value_parser = word())]
    pub command: Vec<String>,
}

/// Arguments of programs may have any bytes.
fn word() -> impl TypedValueParser<Value = String> {
    clap::builder::OsStringValueParser::new().map(|word| palisade::harness::words::encoded(&word))
}

/// How schedules are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum StrategyArg {
    /// Any thread that can run; schedules differ in how long threads run and stores wait
    Random,
    /// Random priorities, changed at a few random steps
    Pct,
    /// All partial orders, each once
    Exhaustive,
}

/// Whose store buffers threads have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum RunModelArg {
    /// None: every store reaches memory at once
    Sc,
    /// One buffer per thread (x86)
    Tso,
    /// One buffer per thread and address (SPARC PSO)
    Pso,
}

impl From<RunModelArg> for Model {
    fn from(arg: RunModelArg) -> Model {
        match arg {
            RunModelArg::Sc => Model::Sc,
            RunModelArg::Tso => Model::Tso,
            RunModelArg::Pso => Model::Pso,
        }
    }
}

/// How threads are switched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SchedulingArg {
    /// Coroutines, where the machine supports them
    Best,
    /// Kernel threads that pass a token
    Token,
}
