//! The arguments of `palisade monitor`.

use super::*;

const MONITOR_EXAMPLES: &str = "\
Examples:
  palisade monitor run.trace                    every place where TSO or PSO could break SC
  my_recorder ./test | palisade monitor -       while it runs
  palisade monitor run.trace --sarif out.sarif  for code scanning
  palisade monitor *.trace --processes 2        several traces, two at a time

The first word is clean, violations or unknown. docs/traces.md describes the two trace formats.
Exit codes: 0 no violations, 1 violations, 2 the trace is cut off or malformed (what could be
read is reported), 3 stopped, or no violations and no end mark.";

/// `palisade monitor`
#[derive(Debug, Args)]
#[command(after_long_help = MONITOR_EXAMPLES)]
pub struct MonitorArgs {
    /// The traces, as text or binary (- for standard input)
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Report violations under this memory model only [default: both]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<WeakModelArg>,
    /// What a locked instruction waits for under PSO
    #[arg(long, value_name = "WHAT", default_value = "whole-buffer")]
    pub interlocked: InterlockedArg,
    /// Write the violations to a file as SARIF, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Other processes that read traces.
    #[command(flatten)]
    pub group: GroupArgs,
}
