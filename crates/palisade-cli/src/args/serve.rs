//! The arguments of `palisade serve`.

use super::*;
use std::net::SocketAddr;

const SERVE_EXAMPLES: &str = "\
Examples:
  palisade serve                          the playground at http://127.0.0.1:7227/
  palisade serve --listen 127.0.0.1:0     on any free port
  palisade serve --timeout 10 --runs 4    four runs at a time, ten seconds each

It prints its address. Ctrl-C stops it.";

/// `palisade serve`
#[derive(Debug, Args)]
#[command(after_long_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Where to listen: this machine only, unless another address is given; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7227")]
    pub listen: SocketAddr,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub runs: Option<u32>,
    /// Runs that may wait for their turn; further ones are refused
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub waiting: u16,
    /// Do not read C programs; otherwise they are read if clang is installed
    #[arg(long)]
    pub no_c: bool,
    /// Answer one question for a server, which starts one such process per question
    #[arg(long, hide = true)]
    pub answer: bool,
}
