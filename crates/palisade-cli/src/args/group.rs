//! The options of commands that several processes can share.

use super::*;

/// Options about sharing the work with other processes.
#[derive(Clone, Debug, Default, Args)]
pub struct GroupArgs {
    /// Share the work among this many processes on this machine
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=MAX_PROCESSES),
        help_heading = "Several processes",
        conflicts_with = "hosts"
    )]
    pub processes: Option<u32>,
    /// Share it with processes on other machines: a file with one HOST:PORT per line, the same everywhere
    #[arg(long, value_name = "FILE", help_heading = "Several processes", requires = "process")]
    pub hosts: Option<PathBuf>,
    /// Which line of the hosts file is this process, from 0; process 0 prints the answer
    #[arg(long, value_name = "I", help_heading = "Several processes", requires = "hosts")]
    pub process: Option<usize>,
}

/// More processes than this are a mistake.
const MAX_PROCESSES: i64 = 1024;

impl GroupArgs {
    /// Whether the work is shared.
    pub fn is_wanted(&self) -> bool {
        self.processes.is_some() || self.hosts.is_some()
    }
}
