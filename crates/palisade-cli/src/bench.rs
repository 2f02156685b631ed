//! `palisade bench`: the suites print their tables themselves.

use crate::exit::Exit;
use crate::output::Output;
use palisade::Diagnostic;
use palisade_bench::BenchArgs;

/// Runs the command.
pub fn run(args: &BenchArgs, output: &Output) -> Exit {
    match palisade_bench::run(args) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            output.complain_about("bench", Diagnostic::error("bench-failed", format!("{error:#}")));
            Exit::Error
        }
    }
}
