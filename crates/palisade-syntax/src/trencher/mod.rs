//! Trencher's format: threads as automata whose transitions carry one instruction each.
//!
//! [`read`](mod@read) turns the text into a [`file::File`], [`check`](mod@check) refuses what Trencher would
//! silently take for something else, [`addresses`](mod@addresses) finds out how much memory the program
//! needs, and [`write`](mod@write) makes the program.
//!
//! *Semantics.* Memory and registers start at 0 and hold integers. `lock` waits for the own buffer and for
//! the lock of memory; until `unlock` no other thread runs. A thread that locks twice, or ends without
//! `unlock`, keeps the lock for ever. `&` is the bitwise and, `!` the logical negation; `&&` and `||` are
//! C's.

mod addresses;
mod check;
mod file;
mod read;
mod write;

use crate::Parsed;
use crate::report::Report;
use palisade_base::{Diagnostic, Source};

/// Reads a program.
pub(crate) fn parse(source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let mut report = Report::default();
    let file = read::read(source, &mut report);
    let sections = check::check(&file, &mut report);
    let memory = addresses::memory(&file, &mut report);
    if report.has_errors() {
        return Err(report.into_diagnostics());
    }
    let program = write::write(&file, &sections, memory);
    Ok(Parsed { program, warnings: report.into_diagnostics() })
}
