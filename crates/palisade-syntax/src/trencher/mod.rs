//! Trencher's format: threads as automata with one instruction per transition.
//!
//! [`read`](mod@read) parses the text into a [`file::File`]. [`check`](mod@check) reports mistakes that
//! Trencher would silently accept. [`addresses`](mod@addresses) determines how much memory the program needs.
//! [`write`](mod@write) builds the program.
//!
//! *Semantics.* Memory and registers start at 0 and hold integers. `lock` waits for the thread's own buffer
//! and for the lock of memory. Until `unlock` no other thread runs. A thread that locks twice, or ends
//! without `unlock`, keeps the lock forever. `&` is the bitwise and, `!` the logical negation. `&&` and `||`
//! are as in C.

mod addresses;
mod check;
mod file;
mod read;
mod write;

use crate::Parsed;
use crate::report::Report;
use palisade_base::{Diagnostic, Source};

/// Parses a program.
pub(crate) fn parse(source: &Source) -> Result<Parsed, Vec<Diagnostic>> {
    let mut report = Report::default();
    let file = read::read(source, &mut report);
    let sections = check::check(&file, &mut report);
    let memory = addresses::memory(&file, &mut report);
    if report.has_errors() {
        return Err(report.into_diagnostics());
    }
    let program = write::write(&file, &sections, memory);
    Ok(Parsed { program, warnings: report.into_diagnostics(), bound: Vec::new() })
}
