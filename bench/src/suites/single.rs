//! The single-buffer engine (`--engine sb`).
//!
//! *Aims.* (1) Under TSO, the same verdicts as load buffers, and on the programs of Memorax at most a tenth
//! of its configurations with registers removed. (2) Under PSO, every program of the corpus is decided as
//! expected.
//!
//! *How.* One run per row, in this process on one core. Configurations are those generated, before
//! subsumption. The figures of Memorax 0.1.1 (`--rff`) are for its own files of these names. To run those
//! files, give their folder as an argument. The corpus has our own versions of the same algorithms. Seconds
//! are processor time, with a resolution of 10 ms.

use super::cover::folder::{collect, stem};
use crate::corpus;
use crate::measure::{machine, timed};
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say, stop};
use anyhow::{Context, Result, anyhow};
use palisade_base::Source;
use palisade_corpus::{Safety, Verdicts, expectations};
use palisade_cover::{Dual, Sb};
use palisade_engine::{Engine, Limits, Options, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::Language;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of configurations that Memorax generates after removing registers.
const MEMORAX: [(&str, u64); 12] = [
    ("burns", 573),
    ("dekker", 6_724),
    ("dekker.2", 4_878),
    ("lamport_fast", 25_846),
    ("peterson", 54_128),
    ("sense_rev_bar", 20_577),
    ("bakery.bound2", 73_326),
    ("dijkstra", 12_689),
    ("clh", 510_014),
    ("barnes1", 250_289),
    ("bakery.fenced", 1_600_000),
    ("lamport_fast.fenced", 6_500_000),
];

/// Names in the corpus for programs of Memorax.
const OUR_NAMES: [(&str, &str); 2] = [("bakery", "bakery.bound2"), ("sense_reversing", "sense_rev_bar")];

/// Runs the suite: all `.rmm` files below the folders, or the corpus.
pub fn run(folders: &[PathBuf], seconds: u64) -> Result<()> {
    say!("{}; at most {seconds} s per run\n", machine());
    let limit = Duration::from_secs(seconds);
    let mut rows = Vec::new();
    if folders.is_empty() {
        for expectation in expectations() {
            let program = corpus::read(expectation.file)?.program;
            let name = stem(Path::new(expectation.file));
            let theirs =
                OUR_NAMES.iter().find(|(ours, _)| *ours == name).map_or(name.as_str(), |(_, name)| name);
            rows.push((expectation.file.to_owned(), memorax(theirs), program, Some(expectation.verdicts)));
        }
    } else {
        let mut files = Vec::new();
        folders.iter().try_for_each(|folder| collect(folder, &mut files))?;
        files.sort_unstable();
        for file in files {
            let program = parse(Language::Rmm, &file)?;
            rows.push((stem(&file), memorax(&stem(&file)), program, None));
        }
    }
    let headings = [
        "program",
        "TSO",
        "configurations",
        "seconds",
        "dual",
        "Memorax",
        "of it",
        "",
        "PSO",
        "configurations",
        "seconds",
        "",
    ];
    let mut table = Table::new(&headings);
    for (name, memorax, program, expected) in &rows {
        measuring(name)?;
        table.row(row(name, *memorax, program, *expected, limit));
    }
    table.print();
    Ok(())
}

fn memorax(name: &str) -> Option<u64> {
    MEMORAX.iter().find(|(theirs, _)| *theirs == name).map(|&(_, configurations)| configurations)
}

/// An engine's answer, the configurations it generates, and its seconds.
struct Run {
    verdict: SafetyVerdict,
    configurations: u64,
    seconds: f64,
}

fn ask(engine: &dyn Engine, program: &Program, model: Model, limit: Duration) -> Run {
    let (options, interlocked) = (Options::default(), Interlocked::default());
    let task = Task { program, threads: Threads::Declared, model, interlocked, options };
    let limits = Limits::unlimited(1).with_timeout(limit).with_memory(2 << 30).with_stop(stop());
    let (outcome, seconds) = timed(|| engine.check(&task.analysis(), &limits));
    let verdict = SafetyVerdict::from(&outcome.verdict);
    Run { verdict, configurations: outcome.stats.get("configurations").unwrap_or(0), seconds }
}

fn row(
    name: &str,
    memorax: Option<u64>,
    program: &Program,
    expected: Option<Verdicts>,
    limit: Duration,
) -> Vec<String> {
    let tso = ask(&Sb, program, Model::Tso, limit);
    let dual = ask(&Dual, program, Model::Tso, limit);
    let pso = ask(&Sb, program, Model::Pso, limit);
    let small = memorax.is_none_or(|theirs| 10 * tso.configurations <= theirs);
    let as_expected = |run: &Run, of: fn(&Verdicts) -> Option<Safety>| match expected {
        Some(verdicts) => of(&verdicts).is_none_or(|safety| SafetyVerdict::from(safety) == run.verdict),
        None => true,
    };
    let of_it = memorax.map(|theirs| format!("1/{}", theirs / tso.configurations.max(1)));
    vec![
        name.to_owned(),
        tso.verdict.name().to_owned(),
        thousands(tso.configurations),
        format!("{:.2}", tso.seconds),
        thousands(dual.configurations),
        memorax.map_or("-".to_owned(), thousands),
        of_it.unwrap_or("-".to_owned()),
        judged(small && tso.verdict == dual.verdict && as_expected(&tso, |verdicts| verdicts.tso)),
        pso.verdict.name().to_owned(),
        thousands(pso.configurations),
        format!("{:.2}", pso.seconds),
        judged(
            as_expected(&pso, |verdicts| verdicts.pso)
                && (expected.is_none() || pso.verdict != SafetyVerdict::Unknown),
        ),
    ]
}

fn parse(language: Language, file: &Path) -> Result<Program> {
    let name = file.display().to_string();
    let source = Source::new(name.clone(), read_to_string(file).with_context(|| name.clone())?);
    let parsed = palisade_syntax::parse(language, &source);
    Ok(parsed.map_err(|diagnostics| anyhow!("{name}: {diagnostics:?}"))?.program)
}
