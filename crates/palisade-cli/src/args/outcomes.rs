//! The arguments of `palisade outcomes`.

use super::*;

const OUTCOMES_EXAMPLES: &str = "\
Examples:
  palisade outcomes sb.litmus                  all final values under TSO, as herd7 lists them
  palisade outcomes sb.litmus --model all      which of them SC has, and which TSO or PSO adds
  palisade outcomes sb.pal --all --run 2       all variables and registers; a run to outcome 2

The first word is complete, or unknown if there may be more outcomes than those listed.
Exit codes: 0 complete, 2 usage or input error, 3 unknown.";

/// `palisade outcomes`
#[derive(Debug, Args)]
#[command(after_long_help = OUTCOMES_EXAMPLES)]
pub struct OutcomesArgs {
    /// The program (- for standard input)
    pub file: PathBuf,
    /// Memory model, or all of them side by side
    #[arg(long, value_name = "MODEL", default_value = "tso", value_parser = model_choices())]
    pub model: ModelChoice,
    /// List all shared variables and registers, not only those that the properties name
    #[arg(long)]
    pub all: bool,
    /// Show a run to the outcome with this number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub run: Option<u32>,
    /// Longest store buffers to try if they can grow without bound
    #[arg(long, value_name = "N", default_value_t = palisade::Options::default().max_buffer, value_parser = buffer)]
    pub max_buffer: usize,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// How programs are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}
