//! All minimal sets of the programs of the corpus with up to three processes.

use super::{Goal, Run};
use crate::corpus;
use crate::table::{Table, judged};
use crate::watch::{measuring, say};
use anyhow::Result;
use palisade_corpus::expectations;
use palisade_fences::{End, Per};
use palisade_program::{Instantiation, lower};
use std::time::Duration;

/// The aim: the maximum number of seconds for one program.
const MAX_SECONDS: f64 = 10.0;
/// Programs with more processes are left out.
const MAX_PROCESSES: usize = 3;

/// Prints the table.
pub fn run(limit: Duration) -> Result<()> {
    say!(
        "The corpus: all minimal sets of programs with up to {MAX_PROCESSES} processes, per process and per place in the source\n"
    );
    let mut table = Table::new(&["program", "per process", "seconds", "in the source", "seconds", ""]);
    let mut slowest: f64 = 0.0;
    for file in expectations().iter().map(|expectation| expectation.file) {
        measuring(file)?;
        let input = corpus::read(file)?;
        if lower(&input.program, Instantiation::declared(2)).instances.len() > MAX_PROCESSES {
            continue;
        }
        let runs = [Per::Instance, Per::Source].map(|per| Run::new(&input, Goal::Safety, per, limit, false));
        let [instance, source] = runs;
        let (instance, source) = (instance?, source?);
        let decided = |run: &Run| !matches!(run.findings.end, End::Unknown(_)) && run.seconds <= MAX_SECONDS;
        slowest = slowest.max(instance.seconds).max(source.seconds);
        table.row(vec![
            file.to_owned(),
            instance.describe(),
            format!("{:.3}", instance.seconds),
            source.describe(),
            format!("{:.3}", source.seconds),
            judged(decided(&instance) && decided(&source)),
        ]);
    }
    table.print();
    say!("\nthe slowest: {slowest:.2} s (aim {MAX_SECONDS} s)  {}", judged(slowest <= MAX_SECONDS));
    Ok(())
}
