//! `palisade lsp`: the language server, over standard input and output.

use crate::args::{Common, LspArgs};
use crate::exit::Exit;
use crate::limits::{jobs, memory};
use palisade_lsp::{Config, Ended, serve};
use std::io::{self, BufReader, Write};
use std::time::Duration;

/// The time for one question, if none is given.
const BUDGET: Duration = Duration::from_secs(10);
/// The memory for one question, if none is given.
const MEMORY: u64 = 2 << 30;

/// Runs the command.
pub fn run(_: &LspArgs, common: &Common) -> Exit {
    // Signals end it as they end any program: it has nothing to finish.
    let config = Config {
        budget: common.timeout.unwrap_or(BUDGET),
        memory: if common.memory.is_some() { memory(common) } else { memory(common).min(MEMORY) },
        jobs: jobs(common),
        // If the path of this executable is unknown, C programs are not checked.
        command: std::env::current_exe().ok(),
        version: concat!("Palisade ", env!("PALISADE_VERSION")).to_owned(),
    };
    match serve(BufReader::new(io::stdin()), io::stdout(), config) {
        Ended::Properly => Exit::Fine,
        Ended::Abruptly => {
            let message = "palisade lsp: standard input ended before the editor had sent `exit`; editors start this command and talk to it";
            // Nothing can be done if standard error is closed.
            let _ = writeln!(io::stderr(), "{message}");
            Exit::Violated
        }
    }
}
