//! The arguments of `palisade fmt`.

use super::*;

const FMT_EXAMPLES: &str = "\
Examples:
  palisade fmt lock.pal              format a file
  palisade fmt .                     every .pal file below this folder
  palisade fmt --check src/*.pal     only list the files that are not formatted
  palisade fmt - < lock.pal          print the formatted program

The program and its comments stay the same, and a formatted file is left as it is.
Exit codes: 0 formatted, 1 not formatted (--check), 2 usage or input error, 3 out of time.";

/// `palisade fmt`
#[derive(Debug, Args)]
#[command(after_long_help = FMT_EXAMPLES)]
pub struct FmtArgs {
    /// The .pal files, or folders with such files (- for standard input)
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing; list the files that are not formatted
    #[arg(long)]
    pub check: bool,
}
