//! The arguments of `palisade replay`.

use super::*;

const REPLAY_EXAMPLES: &str = "\
Examples:
  palisade check mutex.pal --witness run.json         keep the run,
  palisade replay run.json                            and replay it later
  palisade replay run.json --html run.html            as a web page to step through
  palisade replay run.json --program moved/mutex.pal  the program is elsewhere now

The first word is valid or invalid.
Exit codes: 0 valid, 1 invalid, 2 usage or input error, 3 unknown: time or memory ran out.";

/// `palisade replay`
#[derive(Debug, Args)]
#[command(after_long_help = REPLAY_EXAMPLES)]
pub struct ReplayArgs {
    /// Witness file, as written by check --witness
    pub witness: PathBuf,
    /// The program, if it is not where the witness says
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Write the run to a file as a web page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
