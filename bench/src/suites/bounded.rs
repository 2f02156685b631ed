//! Bounded rounds and bounded store age: Table 1 of Atig, Bouajjani and Parlato, "Getting rid of
//! store-buffers in TSO analysis" (CAV 2011), and growth with the bound and the number of threads.
//!
//! *Aims.*
//! - Without fences, a run is found within two rounds and with store age 2.
//! - With fences, there is no run at bound 2, without unrolling loops.
//! - Each takes less than a second. (The paper's tools, with loops unrolled two or three times, took 1 to
//!   1608 s.)
//! - A bug below sixty calls is found.
//! - Growth is measured up to K = 6 and up to four threads, and no curve ends before that.
//!
//! *How.* On one core. Wall-clock time, the median of [`ROUNDS`] runs. It includes translating the run back
//! to the store-buffer machine.

use crate::measure::{machine, median};
use crate::plot::Chart;
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say, stop};
use anyhow::{Context, Result, anyhow};
use palisade::{Bound, Limits, Options};
use palisade_corpus::Fences;
use palisade_corpus::mutex::{burns, filter_lock, lamport_fast, szymanski};
use palisade_engine::{Reason, Task, Verdict};
use palisade_memory::Model;
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs per measurement.
const ROUNDS: usize = 3;
/// The largest bound at which runs must be found.
const BOUND: u32 = 2;
/// The time limit in seconds for each of the table's eight rows.
const MAX_SECONDS: f64 = 1.0;

/// The paper's rows, with the seconds of Poirot and ESBMC without fences, and with fences (for the largest
/// bounds they tried).
const TABLE_1: [(&str, &str, &str, &str); 4] = [
    ("Dekker", "mutex/dekker", "7, no answer", "72, 26"),
    ("Lamport", "mutex/lamport_fast", "110, 1", "1608, 7"),
    ("Peterson", "mutex/peterson", "5, 1", "47, 1"),
    ("Szymanski", "mutex/szymanski", "8, 1", "978, 6"),
];

/// The result of a run.
struct Measured {
    verdict: SafetyVerdict,
    /// Whether time or memory ran out.
    exhausted: bool,
    states: u64,
    seconds: f64,
}

/// How far growth is measured.
#[derive(Clone, Copy)]
pub struct Extent {
    bound: u32,
    threads: u32,
}

impl Extent {
    /// Takes a few seconds.
    pub const QUICK: Extent = Extent { bound: 3, threads: 3 };
    /// The complete measurement.
    pub const FULL: Extent = Extent { bound: 6, threads: 4 };
}

/// Runs the suite. If a folder is given, the curves are written there as `.svg`.
pub fn run(extent: Extent, seconds: u64, plots: Option<&Path>) -> Result<()> {
    say!("{}; at most {seconds} s per run\n", machine());
    let limit = Duration::from_secs(seconds);
    say!("Table 1\n");
    table_1(limit)?;
    say!("\nA bug below sixty calls of a recursive procedure\n");
    recursion(limit)?;
    say!("\nGrowth with the bound: the table's programs with fences\n");
    let with_bound = growth_with_bound(extent.bound, limit)?;
    say!("\nGrowth with the number of threads: with fences, two rounds and store age 1\n");
    let with_threads = growth_with_threads(extent.threads, limit)?;
    if let Some(folder) = plots {
        std::fs::create_dir_all(folder)?;
        draw(folder, "bound", "Bounded checks of protocols with fences", "rounds, or store age", with_bound)?;
        draw(folder, "threads", "Two rounds, or store age 1", "threads", with_threads)?;
    }
    Ok(())
}

