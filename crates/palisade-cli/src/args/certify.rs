//! The arguments of `palisade certify`.

use super::*;

const CERTIFY_EXAMPLES: &str = "\
Examples:
  palisade check lock.pal --certificate proof.json        keep the proof,
  palisade certify proof.json                             and check it later
  palisade certify proof.json --program moved/lock.pal    the program is elsewhere now

The first word is valid, invalid or unknown. Checking ends after five minutes, or after --timeout.
Exit codes: 0 valid, 1 invalid, 2 usage or input error, 3 unknown: time or memory ran out.";

/// `palisade certify`
#[derive(Debug, Args)]
#[command(after_long_help = CERTIFY_EXAMPLES)]
pub struct CertifyArgs {
    /// Certificate file, as written by check --certificate
    pub certificate: PathBuf,
    /// The program, if it is not where the certificate says
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}
