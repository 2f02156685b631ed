//! The arguments of `palisade serve`.

use super::*;
use std::net::SocketAddr;

const SERVE_EXAMPLES: &str = "\
Examples:
  palisade serve                          the playground at http://127.0.0.1:7227/
  palisade serve --listen 127.0.0.1:0     at any port that is free
  palisade serve --timeout 10 --runs 4    four runs at a time, ten seconds each

The address is printed. Ctrl-C ends it.";

/// `palisade serve`
#[derive(Debug, Args)]
#[command(after_long_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Where to listen; only this machine unless another address is given, port 0 for any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7227")]
    pub listen: SocketAddr,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub runs: Option<u32>,
    /// Runs that may wait for their turn; more are refused
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub waiting: u16,
    /// Answer one question for a server: how it answers each of them
    #[arg(long, hide = true)]
    pub answer: bool,
}
