//! All partial orders of the programs, in C and in Rust.

use super::algorithms::{MORE, SEVEN, Variant};
use super::native::{Folder, Settings, session};
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say};
use anyhow::Result;
use palisade_memory::{Interlocked, Model};
use palisade_sync::{Checker, Coverage, Exhaustive};
use std::time::Instant;

/// The maximum number of executions.
const MAX_EXECUTIONS: u64 = 200_000;

pub fn run(folder: &Folder) -> Result<()> {
    say!("All partial orders: two threads with two operations each, without fences");
    let mut table = Table::new(&[
        "program",
        "C: executions",
        "runs",
        "TSO",
        "PSO",
        "s",
        "",
        "Rust: executions",
        "TSO",
        "PSO",
        "s",
        "",
    ]);
    for (name, program) in SEVEN.into_iter().chain(MORE) {
        measuring(&format!("{name}, all partial orders"))?;
        let path = folder.compile(name, Settings { threads: 2, ops: 2, fenced: false })?;
        let mut session = session(&path, Interlocked::OwnAddress, MAX_EXECUTIONS)?;
        let start = Instant::now();
        let searched = session.explore(None, MAX_EXECUTIONS, |_| true);
        let c_seconds = start.elapsed().as_secs_f64();
        let findings = &session.findings;
        let distinct = |model| findings.violations.iter().filter(|found| found.what.model == model).count();
        let fine = searched.complete && findings.failures.is_empty();
        let mut cells = vec![
            name.to_owned(),
            thousands(searched.executions),
            thousands(searched.runs),
            distinct(Model::Tso).to_string(),
            distinct(Model::Pso).to_string(),
            format!("{c_seconds:.1}"),
            judged(fine),
        ];
        let variant = Variant { threads: 2, ops: 2, fenced: false };
        let checker = Checker::new()
            .robust()
            .strategy(Exhaustive)
            .schedules(MAX_EXECUTIONS)
            .interlocked(Interlocked::OwnAddress);
        let start = Instant::now();
        let [tso, pso] = [Model::Tso, Model::Pso]
            .map(|model| checker.clone().model(model).check(move || program(variant)));
        let seconds = start.elapsed().as_secs_f64() / 2.0;
        let complete = tso.coverage == Coverage::Complete && tso.failed.is_none();
        cells.extend([
            thousands(tso.executions),
            tso.violations.len().to_string(),
            pso.violations.len().to_string(),
            format!("{seconds:.1}"),
            judged(complete),
        ]);
        table.row(cells);
    }
    table.print();
    say!(
        "runs: how often the program was run; TSO, PSO: distinct violations; ok: complete, so a program without violations has none in any execution of this test\n\
         In C, a loop that changes nothing ends after one iteration, because its whole state is seen; in Rust it ends after two with a spin hint and three without, so there are more executions.\n"
    );
    Ok(())
}
