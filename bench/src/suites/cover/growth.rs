//! How the search grows with the number of threads, against any number of them where that is a program.
//!
//! Identical threads are symmetric: for the litmus tests the number of configurations must not grow any more from [`SATURATED`] threads of each kind on. The
//! mutual exclusion algorithms have threads with names, each with variables of its own: there every size is a new program, and a row is `ok` if it is
//! decided as expected in the time given. The first size that is not ends its family.

use super::{Run, headings, parse, row};
use crate::table::{Table, judged, thousands};
use anyhow::{Context, Result};
use palisade_corpus::Fences;
use palisade_corpus::litmus::{Copies, SHAPES, litmus};
use palisade_corpus::mutex::{burns, filter_lock, lamport_fast, szymanski};
use palisade_engine::Threads;
use palisade_syntax::Language;
use std::time::Duration;

/// From this many threads of each kind on the number of configurations stays the same.
const SATURATED: u32 = 4;

/// Numbers of threads of each kind of the litmus tests.
const SIZES: [u32; 8] = [1, 2, SATURATED, 6, 10, 20, 35, 50];

/// An algorithm, and its largest sizes without fences (runs to be found) and with fences (proofs).
struct Algorithm {
    name: &'static str,
    program: fn(u32, Fences) -> String,
    most_without: u32,
    most_with: u32,
    /// Configurations that a prototype of our search needed without fences, by size.
    prototype: &'static [(u32, u64)],
}

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm {
        name: "burns",
        program: burns,
        most_without: 10,
        most_with: 16,
        prototype: &[(4, 101), (5, 163), (6, 252), (8, 534)],
    },
    Algorithm { name: "lamport_fast", program: lamport_fast, most_without: 6, most_with: 5, prototype: &[] },
    Algorithm { name: "filter_lock", program: filter_lock, most_without: 5, most_with: 4, prototype: &[] },
    Algorithm { name: "szymanski", program: szymanski, most_without: 6, most_with: 6, prototype: &[] },
];

/// The aim for speed and memory on large searches.
const LEAST_SPEED: f64 = 500_000.0;
const MOST_BYTES: u64 = 200;

/// Prints the tables.
pub fn run(limit: Duration) -> Result<()> {
    println!("Litmus tests with many threads of each kind\n");
    litmus_tests(limit)?;
    let mut largest: Option<(String, Run)> = None;
    for (fences, verdict, title) in [
        (Fences::None, "unsafe", "Mutual exclusion without fences: runs to be found"),
        (Fences::Tso, "safe", "Mutual exclusion with fences: proofs"),
    ] {
        println!("\n{title}\n");
        algorithms(fences, verdict, limit, &mut largest)?;
    }
    let (name, run) = largest.context("there are algorithms")?;
    let speed = run.speed().unwrap_or(0.0);
    println!(
        "\nThe largest search, {name}: {} configurations, {} per second (aim {})  {}; {} bytes each (aim {MOST_BYTES})  {}",
        thousands(run.configurations),
        thousands(speed as u64),
        thousands(LEAST_SPEED as u64),
        judged(speed >= LEAST_SPEED),
        run.bytes_each(),
        judged(run.bytes_each() <= MOST_BYTES)
    );
    Ok(())
}

fn litmus_tests(limit: Duration) -> Result<()> {
    let mut table = Table::new(&headings(&["program", "of each kind"], &[""]));
    for name in ["sb", "mp", "iriw", "lb", "wrc", "rwc"] {
        let shape = SHAPES.iter().find(|shape| shape.name == name).context("the corpus has all shapes")?;
        let expected = shape.verdicts.tso.map_or("unknown", palisade_corpus::Safety::name);
        let mut saturated = None;
        for size in SIZES.into_iter().map(Some).chain([None]) {
            let sizes = vec![size.unwrap_or(0); shape.threads.len()];
            let copies = if size.is_some() { Copies::Fixed(&sizes) } else { Copies::Any };
            let program = parse(Language::Pal, name, litmus(shape, copies))?;
            let run = Run::new(&program, Threads::Declared, limit);
            if size == Some(SATURATED) {
                saturated = Some(run.configurations);
            }
            let grows = saturated.is_some_and(|most| run.configurations > most);
            let size = size.map_or("any".to_owned(), |size| size.to_string());
            let ok = judged(run.verdict == expected && !grows);
            table.row(row(vec![name.to_owned(), size], &run, vec![ok]));
        }
    }
    table.print();
    Ok(())
}

fn algorithms(
    fences: Fences,
    verdict: &str,
    limit: Duration,
    largest: &mut Option<(String, Run)>,
) -> Result<()> {
    let mut table = Table::new(&headings(&["program", "threads"], &["prototype", ""]));
    for algorithm in &ALGORITHMS {
        let (most, prototypes) = match fences {
            Fences::None => (algorithm.most_without, algorithm.prototype),
            Fences::Tso => (algorithm.most_with, [].as_slice()),
        };
        for threads in 2..=most {
            let text = (algorithm.program)(threads, fences);
            let run = Run::new(&parse(Language::Pal, algorithm.name, text)?, Threads::Declared, limit);
            let prototype = prototypes.iter().find(|(size, _)| *size == threads).map(|&(_, number)| number);
            let fits = prototype.is_none_or(|number| 10 * run.configurations <= 11 * number);
            let behind =
                vec![prototype.map_or("-".to_owned(), thousands), judged(run.verdict == verdict && fits)];
            table.row(row(vec![algorithm.name.to_owned(), threads.to_string()], &run, behind));
            let decided = run.is_decided();
            if largest.as_ref().is_none_or(|(_, other)| other.configurations < run.configurations) {
                *largest = Some((format!("{} with {threads} threads", algorithm.name), run));
            }
            if !decided {
                break;
            }
        }
    }
    table.print();
    Ok(())
}