fn table_1(limit: Duration) -> Result<()> {
    let mut table = Table::new(&[
        "program",
        "engine",
        "least K",
        "states",
        "ms",
        "paper: s",
        "with fences, K = 2",
        "states",
        "ms",
        "paper: s",
        "",
    ]);
    for (name, file, paper_without, paper_with) in TABLE_1 {
        for engine in ["rounds", "age"] {
            measuring(&format!("{name}, {engine}"))?;
            let without = program(&corpus_text(&format!("{file}.pal"))?)?;
            let mut found = None;
            for bound in 0..=BOUND {
                let measured = measure(&without, engine, bound, limit)?;
                if measured.verdict == SafetyVerdict::Unsafe {
                    found = Some((bound, measured));
                    break;
                }
            }
            let fenced = program(&corpus_text(&format!("{file}.fenced.pal"))?)?;
            let clean = measure(&fenced, engine, BOUND, limit)?;
            let least = found.as_ref().map_or("none".to_owned(), |(bound, _)| bound.to_string());
            let without = found.map(|(_, measured)| measured);
            let fast = |measured: &Measured| measured.seconds < MAX_SECONDS;
            let ok = without.as_ref().is_some_and(fast)
                && clean.verdict != SafetyVerdict::Unsafe
                && !clean.exhausted
                && fast(&clean);
            table.row(vec![
                name.to_owned(),
                engine.to_owned(),
                least,
                without.as_ref().map_or(String::new(), |measured| thousands(measured.states)),
                without.as_ref().map_or(String::new(), Measured::milliseconds),
                paper_without.to_owned(),
                if clean.verdict == SafetyVerdict::Unsafe { "a run" } else { "none" }.to_owned(),
                thousands(clean.states),
                clean.milliseconds(),
                paper_with.to_owned(),
                judged(ok),
            ]);
        }
    }
    table.print();
    Ok(())
}

/// Two processes recurse, and look at each other's flags only at the bottom.
const RECURSION: &str = "
shared flag[2]: bool;
proc dig(me: 0..1, depth: 0..60) -> bool {
    if depth == 60 {
        flag[me] = true;
        return flag[1 - me];
    }
    return dig(me, depth + 1);
}
process P(i: 0..1) {
    if !dig(i, 0) {
    cs: skip;
    }
}
forbid P(0)@cs && P(1)@cs;
";

fn recursion(limit: Duration) -> Result<()> {
    let mut table = Table::new(&["rounds", "verdict", "ms", ""]);
    let program = program(RECURSION)?;
    for bound in 0..=BOUND {
        measuring(&format!("recursion, {bound} rounds"))?;
        let measured = measure(&program, "rounds", bound, limit)?;
        let expected = if bound == 0 { SafetyVerdict::Unknown } else { SafetyVerdict::Unsafe };
        let ok = judged(measured.verdict == expected);
        table.row(vec![bound.to_string(), measured.verdict.name().to_owned(), measured.milliseconds(), ok]);
    }
    table.print();
    Ok(())
}

/// A name, with states and seconds by size.
type Curve = (String, Vec<(u32, Measured)>);

/// Makes a program for a number of threads.
type Generate = fn(u32, Fences) -> String;

fn growth_with_bound(most: u32, limit: Duration) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    for (name, file, ..) in TABLE_1 {
        let program = program(&corpus_text(&format!("{file}.fenced.pal"))?)?;
        for engine in ["rounds", "age"] {
            measuring(&format!("{name}, {engine}, with the bound"))?;
            let sizes = (1..=most).map(|bound| (bound, bound));
            curves
                .push((format!("{name}, {engine}"), family(sizes, |_| Ok(program.clone()), engine, limit)?));
        }
    }
    print_curves("K", most, &curves);
    Ok(curves)
}

fn growth_with_threads(most: u32, limit: Duration) -> Result<Vec<Curve>> {
    let families: [(&str, Generate); 4] =
        [("Burns", burns), ("filter lock", filter_lock), ("Lamport", lamport_fast), ("Szymanski", szymanski)];
    let mut curves = Vec::new();
    for (name, text) in families {
        for (engine, bound) in [("rounds", 2), ("age", 1)] {
            measuring(&format!("{name}, {engine}, with the threads"))?;
            let sizes = (2..=most).map(|threads| (threads, bound));
            let programs = |threads| program(&text(threads, Fences::Tso));
            curves.push((format!("{name}, {engine}"), family(sizes, programs, engine, limit)?));
        }
    }
    print_curves("threads", most, &curves);
    Ok(curves)
}

