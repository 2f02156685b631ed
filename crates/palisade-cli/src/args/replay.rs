//! The arguments of `palisade replay`.

use super::*;

/// `palisade replay`
#[derive(Debug, Args)]
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
