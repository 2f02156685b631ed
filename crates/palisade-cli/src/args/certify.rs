//! The arguments of `palisade certify`.

use super::*;

/// `palisade certify`
#[derive(Debug, Args)]
pub struct CertifyArgs {
    /// Certificate file, as written by check --certificate
    pub certificate: PathBuf,
    /// The program, if it is not where the certificate says
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}