/// One size after the other, each with its bound. The first size that takes too long ends the family.
fn family(
    sizes: impl Iterator<Item = (u32, u32)>,
    program: impl Fn(u32) -> Result<Program>,
    engine: &str,
    limit: Duration,
) -> Result<Vec<(u32, Measured)>> {
    let mut measured = Vec::new();
    for (size, bound) in sizes {
        let one = measure(&program(size)?, engine, bound, limit)?;
        if one.exhausted {
            break;
        }
        measured.push((size, one));
    }
    Ok(measured)
}

/// One row per size. The row of the largest size shows whether the curve gets that far.
fn print_curves(heading: &str, most: u32, curves: &[Curve]) {
    let mut table = Table::new(&["program", heading, "verdict", "states", "ms", ""]);
    for (name, sizes) in curves {
        for (size, measured) in sizes {
            table.row(vec![
                name.clone(),
                size.to_string(),
                measured.verdict.name().to_owned(),
                thousands(measured.states),
                measured.milliseconds(),
                if *size == most { judged(true) } else { String::new() },
            ]);
        }
        let next = sizes.last().map_or(1, |(size, _)| size + 1);
        if next <= most {
            let nothing = String::new;
            table.row(vec![
                name.clone(),
                next.to_string(),
                "-".to_owned(),
                nothing(),
                nothing(),
                judged(false),
            ]);
        }
    }
    table.print();
}

fn draw(folder: &Path, name: &str, title: &str, across: &str, curves: Vec<Curve>) -> Result<()> {
    let chart = |upwards: &str, value: fn(&Measured) -> f64| Chart {
        title: title.to_owned(),
        across: across.to_owned(),
        upwards: upwards.to_owned(),
        curves: curves
            .iter()
            .map(|(name, sizes)| {
                (name.clone(), sizes.iter().map(|(size, run)| (f64::from(*size), value(run))).collect())
            })
            .collect(),
    };
    let states = chart("states", |measured| measured.states.max(1) as f64);
    let seconds = chart("seconds", |measured| measured.seconds.max(1e-4));
    palisade_files::write(&folder.join(format!("bounded-{name}-states.svg")), states.svg().as_bytes())?;
    palisade_files::write(&folder.join(format!("bounded-{name}-seconds.svg")), seconds.svg().as_bytes())?;
    Ok(())
}

impl Measured {
    fn milliseconds(&self) -> String {
        format!("{:.1}", self.seconds * 1e3)
    }
}

fn corpus_text(file: &str) -> Result<String> {
    Ok(palisade_corpus::text(file).with_context(|| format!("the corpus has no {file}"))?.to_owned())
}

fn program(text: &str) -> Result<Program> {
    let source = palisade_base::Source::new("program", text);
    Ok(parse(Language::Pal, &source).map_err(|errors| anyhow!("{errors:?}"))?.program)
}

fn measure(program: &Program, engine: &str, bound: u32, limit: Duration) -> Result<Measured> {
    let engine = palisade::engines::named::<palisade::Safety>(engine)
        .with_context(|| format!("no engine has the name {engine}"))?;
    let bound = Bound::Fixed(bound);
    let task = Task {
        options: Options { rounds: bound, age: bound, ..Options::default() },
        ..Task::new(program, Model::Tso)
    };
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let limits = Limits::unlimited(1).with_timeout(limit).with_memory(2 << 30).with_stop(stop());
        let outcome = engine.check(&task.analysis(), &limits);
        times.push(start.elapsed().as_secs_f64());
        if times.len() == ROUNDS || times[0] > 2.0 {
            let states = outcome.stats.get("states").unwrap_or(0);
            let exhausted =
                matches!(outcome.verdict, Verdict::Unknown(Reason::Exhausted(_) | Reason::Partly(..)));
            let verdict = SafetyVerdict::from(&outcome.verdict);
            return Ok(Measured { verdict, exhausted, states, seconds: median(times) });
        }
    }
}
