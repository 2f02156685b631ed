//! Programs translated from TSO to SC, passed to Spin (`palisade translate --to promela`) and to explicit
//! search: verdicts, states and time are compared.
//!
//! *Aim.* The same verdict everywhere, and no more states than Spin with its own reduction. Spin gets the
//! exported model as a user would get it.
//!
//! *How.* Programs with fences, so that both sides search everything, and one without, where both stop at the
//! first error. Our time is the processor time of the search in this process with one job, including the
//! translation. Spin's time is the processor time of the compiled verifier; translating and compiling it is
//! not counted.

use crate::corpus;
use crate::measure::{machine, median, time, timed};
use crate::spin::{Printed, Reduce, Verifier, check_installed};
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say, stop};
use anyhow::{Result, anyhow, ensure};
use palisade::export::{Export, Target};
use palisade::{Input, Limits, Model, Verdict};
use palisade_engine::{Engine, Task};
use palisade_explore::Explicit;
use palisade_program::written::Program;
use std::path::Path;
use std::time::Duration;

const PROGRAMS: [&str; 5] = [
    "mutex/dekker.fenced",
    "mutex/peterson.fenced",
    "mutex/szymanski.fenced",
    "mutex/lamport_fast.fenced",
    "mutex/peterson",
];

/// An upper bound on the depth of the searches.
const DEPTH: u64 = 1_000_000;

/// Measurements of each run. The median counts.
const ROUNDS: usize = 3;

#[derive(Clone, Copy)]
enum Within {
    Rounds(u32),
    Age(u32),
}

const BOUNDS: [Within; 3] = [Within::Rounds(1), Within::Rounds(2), Within::Age(1)];

impl Within {
    fn translate(self, input: &Input) -> Result<Program> {
        let translated = match self {
            Within::Rounds(rounds) => palisade::translate_rounds(&input.program, rounds),
            Within::Age(age) => palisade::translate_age(&input.program, age),
        };
        translated.map_err(|problems| anyhow!("{}: {problems:?}", input.source.name()))
    }

    fn name(self) -> String {
        match self {
            Within::Rounds(rounds) => format!("rounds {rounds}"),
            Within::Age(age) => format!("age {age}"),
        }
    }
}

/// The result of a search.
struct TranslatedSearch {
    safe: bool,
    states: u64,
    seconds: f64,
}

/// Runs the suite.
pub fn run() -> Result<()> {
    say!("{}\n{}; median of {ROUNDS}\n", machine(), check_installed()?);
    let folder = std::env::temp_dir().join(format!("palisade-translated-{}", std::process::id()));
    let mut table = Table::new(&[
        "program",
        "bound",
        "verdict",
        "Spin states",
        "s",
        "our states",
        "s",
        "time",
        "states",
        "",
    ]);
    let result = PROGRAMS.iter().try_for_each(|program| {
        BOUNDS.iter().try_for_each(|bound| row(program, *bound, &folder, &mut table))
    });
    std::fs::remove_dir_all(&folder).ok();
    table.print();
    say!("time, states: ours over Spin's, less is better");
    result
}

fn row(name: &str, bound: Within, folder: &Path, table: &mut Table) -> Result<()> {
    measuring(&format!("{name}, {}", bound.name()))?;
    let input = corpus::read(&format!("{name}.pal"))?;
    let program = bound.translate(&input)?;
    let export = Export { program: &program, source: &input.source, heading: name, threads: None };
    let model = export.to(Target::Promela).map_err(|problems| anyhow!("{name}: {problems:?}"))?;
    let title = format!("{}-{}", name.replace('/', "-"), bound.name().replace(' ', "-"));
    let verifier = Verifier::of(&title, &model, Reduce::Yes, DEPTH, folder)?;
    let theirs: Printed = verifier.run()?;
    let mut their_times = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..ROUNDS {
        their_times.push(time(&mut verifier.command(), 1)?.cpu);
        ours.push(search(&input, bound)?);
    }
    let (their_seconds, our_seconds) = (median(their_times), median(ours.iter().map(|found| found.seconds)));
    let TranslatedSearch { safe, states, .. } = ours[0];
    ensure!(safe == (theirs.errors == 0), "{title}: Spin and explicit search disagree");
    let verdict = if safe { "safe" } else { "unsafe" };
    table.row(vec![
        name.to_owned(),
        bound.name(),
        verdict.to_owned(),
        thousands(theirs.states),
        format!("{their_seconds:.3}"),
        thousands(states),
        format!("{our_seconds:.3}"),
        format!("{:.2}", our_seconds / their_seconds.max(1e-3)),
        format!("{:.2}", states as f64 / theirs.states as f64),
        // If both stop at the first error, the number of states depends on the search order.
        if safe { judged(states <= theirs.states) } else { String::new() },
    ]);
    Ok(())
}

/// Translates and searches.
fn search(input: &Input, bound: Within) -> Result<TranslatedSearch> {
    let (outcome, seconds) = timed(|| {
        let program = bound.translate(input)?;
        let task = Task::new(&program, Model::Sc);
        let limits = Limits::unlimited(1).with_timeout(Duration::from_secs(120)).with_stop(stop());
        anyhow::Ok(Explicit.check(&task.analysis(), &limits))
    });
    let outcome = outcome?;
    let safe = match outcome.verdict {
        Verdict::Holds => true,
        Verdict::Violated(_) => false,
        Verdict::Unknown(reason) => return Err(anyhow!("{}: {reason}", input.source.name())),
    };
    Ok(TranslatedSearch { safe, states: outcome.stats.get("states").unwrap_or(0), seconds })
}
