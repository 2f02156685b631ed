//! The arguments of `palisade robust`.

use super::*;

const ROBUST_EXAMPLES: &str = "\
Examples:
  palisade robust mcs.pal                       robust under TSO, or a run unlike any SC run
  palisade robust mcs.pal --model pso           under PSO
  palisade robust mcs.pal --model all           TSO and PSO in one table
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
    /// Memory model, or both in one table
    #[arg(long, value_name = "MODEL", default_value = "tso")]
    pub model: WeakModelsArg,
    /// Engine to use; auto runs all that suit the program, and the first answer wins
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = robustness_engines())]
    pub engine: String,
    /// Look for triangular races instead: without any, a program is robust under TSO
    #[arg(long, conflicts_with_all = ["model", "engine", "interlocked", "dot", "witness"])]
    pub triangular: bool,
    /// Processes, and their locked instructions.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// How programs are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Write the cycle to a file, as a graph for Graphviz
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Write the run to a file, for palisade replay
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Write the answers to a file as a web page, with runs to step through
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// One memory model with store buffers, or all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum WeakModelsArg {
    /// Total store order
    Tso,
    /// Partial store order
    Pso,
    /// TSO and PSO, one by one
    All,
}

impl WeakModelsArg {
    /// The models, strongest first.
    pub fn models(self) -> &'static [Model] {
        match self {
            WeakModelsArg::Tso => &[Model::Tso],
            WeakModelsArg::Pso => &[Model::Pso],
            WeakModelsArg::All => &[Model::Tso, Model::Pso],
        }
    }
}

fn robustness_engines() -> PossibleValuesParser {
    let engines = palisade::engines::robustness_engines();
    PossibleValuesParser::new(std::iter::once("auto").chain(engines.iter().map(|engine| engine.name())))
}
