//! How the search grows with the number of threads, compared with any number of them where such a program
//! exists.
//!
//! Identical threads are symmetric. For the litmus tests, the number of configurations must therefore stop
//! growing at [`SATURATED`] threads of each kind. In the mutual exclusion algorithms, threads have names and
//! their own variables. So every size is a new program, and a row is `ok` if it is decided as expected within
//! the time limit. The first size that is not `ok` ends its family.

use super::{Run, headings, parse, row};
use crate::plot::Chart;
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say};
use anyhow::{Context, Result};
use palisade_corpus::Fences;
use palisade_corpus::litmus::{Copies, SHAPES, litmus};
use palisade_corpus::mutex::{bakery, burns, filter_lock, lamport_fast, szymanski};
use palisade_engine::Threads;
use palisade_syntax::Language;
use std::path::Path;
use std::time::Duration;

/// From this many threads of each kind on, the number of configurations stays the same.
const SATURATED: u32 = 4;

/// Numbers of threads of each kind in the litmus tests.
const SIZES: [u32; 8] = [1, 2, SATURATED, 6, 10, 20, 35, 50];

/// An algorithm, what its sizes count, and its largest sizes without fences (where a run must be found) and
/// with fences (where a proof must be found).
struct Algorithm {
    name: &'static str,
    program: fn(u32, Fences) -> String,
    most_without: u32,
    most_with: u32,
    /// The number of configurations that a discarded first implementation of our search needed without
    /// fences, by size.
    prototype: &'static [(u32, u64)],
}

const fn algorithm(
    name: &'static str,
    program: fn(u32, Fences) -> String,
    most_without: u32,
    most_with: u32,
) -> Algorithm {
    Algorithm { name, program, most_without, most_with, prototype: &[] }
}

const ALGORITHMS: [Algorithm; 6] = [
    Algorithm { prototype: &[(4, 101), (5, 163), (6, 252), (8, 534)], ..algorithm("burns", burns, 10, 16) },
    algorithm("lamport_fast", lamport_fast, 6, 8),
    algorithm("bakery, 2 threads", |numbers, fences| bakery(2, numbers, fences), 8, 8),
    algorithm("bakery, 3 threads", |numbers, fences| bakery(3, numbers, fences), 4, 4),
    algorithm("filter_lock", filter_lock, 5, 5),
    algorithm("szymanski", szymanski, 6, 6),
];

/// The aim for speed and memory on large searches.
const MIN_SPEED: f64 = 1_000_000.0;
const MAX_BYTES: u64 = 65;

/// The runs of a family, by size.
type Curve = (String, Vec<(u32, Run)>);

/// Prints the tables, and draws the curves into a folder.
pub fn run(limit: Duration, plots: Option<&Path>) -> Result<()> {
    say!("Litmus tests with many threads of each kind\n");
    let curves = litmus_tests(limit)?;
    if let Some(folder) = plots {
        draw(folder, "litmus", "Litmus tests", "threads of each kind", &curves)?;
    }
    let mut largest: Option<(String, Run)> = None;
    for (fences, verdict, title, name) in [
        (Fences::None, SafetyVerdict::Unsafe, "Mutual exclusion without fences: runs to be found", "runs"),
        (Fences::Tso, SafetyVerdict::Safe, "Mutual exclusion with fences: proofs", "proofs"),
    ] {
        say!("\n{title}\n");
        let curves = algorithms(fences, verdict, limit, &mut largest)?;
        if let Some(folder) = plots {
            draw(folder, name, title, "threads, or largest number of the bakery", &curves)?;
        }
    }
    let (name, run) = largest.context("there are algorithms")?;
    let speed = run.speed().unwrap_or(0.0);
    say!(
        "\nThe largest search, {name}: {} configurations, {} per second (aim {})  {}; {} bytes each (aim {MAX_BYTES})  {}",
        thousands(run.configurations),
        thousands(speed as u64),
        thousands(MIN_SPEED as u64),
        judged(speed >= MIN_SPEED),
        run.bytes_each(),
        judged(run.bytes_each() <= MAX_BYTES)
    );
    Ok(())
}

