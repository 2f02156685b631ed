//! The arguments of `palisade cluster`.

use super::*;

const CLUSTER_EXAMPLES: &str = "\
Examples:
  palisade cluster hosts.txt check big.pal           print one command per line of hosts.txt
  palisade cluster hosts.txt --start check big.pal   start them: process 0 here, the others over ssh

hosts.txt has one HOST:PORT per line. Every machine needs the same palisade, the same program and
the same hosts file, at the same paths. Connections are neither encrypted nor authenticated.
Exit codes: with --start, those of the command; otherwise 0, or 2 for errors.";

/// `palisade cluster`
#[derive(Debug, Args)]
#[command(after_long_help = CLUSTER_EXAMPLES)]
pub struct ClusterArgs {
    /// A file with one HOST:PORT per line
    #[arg(value_name = "HOSTS")]
    pub hosts: PathBuf,
    /// Start the processes: the first one here, those on other machines over ssh
    #[arg(long)]
    pub start: bool,
    /// Command that runs another command on a host, with the host as its argument
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub ssh: String,
    /// Palisade on the other machines
    #[arg(long, value_name = "FILE", default_value = "palisade")]
    pub program: String,
    /// The command to share, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
