//! Robustness: the algorithms of the literature, and Trencher's own files if a folder with them is given.
//!
//! *Aims.* (1) Trencher's verdicts on its own files, with at most as many queries as there are attacks
//! (Trencher makes one per attack). (2) Every program of the corpus with declared domains is decided under
//! TSO and PSO within the time limit.
//!
//! *How.* On one core. `attacks` counts triples of thread, store and load. `left` is how many of them remain
//! after considering control flow and fences. One search handles all remaining ones at once.

use crate::corpus;
use crate::measure::{machine, timed};
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say, stop};
use anyhow::{Context, Result, anyhow};
use palisade::engine::{Question, Robustness};
use palisade::report::Standing;
use palisade::{Input, Language, Limits, Model, RobustOptions, Source};
use palisade_corpus::expectations;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Trencher's verdicts on its files.
const TRENCHER: &[(&str, Standing)] = &[
    ("clh-lock", Standing::Good),
    ("dekker", Standing::Bad),
    ("dekker-correct", Standing::Good),
    ("lamport-fast-mutex-alg1", Standing::Bad),
    ("lock-free-stack", Standing::Good),
    ("mcs-lock", Standing::Good),
    ("nbw-w-ar-ra", Standing::Bad),
    ("nbw-w-r", Standing::Good),
    ("nbw-w-wr", Standing::Bad),
    ("parker", Standing::Bad),
    ("parker-correct", Standing::Good),
    ("peterson", Standing::Bad),
    ("pso", Standing::Good),
    ("simple-dekker", Standing::Bad),
    ("trf", Standing::Good),
];

/// Runs the suite: the folders if there are any, otherwise the corpus.
pub fn run(folders: &[PathBuf], seconds: u64) -> Result<()> {
    say!("{}; at most {seconds} s per program\n", machine());
    let limit = Duration::from_secs(seconds);
    let mut table =
        Table::new(&["program", "model", "answer", "attacks", "left", "states", "ms", "expected", ""]);
    if folders.is_empty() {
        for expectation in expectations() {
            let input = corpus::read(expectation.file)?;
            for model in [Model::Tso, Model::Pso] {
                row(&mut table, &input, expectation.file, model, None, limit)?;
            }
        }
    }
    for folder in folders {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .with_context(|| folder.display().to_string())?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        files.sort_unstable();
        for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "txt")) {
            let name = file.file_stem().context("a file has a name")?.to_string_lossy().into_owned();
            let expected = TRENCHER.iter().find(|(other, _)| *other == name).map(|&(_, verdict)| verdict);
            row(&mut table, &read(file)?, &name, Model::Tso, expected, limit)?;
        }
    }
    table.print();
    Ok(())
}

fn read(file: &Path) -> Result<Input> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    palisade::read(Source::new(file.display().to_string(), text), Language::Trencher, None)
        .map_err(|refused| anyhow!("{refused}"))
}

fn row(
    table: &mut Table,
    input: &Input,
    name: &str,
    model: Model,
    expected: Option<Standing>,
    limit: Duration,
) -> Result<()> {
    measuring(&format!("{name} under {}", model.name()))?;
    let options = RobustOptions { model, ..RobustOptions::default() };
    let limits = Limits::unlimited(1).with_timeout(limit).with_memory(2 << 30).with_stop(stop());
    let (answer, _) = timed(|| palisade::robust(&input.program, &options, &limits));
    let answer = answer.map_err(|error| anyhow!("{name}: {error}"))?;
    let count = |name: &str| answer.outcome.stats.get(name).unwrap_or(0);
    let standing = Standing::from(&answer.outcome.verdict);
    let word = |standing| match standing {
        Standing::Good => Robustness::HOLDS,
        Standing::Bad => Robustness::VIOLATED,
        Standing::Open => "unknown",
    };
    table.row(vec![
        name.to_owned(),
        model.name().to_owned(),
        word(standing).to_owned(),
        thousands(count("attacks")),
        thousands(count("attacks").saturating_sub(count("attacks_discarded"))),
        thousands(count("states")),
        format!("{:.1}", answer.seconds * 1e3),
        expected.map_or("", word).to_owned(),
        match expected {
            Some(expected) => judged(expected == standing),
            // For any number of processes `unknown` is allowed: the engine can only find a cycle or rule out
            // all attacks.
            None if name.contains(".any.") => String::new(),
            None => judged(standing != Standing::Open),
        },
    ]);
    Ok(())
}