fn litmus_tests(limit: Duration) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    let mut table = Table::new(&headings(&["program", "of each kind"], &[""]));
    for name in ["sb", "mp", "iriw", "lb", "wrc", "rwc"] {
        let shape = SHAPES.iter().find(|shape| shape.name == name).context("the corpus has all shapes")?;
        let expected = shape.verdicts.tso.map_or(SafetyVerdict::Unknown, SafetyVerdict::from);
        let mut saturated = None;
        let mut curve = Vec::new();
        for size in SIZES.into_iter().map(Some).chain([None]) {
            let sizes = vec![size.unwrap_or(0); shape.threads.len()];
            let copies = if size.is_some() { Copies::Fixed(&sizes) } else { Copies::Any };
            let program = parse(Language::Pal, name, litmus(shape, copies))?;
            measuring(&size.map_or_else(|| name.to_owned(), |size| format!("{name} {size}")))?;
            let run = Run::new(&program, Threads::Declared, limit);
            if size == Some(SATURATED) {
                saturated = Some(run.configurations);
            }
            let grows = saturated.is_some_and(|most| run.configurations > most);
            curve.extend(size.map(|size| (size, run.clone())));
            let size = size.map_or("any".to_owned(), |size| size.to_string());
            let ok = judged(run.verdict == expected && !grows);
            table.row(row(vec![name.to_owned(), size], &run, vec![ok]));
        }
        curves.push((name.to_owned(), curve));
    }
    table.print();
    Ok(curves)
}

/// Draws configurations, processor time and memory by size, only for runs that were decided.
fn draw(folder: &Path, name: &str, title: &str, across: &str, curves: &[Curve]) -> Result<()> {
    type Quantity = (&'static str, &'static str, fn(&Run) -> f64);
    let what: [Quantity; 3] = [
        ("configurations", "configurations", |run| run.configurations as f64),
        ("seconds", "seconds of processor time", |run| run.seconds.max(0.001)),
        ("memory", "kilobytes of tables", |run| run.bytes as f64 / 1000.0),
    ];
    std::fs::create_dir_all(folder)?;
    for (suffix, upwards, value) in what {
        let points = |(name, runs): &Curve| {
            let decided = runs.iter().filter(|(_, run)| run.is_decided());
            (name.clone(), decided.map(|(size, run)| (f64::from(*size), value(run))).collect())
        };
        let chart = Chart {
            title: title.to_owned(),
            across: across.to_owned(),
            upwards: upwards.to_owned(),
            curves: curves.iter().map(points).collect(),
        };
        palisade_files::write(&folder.join(format!("growth-{name}-{suffix}.svg")), chart.svg().as_bytes())?;
    }
    Ok(())
}

fn algorithms(
    fences: Fences,
    verdict: SafetyVerdict,
    limit: Duration,
    largest: &mut Option<(String, Run)>,
) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    let mut table = Table::new(&headings(&["program", "size"], &["prototype", ""]));
    for algorithm in &ALGORITHMS {
        let (most, prototypes) = match fences {
            Fences::None => (algorithm.most_without, algorithm.prototype),
            Fences::Tso => (algorithm.most_with, [].as_slice()),
        };
        let mut curve = Vec::new();
        for threads in 2..=most {
            measuring(&format!("{} {threads}", algorithm.name))?;
            let text = (algorithm.program)(threads, fences);
            let run = Run::new(&parse(Language::Pal, algorithm.name, text)?, Threads::Declared, limit);
            let prototype = prototypes.iter().find(|(size, _)| *size == threads).map(|&(_, number)| number);
            let fits = prototype.is_none_or(|number| 10 * run.configurations <= 11 * number);
            let after =
                vec![prototype.map_or("-".to_owned(), thousands), judged(run.verdict == verdict && fits)];
            table.row(row(vec![algorithm.name.to_owned(), threads.to_string()], &run, after));
            let decided = run.is_decided();
            curve.push((threads, run.clone()));
            if largest.as_ref().is_none_or(|(_, other)| other.configurations < run.configurations) {
                *largest = Some((format!("{} {threads}", algorithm.name), run));
            }
            if !decided {
                break;
            }
        }
        curves.push((algorithm.name.to_owned(), curve));
    }
    table.print();
    Ok(curves)
}
