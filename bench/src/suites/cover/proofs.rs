//! The size of proofs, and what it costs to find and to check them.
//!
//! For every program of the corpus that the engine proves safe: the number of elements that the search keeps, the
//! number of elements in the proof, and the least of several times to find the proof and to check it. Both begin with
//! the program, so both include building its automata. A row is `ok` if checking takes less time than finding, and not if
//! the check runs out of time; rows
//! are shown for proofs of at least [`WORTH_A_ROW`] elements. The finding includes shrinking the proof. Programs that the
//! automata alone prove safe have no elements, and are left out.

use super::parse;
use crate::corpus;
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say, stop};
use anyhow::{Result, anyhow};
use palisade_certificate::Refusal;
use palisade_corpus::Fences;
use palisade_corpus::expectations;
use palisade_corpus::mutex::{filter_lock, lamport_fast, szymanski};
use palisade_cover::Dual;
use palisade_engine::{Engine, Limits, Proof, Task, Verdict};
use palisade_memory::Model;
use palisade_program::written::Program;
use palisade_syntax::Language;
use std::time::{Duration, Instant};

const WORTH_A_ROW: usize = 50;

/// Measured this many times.
const ROUNDS: usize = 5;

/// Prints the table.
pub fn run(limit: Duration) -> Result<()> {
    say!("\nProofs: their size, and the times to find and to check them\n");
    let mut table =
        Table::new(&["program", "kept", "in the proof", "found in ms", "checked in ms", "ratio", ""]);
    let (mut slower, mut all) = (0, 0);
    let mut add = |name: &str, program: &Program| -> Result<()> {
        measuring(name)?;
        if let Some(measured) = Measured::new(name, program, limit)?.filter(|measured| measured.elements > 0)
        {
            all += 1;
            slower += usize::from(measured.checked >= measured.found);
            if measured.elements >= WORTH_A_ROW || measured.checked >= measured.found {
                table.row(measured.cells(name));
            }
        }
        Ok(())
    };
    for expectation in expectations() {
        add(expectation.file, &corpus::read(expectation.file)?.program)?;
    }
    type Family = (&'static str, fn(u32, Fences) -> String, u32);
    let families: [Family; 3] =
        [("lamport_fast", lamport_fast, 6), ("szymanski", szymanski, 4), ("filter_lock", filter_lock, 3)];
    for (name, family, most) in families {
        for threads in 3..=most {
            add(&format!("{name} {threads}"), &parse(Language::Pal, name, family(threads, Fences::Tso))?)?;
        }
    }
    table.print();
    say!("\n{all} proofs; {slower} take longer to check than to find  {}", judged(slower == 0));
    Ok(())
}

struct Measured {
    kept: u64,
    elements: usize,
    found: f64,
    /// Infinite if no check ended in time.
    checked: f64,
}

impl Measured {
    /// `None` if the engine does not prove the program safe in time.
    fn new(name: &str, program: &Program, limit: Duration) -> Result<Option<Measured>> {
        let task = Task::new(program, Model::Tso);
        let limits = || Limits::unlimited(1).with_timeout(limit).with_memory(8 << 30).with_stop(stop());
        let to_find = limits();
        let (mut found, mut checked) = (f64::INFINITY, f64::INFINITY);
        let (mut kept, mut elements) = (0, 0);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let (outcome, proof) = Dual.prove(&task.analysis(), &to_find);
            let time = start.elapsed().as_secs_f64();
            let (Verdict::Holds, Some(proof)) = (&outcome.verdict, &proof) else { break };
            found = found.min(time);
            let start = Instant::now();
            match palisade_certificate::verify(&task, proof, &limits()) {
                Ok(_) => checked = checked.min(start.elapsed().as_secs_f64()),
                Err(Refusal::Exhausted(_)) => {}
                Err(refusal) => return Err(anyhow!("{name}: {refusal}")),
            }
            kept = outcome.stats.get("antichain").unwrap_or(0);
            elements = match proof {
                Proof::LoadBuffers(proof) => proof.parts.iter().map(|part| part.elements.len()).sum(),
                _ => 0,
            };
        }
        // A round for which there is no time left does not count.
        Ok(found.is_finite().then_some(Measured { kept, elements, found, checked }))
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let (checked, ratio) = match self.checked.is_finite() {
            true => (format!("{:.1}", self.checked * 1e3), format!("{:.2}", self.checked / self.found)),
            false => ("out of time".to_owned(), String::new()),
        };
        vec![
            name.to_owned(),
            thousands(self.kept),
            thousands(self.elements as u64),
            format!("{:.1}", self.found * 1e3),
            checked,
            ratio,
            judged(self.checked < self.found),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_runs_out_of_time_is_short() {
        let cells = |checked| Measured { kept: 2, elements: 1, found: 0.5, checked }.cells("p");
        assert_eq!(cells(0.25)[3..], ["500.0", "250.0", "0.50", "ok"]);
        assert_eq!(cells(f64::INFINITY)[3..], ["500.0", "out of time", "", "SHORT"]);
    }
}
