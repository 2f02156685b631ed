//! The arguments of `palisade check`.

use super::*;

const CHECK_EXAMPLES: &str = "\
Examples:
  palisade check peterson.pal                   under TSO, by all engines that suit it
  palisade check peterson.pal --model sc        under sequential consistency
  palisade check locks.pal --deadlock           can all processes get stuck?
  palisade check peterson.pal --model all       SC, TSO and PSO in one table
  palisade check lock.pal --threads 3           three instances of every process
  palisade check tests/ --model tso --expect expected.tsv --tsv verdicts.tsv
  palisade check counter.txt --int-range 0..7   bound integers that would grow forever

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
    /// Memory model, or all of them in one table
    #[arg(long, value_name = "MODEL", default_value = "tso", value_parser = model_choices())]
    pub model: ModelChoice,
    /// Engine to use; auto runs all that suit the program, and the first answer wins
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engines())]
    pub engine: String,
    /// If the program is unsafe, show a shortest run
    #[arg(long)]
    pub shortest: bool,
    /// Longest store buffers that explicit search tries if they can grow without bound
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().max_buffer, value_parser = buffer)]
    pub max_buffer: usize,
    /// Processes, and their locked instructions.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Which states explicit search leaves out
    #[arg(long, value_name = "LEVEL", default_value = "full")]
    pub reduction: ReductionArg,
    /// How many times lazy reachability unrolls loops before it gives up
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().unroll)]
    pub unroll: usize,
    /// For the engine rounds: rounds per process; auto adds rounds one at a time
    #[arg(long, value_name = "K|auto", default_value = "2", value_parser = bound)]
    pub rounds: Bound,
    /// For the engine age: rounds that a store may stay in its buffer; auto adds rounds one at a time
    #[arg(long, value_name = "K|auto", default_value = "2", value_parser = bound)]
    pub age: Bound,
    /// How programs are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// C: also check what this compiler makes of the program, such as 'gcc -O2', and compare the verdicts
    #[arg(
        long,
        value_name = "COMMAND",
        help_heading = "C and Rust programs",
        conflicts_with_all = ["witness", "certificate", "html", "expect", "junit", "sarif", "tsv"]
    )]
    pub build: Option<String>,
    /// Sharing the work.
    #[command(flatten)]
    pub group: GroupArgs,
    /// Also look for deadlocks: states in which some process waits and no process can ever move again.
    /// C programs are always checked for them
    #[arg(long)]
    pub deadlock: bool,
    /// List the statements that no run reaches
    #[arg(long)]
    pub coverage: bool,
    /// Write the run that breaks the program to a file, for palisade replay
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Write the proof that the program is safe to a file, for palisade certify
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Check the proof right away, and answer safe only if it is accepted
    #[arg(long)]
    pub certify: bool,
    /// Write the answers to a file as a web page, with runs to step through
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Compare the verdicts with a table (see docs/check.md)
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Write the answers to a file as JUnit XML, one test per program
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write everything that is not safe to a file as SARIF, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write a table of files and verdicts
    #[arg(long, value_name = "FILE")]
    pub tsv: Option<PathBuf>,
}

/// Which states explicit search leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ReductionArg {
    /// None
    None,
    /// Only states between local steps
    Local,
    /// All states that cannot affect the answer
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

fn engines() -> PossibleValuesParser {
    PossibleValuesParser::new(
        std::iter::once("auto").chain(palisade::engines().iter().map(|engine| engine.name())),
    )
}
